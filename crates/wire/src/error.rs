//! Why a datagram is not a packet: what is wrong, and where.

use farhaul_units::SeqNo;

/// Why a datagram was refused.
///
/// Always the sender's fault, or line noise: count it, drop it, and never answer it (an answer to garbage is how two
/// services are talked into an endless loop).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// Too short to be any packet of its protocol.
    #[error("a datagram of {length} bytes is shorter than the {header}-byte header")]
    TooShort {
        /// Length of the datagram in bytes.
        length: usize,
        /// Length of the header in bytes.
        header: usize,
    },
    /// A control packet where a data packet was asked for.
    #[error("a control packet stands where a data packet was expected")]
    NotData,
    /// A data packet where a control packet was asked for.
    #[error("a data packet stands where a control packet was expected")]
    NotControl,
    /// The body has a length that this type of packet never has.
    #[error("{packet}: a body of {length} bytes; legal is {legal}")]
    BodyLength {
        /// Name of the packet type.
        packet: &'static str,
        /// Length of the body in bytes.
        length: usize,
        /// The legal lengths, in words.
        legal: &'static str,
    },
    /// A number of 31 bits came with the 32nd bit set.
    #[error("{field} is {value:#010x}: the top bit is never part of it")]
    TopBit {
        /// Name of the field.
        field: &'static str,
        /// The word as it came.
        value: u32,
    },
    /// A number that its field never holds.
    #[error("{field} is {value}; legal is {legal}")]
    OutOfRange {
        /// Name of the field.
        field: &'static str,
        /// The value as it came.
        value: u32,
        /// The legal values, in words.
        legal: &'static str,
    },
    /// The last word of a loss list begins a range that nothing ends.
    #[error("loss list: word {word} begins a range and is the last one")]
    OpenRange {
        /// Index of the offending word in the body, from 0.
        word: usize,
    },
    /// The word that should end a range begins another.
    #[error("loss list: word {word} should end a range but begins one")]
    RangeEndMarked {
        /// Index of the offending word in the body, from 0.
        word: usize,
    },
    /// A range whose end comes before its beginning.
    #[error("{packet}: the range {first} to {last} runs backwards")]
    ReversedRange {
        /// Name of the packet type.
        packet: &'static str,
        /// The packet said to be the first.
        first: SeqNo,
        /// The packet said to be the last.
        last: SeqNo,
    },
}
