//! Every packet of UDT4 in the format of libudt 4.11.
//!
//! A packet has a header of four big-endian words and a body. Bit 31 of the first word distinguishes control from data:
//!
//! | word | data packet | control packet |
//! | --- | --- | --- |
//! | 0 | sequence number | 1, type (15 bits), reserved or user type (16 bits) |
//! | 1 | position, in-order flag, message number | additional information, by type |
//! | 2 | time stamp, microseconds since the socket was opened | the same (zero from libudt) |
//! | 3 | socket id of the destination | the same |
//!
//! Start with [`Packet::decode`], or on the hot path with [`is_control`], [`destination`] and [`DataHeader::decode`].

mod ack;
mod control;
mod data;
mod drop_request;
mod handshake;
mod header;
mod loss_list;
mod path;
mod receipt;

use crate::DecodeError;

pub use ack::Ack;
pub use control::{CONNECTION_BROKEN, Control, is_handshake, is_receipt};
pub use data::{DataHeader, MessageField, Position};
pub use drop_request::DropRequest;
pub use handshake::{Handshake, Largest, Request, SocketType};
pub use header::{HEADER_LEN, SocketId, Timestamp, destination, is_control};
pub use loss_list::{LossList, encode_losses};
pub use path::{FRAGMENT_HEAD, Fragment, MAX_FRAGMENTS, Path};
pub use receipt::Receipt;

/// Any packet of UDT4, borrowing its payload from the datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet<'a> {
    /// User data.
    Data {
        /// The first 16 bytes.
        header: DataHeader,
        /// The bytes behind the header; may be empty.
        payload: &'a [u8],
    },
    /// A message between the protocol's two ends.
    Control {
        /// When it was sent, on the sender's clock; zero from libudt.
        timestamp: Timestamp,
        /// The destination socket.
        destination: SocketId,
        /// Its content.
        control: Control<'a>,
    },
}

impl<'a> Packet<'a> {
    /// Reads the UDP payload `datagram`.
    ///
    /// # Errors
    /// The datagram is not a valid packet: see [`DecodeError`]. Reserved bits and pad bytes are ignored.
    pub fn decode(datagram: &'a [u8]) -> Result<Self, DecodeError> {
        if is_control(datagram) {
            let (timestamp, destination, control) = Control::decode(datagram)?;
            Ok(Self::Control { timestamp, destination, control })
        } else {
            let (header, payload) = DataHeader::decode(datagram)?;
            Ok(Self::Data { header, payload })
        }
    }

    /// Appends the packet to `out` as one datagram.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Data { header, payload } => {
                let mut head = [0; HEADER_LEN];
                header.encode(&mut head);
                out.extend_from_slice(&head);
                out.extend_from_slice(payload);
            }
            Self::Control { timestamp, destination, control } => control.encode(*timestamp, *destination, out),
        }
    }
}

#[cfg(test)]
mod tests;
