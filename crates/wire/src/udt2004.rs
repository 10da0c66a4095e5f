//! Every packet of the 2004 protocol (paper:udt-2004 §3.2), with a header of four bytes.
//!
//! | bits | data packet | control packet |
//! | --- | --- | --- |
//! | 0 | 0 | 1 |
//! | 1-3 | sequence number | type |
//! | 4-15 | … | reserved: zero, ignored |
//! | 16-31 | … | ACK id of an ACK or ACK2, number of losses of a NAK, otherwise zero |
//!
//! Sequence numbers lie in 0..=2^30 - 1 ([`SeqNo30`]). A packet does not identify its connection: the addresses do.
//!
//! The paper leaves some details open. Ours are the layout of the handshake, the close packet (type 5) and the units of
//! an ACK (departures D120 to D123 in docs/papers/departures.md).
//!
//! Start with [`is_control`], which says whether to read a datagram by [`split_data`] or by [`Control::decode`].

mod ack;
mod control;
mod data;
mod handshake;
mod loss_list;
#[cfg(any(test, feature = "testing"))]
mod packet;
mod seq;

pub use ack::Ack;
pub use control::{Control, is_handshake};
pub use data::{HEADER_LEN, encode_data_header, is_control, split_data};
pub use handshake::{Handshake, Request};
pub use loss_list::{LossList, LossRange, encode_losses};
#[cfg(any(test, feature = "testing"))]
pub use packet::Packet;
pub use seq::SeqNo30;

#[cfg(test)]
mod tests;
