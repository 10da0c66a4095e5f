//! The header of a block.
//!
//! The original sends the whole block size after it, also for the last block of a file. The rest of that is garbage.

use num_enum::TryFromPrimitive;

use crate::DecodeError;

/// Bytes before a block.
pub const HEADER_LEN: usize = 6;

/// Why a block is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, TryFromPrimitive)]
#[repr(u16)]
pub enum Kind {
    /// In its turn.
    Original = b'O' as u16,
    /// On request.
    Retransmission = b'R' as u16,
    /// In its turn, and no other block follows. The server repeats it until the client stops the transfer.
    Last = b'X' as u16,
}

impl Kind {
    /// The word on the wire, an ASCII letter.
    pub const fn word(self) -> u16 {
        self as u16
    }
}

/// The bytes before a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The number of the block. The first one of a file is 1.
    pub block: u32,
    /// Why it is sent.
    pub kind: Kind,
}

impl Header {
    /// Its bytes.
    pub const fn bytes(self) -> [u8; HEADER_LEN] {
        let ([b0, b1, b2, b3], [k0, k1]) = (self.block.to_be_bytes(), self.kind.word().to_be_bytes());
        [b0, b1, b2, b3, k0, k1]
    }

    /// The header of a datagram, and the block.
    ///
    /// # Errors
    /// The datagram is shorter than a header, or of another kind.
    pub fn split(datagram: &[u8]) -> Result<(Self, &[u8]), DecodeError> {
        let length = datagram.len();
        let (head, rest) = datagram.split_first_chunk().ok_or(DecodeError::TooShort { length, header: HEADER_LEN })?;
        let [b0, b1, b2, b3, k0, k1] = *head;
        let word = u16::from_be_bytes([k0, k1]);
        let out_of_range =
            DecodeError::OutOfRange { field: "the type of a block", value: u32::from(word), legal: "O, R or X" };
        let kind = Kind::try_from_primitive(word).map_err(|_| out_of_range)?;
        Ok((Self { block: u32::from_be_bytes([b0, b1, b2, b3]), kind }, rest))
    }
}
