//! Packet formats of UDT's first and fourth generation, as stateless conversions between bytes and values.
//!
//! | module | content |
//! | --- | --- |
//! | [`udt4`] | every packet of UDT4 in the format of libudt 4.11 |
//! | [`udt2004`] | every packet of the 2004 paper, with a header of four bytes |
//! | [`tsunami`] | every message of tsunami-udp 1.1 |
//! | [`blast`] | the control channel of blast protocols between two Farhaul programs |
//! | [`probe`] | measured streams: stable control streams, throughput profiles |
//! | [`rbudp`] | every datagram and record of the QUANTA programs |
//! | [`fobs`] | datagrams and control records of FOBS, in a format of ours |
//! | [`hurricane`] | datagrams and control records of Hurricane, in a format of ours |
//! | [`sabul`] | the options, data and control records of SABUL 2.1 |
//! | [`secure`] | packet protection around packets of a transport |
//! | [`DecodeError`] | why a datagram was refused |
//!
//! Decoding borrows from the datagram and never allocates. Encoding appends to a buffer of the caller. A decoder never
//! panics on any bytes, and checks every length before use.
#![forbid(unsafe_code)]
#![warn(clippy::cast_possible_truncation)]

pub mod blast;
mod error;
mod field;
pub mod fobs;
pub mod hurricane;
mod pretty;
pub mod probe;
pub mod rbudp;
pub mod sabul;
pub mod secure;
pub mod tsunami;
pub mod udt2004;
pub mod udt4;

pub use error::DecodeError;
