//! Records of the client during a transfer: 12 bytes each, in a stream.
//!
//! ```text
//! type u16 | padding u16 | block u32 | error rate u32
//! ```
//!
//! The original leaves the padding of a stop as it was in memory. So it is ignored here, and written as zero.

/// Values of the first two bytes of a record.
mod kind {
    pub(super) const RETRANSMIT: u16 = 0;
    pub(super) const RESTART: u16 = 1;
    pub(super) const STOP: u16 = 2;
    pub(super) const ERROR_RATE: u16 = 3;
    /// Ours: between Farhaul ends alone.
    pub(super) const RETRANSMIT_RANGE: u16 = 4;
}

/// A record of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Send this block again.
    Retransmit(u32),
    /// Go back: the next block to send is the one after this.
    Restart(u32),
    /// The transfer is over.
    Stop,
    /// The share of blocks that were lost, in thousandths of a percent.
    ErrorRate(u32),
    /// Send these blocks again, both included. Not of the original: its programs know no such record.
    RetransmitRange {
        /// The first block.
        first: u32,
        /// The last block.
        last: u32,
    },
}

impl Request {
    /// Bytes on the wire.
    pub const LEN: usize = 12;

    /// Its bytes.
    pub fn bytes(self) -> [u8; Self::LEN] {
        let (kind, block, rate) = match self {
            Self::Retransmit(block) => (kind::RETRANSMIT, block, 0),
            Self::Restart(block) => (kind::RESTART, block, 0),
            Self::Stop => (kind::STOP, 0, 0),
            Self::ErrorRate(rate) => (kind::ERROR_RATE, 0, rate),
            Self::RetransmitRange { first, last } => (kind::RETRANSMIT_RANGE, first, last),
        };
        let mut bytes = [0; Self::LEN];
        bytes[..2].copy_from_slice(&kind.to_be_bytes());
        bytes[4..8].copy_from_slice(&block.to_be_bytes());
        bytes[8..].copy_from_slice(&rate.to_be_bytes());
        bytes
    }

    /// Reads one. Its padding, and the fields that its type does not use, may hold anything.
    ///
    /// # Errors
    /// The type is unknown.
    pub fn decode(bytes: &[u8; Self::LEN]) -> Result<Self, UnknownRequest> {
        let [k0, k1, _, _, b0, b1, b2, b3, e0, e1, e2, e3] = *bytes;
        let (block, rate) = (u32::from_be_bytes([b0, b1, b2, b3]), u32::from_be_bytes([e0, e1, e2, e3]));
        match u16::from_be_bytes([k0, k1]) {
            kind::RETRANSMIT => Ok(Self::Retransmit(block)),
            kind::RESTART => Ok(Self::Restart(block)),
            kind::STOP => Ok(Self::Stop),
            kind::ERROR_RATE => Ok(Self::ErrorRate(rate)),
            kind::RETRANSMIT_RANGE => Ok(Self::RetransmitRange { first: block, last: rate }),
            other => Err(UnknownRequest(other)),
        }
    }
}

/// No record has this type. The peer or the line is at fault, and the channel is of no more use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no Tsunami request has the type {0}")]
pub struct UnknownRequest(pub u16);
