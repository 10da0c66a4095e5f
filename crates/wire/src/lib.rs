//! Packet formats of UDT, its first generation and its fourth: bytes to values and back, no state.
//!
//! | module | what it owns |
//! | --- | --- |
//! | [`udt4`] | every packet of UDT4 as libudt 4.11 speaks it |
//! | [`udt2004`] | every packet of the 2004 paper, with four bytes of header |
//! | [`DecodeError`] | why a datagram is not a packet |
//!
//! Decoding borrows from the datagram and never allocates; encoding appends to a buffer of the caller. A decoder never
//! panics, whatever the bytes, and never believes a length that it has not checked.
#![forbid(unsafe_code)]
#![warn(clippy::cast_possible_truncation)]

mod error;
mod field;
mod pretty;
pub mod udt2004;
pub mod udt4;

pub use error::DecodeError;
