//! Errors of decoding a datagram.

use farhaul_units::SeqNo;

/// Why a datagram was refused.
///
/// The fault lies with the sender or the line. Count the datagram, drop it, and never answer it: answers to garbage can
/// trap two services in an endless loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// Too short for a packet of this protocol.
    #[error("a datagram of {length} bytes is shorter than the {header}-byte header")]
    TooShort {
        /// Length of the datagram in bytes.
        length: usize,
        /// Length of the header in bytes.
        header: usize,
    },
    /// A control packet, where the caller expected a data packet.
    #[error("a control packet was found where a data packet was expected")]
    NotData,
    /// A data packet, where the caller expected a control packet.
    #[error("a data packet was found where a control packet was expected")]
    NotControl,
    /// A length that the body of this packet type never has.
    #[error("{packet}: the body has {length} bytes, valid is {legal}")]
    BodyLength {
        /// Name of the packet type.
        packet: &'static str,
        /// Length of the body in bytes.
        length: usize,
        /// The valid lengths, in words.
        legal: &'static str,
    },
    /// A 31-bit number with the 32nd bit set.
    #[error("{field} is {value:#010x}, but its top bit must be zero")]
    TopBit {
        /// Name of the field.
        field: &'static str,
        /// The word on the wire.
        value: u32,
    },
    /// A value that its field never has.
    #[error("{field} is {value}, valid is {legal}")]
    OutOfRange {
        /// Name of the field.
        field: &'static str,
        /// The value on the wire.
        value: u32,
        /// The valid values, in words.
        legal: &'static str,
    },
    /// The last word of a loss list begins a range without an end.
    #[error("loss list: the range at word {word} has no end")]
    OpenRange {
        /// Index of the offending word in the body, from 0.
        word: usize,
    },
    /// A range begins where another one should end.
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
        /// The first packet of the range.
        first: SeqNo,
        /// The last packet of the range.
        last: SeqNo,
    },
}
