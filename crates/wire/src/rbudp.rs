//! The formats of RBUDP, as the programs of the QUANTA library send them.
//!
//! | channel | direction | content |
//! | --- | --- | --- |
//! | TCP | R → S | [name block](encode_name) of a file, or the byte [`STREAM_MODE`] |
//! | TCP | S → R | [size](encode_length) of the file; in stream mode the length of each blast |
//! | UDP | S → R | [index](encode_index) of the packet in its blast, and payload |
//! | TCP | S → R | [end of the blast](EndOfBlast) |
//! | TCP | R → S | [bitmap](encode_bitmap) of the packets that arrived |
//!
//! Blast, end and bitmap repeat for the missing packets until none is missing. Lengths are big-endian. Indexes and
//! rounds are in the byte order of the sender's computer, which nothing announces.

mod bitmap;
mod name;

pub use bitmap::{BitmapError, BitmapReader, bitmap_len, encode_bitmap};
pub use name::{NAME_BLOCK_LEN, NameError, decode_name, encode_name};

use crate::DecodeError;
use crate::field::split_payload;

/// Bytes before the payload of a datagram.
pub const HEADER_LEN: usize = 4;
/// Bytes of a length, and of the end of a blast.
pub const RECORD_LEN: usize = 8;
/// The one byte by which a receiver asks for stream mode.
pub const STREAM_MODE: u8 = 0;
/// Most packets of a blast: the programs count them in a signed number of 32 bits.
pub const MAX_PACKETS: u32 = i32::MAX as u32;
/// The mark after the round in the end of a blast.
const END_MARK: &[u8; 3] = b"EEE";

/// The packets of a blast of `length` bytes; `None` if an index has no room for them.
pub fn packets_of(length: u64, payload: usize) -> Option<u32> {
    let packets = length.div_ceil(u64::try_from(payload).ok().filter(|&payload| payload > 0)?);
    u32::try_from(packets).ok().filter(|&packets| packets <= MAX_PACKETS)
}

/// The byte order of a sender's computer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ByteOrder {
    /// Of x86 and ARM. This side always sends it.
    #[default]
    Little,
    /// Of SPARC and POWER.
    Big,
}

impl ByteOrder {
    /// The number in four bytes of this order.
    pub const fn read(self, bytes: [u8; 4]) -> u32 {
        match self {
            Self::Little => u32::from_le_bytes(bytes),
            Self::Big => u32::from_be_bytes(bytes),
        }
    }

    /// The index in four bytes of a blast with `packets` packets. An index out of range shows the other order, which
    /// then holds for good. `None` if the index is out of range in both orders.
    pub fn index(&mut self, bytes: [u8; 4], packets: u32) -> Option<u32> {
        let other = match self {
            Self::Little => Self::Big,
            Self::Big => Self::Little,
        };
        for order in [*self, other] {
            let index = order.read(bytes);
            if index < packets {
                *self = order;
                return Some(index);
            }
        }
        None
    }
}

/// The header of packet `index`.
pub const fn encode_index(index: u32) -> [u8; HEADER_LEN] {
    index.to_le_bytes()
}

/// The bytes of the index, and the payload.
///
/// # Errors
/// The datagram has no payload. No sender sends such a packet.
pub fn split_data(datagram: &[u8]) -> Result<([u8; HEADER_LEN], &[u8]), DecodeError> {
    split_payload(datagram).map(|(index, payload)| (*index, payload))
}

/// The bytes of a size or length.
pub const fn encode_length(bytes: u64) -> [u8; RECORD_LEN] {
    bytes.to_be_bytes()
}

/// The size or length in a record.
///
/// # Errors
/// It is negative: the programs use signed numbers.
pub const fn decode_length(record: [u8; RECORD_LEN]) -> Result<u64, RecordError> {
    let length = i64::from_be_bytes(record);
    if length < 0 { Err(RecordError::Negative(length)) } else { Ok(length.unsigned_abs()) }
}

/// All packets of a blast, or of a repetition, have left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndOfBlast {
    /// Zero for the blast, then one more per repetition.
    pub round: u32,
}

impl EndOfBlast {
    /// Its bytes.
    pub fn encode(self) -> [u8; RECORD_LEN] {
        let [a, b, c, d] = self.round.to_le_bytes();
        let [x, y, z] = *END_MARK;
        [a, b, c, d, x, y, z, 0]
    }

    /// Reads one. The last byte is a pad.
    ///
    /// # Errors
    /// The mark is missing.
    pub fn decode(record: [u8; RECORD_LEN], order: ByteOrder) -> Result<Self, RecordError> {
        let [a, b, c, d, mark @ .., _] = record;
        if mark != *END_MARK {
            return Err(RecordError::NoEndMark(mark));
        }
        Ok(Self { round: order.read([a, b, c, d]) })
    }
}

/// Why a record of eight bytes was refused. The channel is of no more use then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// A negative length.
    #[error("the length {0} is negative")]
    Negative(i64),
    /// The end of a blast bears "EEE" after the round.
    #[error("the end of a blast bears {0:02x?} instead of \"EEE\"")]
    NoEndMark([u8; 3]),
}

#[cfg(test)]
mod tests;
