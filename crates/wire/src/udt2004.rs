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
//! Start with [`Packet::decode`], or on the hot path with [`is_control`] and [`split_data`].

mod ack;
mod control;
mod data;
mod handshake;
mod loss_list;
mod seq;

use crate::DecodeError;

pub use ack::Ack;
pub use control::{Control, is_handshake};
pub use data::{HEADER_LEN, encode_data_header, is_control, split_data};
pub use handshake::{Handshake, Request};
pub use loss_list::{LossList, LossRange, encode_losses};
pub use seq::SeqNo30;

/// Any packet of the 2004 protocol, borrowing its payload from the datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet<'a> {
    /// User data.
    Data {
        /// Its sequence number.
        seq: SeqNo30,
        /// The bytes behind the header; may be empty.
        payload: &'a [u8],
    },
    /// A message between the protocol's two ends.
    Control(Control<'a>),
}

impl<'a> Packet<'a> {
    /// Reads the UDP payload `datagram`.
    ///
    /// # Errors
    /// The datagram is not a valid packet of this protocol: see [`DecodeError`].
    pub fn decode(datagram: &'a [u8]) -> Result<Self, DecodeError> {
        if is_control(datagram) {
            return Control::decode(datagram).map(Self::Control);
        }
        let (seq, payload) = split_data(datagram)?;
        Ok(Self::Data { seq, payload })
    }

    /// Appends the packet to `out` as one datagram.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Data { seq, payload } => {
                out.extend_from_slice(&encode_data_header(*seq));
                out.extend_from_slice(payload);
            }
            Self::Control(control) => control.encode(out),
        }
    }
}

#[cfg(test)]
mod tests;
