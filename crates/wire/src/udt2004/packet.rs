//! Data and control packets as one type, for tests.

use super::{Control, SeqNo30, encode_data_header, is_control, split_data};
use crate::DecodeError;

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
