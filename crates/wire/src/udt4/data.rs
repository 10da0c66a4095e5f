//! Data packets: sequence number, message field, and the header around a payload. The hot path.

use core::ops::Range;

use farhaul_units::{MsgNo, SeqNo};

use super::header::{CONTROL_BIT, HEADER_LEN, SocketId, Timestamp, read_destination, split, words_of};
use crate::DecodeError;

/// Where the time stamp stands in the header.
const TIMESTAMP: Range<usize> = 8..12;
const POSITION_SHIFT: u32 = 30;
const IN_ORDER_BIT: u32 = 1 << 29;

/// The position of a packet in its message. The values are the two bits on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Position {
    /// Neither first nor last.
    Middle = 0,
    /// The last of several.
    Last = 1,
    /// The first of several.
    First = 2,
    /// The whole message.
    Only = 3,
}

impl Position {
    /// The position of packet number `index` (from 0) in a message of `count` packets.
    pub const fn of(index: usize, count: usize) -> Self {
        match (index == 0, index + 1 >= count) {
            (true, true) => Self::Only,
            (true, false) => Self::First,
            (false, true) => Self::Last,
            (false, false) => Self::Middle,
        }
    }

    /// Whether a message begins here.
    pub const fn is_first(self) -> bool {
        matches!(self, Self::First | Self::Only)
    }

    /// Whether a message ends here.
    pub const fn is_last(self) -> bool {
        matches!(self, Self::Last | Self::Only)
    }
}

/// Word 1 of a data packet: the message to which the payload belongs. Streams number each chunk of `send` the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MessageField {
    /// The position of the packet in the message.
    pub position: Position,
    /// Whether the message must be delivered after all earlier ones.
    pub in_order: bool,
    /// The message.
    pub message: MsgNo,
}

impl MessageField {
    /// Reads word 1. All of its 2^32 values are valid.
    #[inline]
    pub const fn from_word(word: u32) -> Self {
        let position = match word >> POSITION_SHIFT {
            0 => Position::Middle,
            1 => Position::Last,
            2 => Position::First,
            _ => Position::Only,
        };
        Self { position, in_order: word & IN_ORDER_BIT != 0, message: MsgNo::new(word) }
    }

    /// The word for the wire.
    #[inline]
    pub const fn to_word(self) -> u32 {
        let order = if self.in_order { IN_ORDER_BIT } else { 0 };
        (self.position as u32) << POSITION_SHIFT | order | self.message.value()
    }
}

/// The 16 bytes before the payload of a data packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataHeader {
    /// The sequence number, one more for each new packet.
    pub seq: SeqNo,
    /// The message to which the payload belongs.
    pub field: MessageField,
    /// When the packet was sent or retransmitted.
    pub timestamp: Timestamp,
    /// The destination socket.
    pub destination: SocketId,
}

impl DataHeader {
    /// Reads a data packet into its header and payload.
    ///
    /// # Errors
    /// The datagram is shorter than a header or a control packet, or its destination is invalid.
    #[inline]
    pub fn decode(datagram: &[u8]) -> Result<(Self, &[u8]), DecodeError> {
        let ([seq, field, timestamp, destination], payload) = split(datagram)?;
        if seq & CONTROL_BIT != 0 {
            return Err(DecodeError::NotData);
        }
        let header = Self {
            seq: SeqNo::new(seq),
            field: MessageField::from_word(field),
            timestamp: Timestamp::new(timestamp),
            destination: read_destination(destination)?,
        };
        Ok((header, payload))
    }

    /// Writes the header in front of a payload.
    #[inline]
    pub fn encode(&self, out: &mut [u8; HEADER_LEN]) {
        let Self { seq, field, timestamp, destination } = *self;
        let words = [seq.value(), field.to_word(), timestamp.value(), destination.value()];
        for (out, word) in out.as_chunks_mut().0.iter_mut().zip(words) {
            *out = word.to_be_bytes();
        }
    }

    /// Sets the time stamp of an encoded packet, which may be encoded long before it leaves. Does nothing if `packet`
    /// is shorter than a header.
    #[inline]
    pub fn set_timestamp(packet: &mut [u8], timestamp: Timestamp) {
        if let Some(head) = packet.first_chunk_mut::<HEADER_LEN>() {
            head[TIMESTAMP].copy_from_slice(&timestamp.value().to_be_bytes());
        }
    }

    /// The time stamp of an encoded packet; zero if it is shorter than a header.
    #[inline]
    pub fn timestamp_of(packet: &[u8]) -> Timestamp {
        split(packet).map_or(Timestamp::ZERO, |([_, _, timestamp, _], _)| Timestamp::new(timestamp))
    }

    /// The message field of an encoded header.
    #[inline]
    pub fn field_of(head: &[u8; HEADER_LEN]) -> MessageField {
        MessageField::from_word(words_of(head)[1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_position_follows_from_index_and_count() {
        let of_three: Vec<Position> = (0..3).map(|index| Position::of(index, 3)).collect();
        assert_eq!(of_three, [Position::First, Position::Middle, Position::Last]);
        assert_eq!(Position::of(0, 1), Position::Only);
    }

    #[test]
    fn the_stamp_changes_in_place() {
        let mut packet = [0; 20];
        DataHeader::set_timestamp(&mut packet, Timestamp::new(0x0102_0304));
        assert_eq!(packet[8..16], [1, 2, 3, 4, 0, 0, 0, 0]);
        assert_eq!(DataHeader::timestamp_of(&packet), Timestamp::new(0x0102_0304));
    }

    #[test]
    fn a_packet_shorter_than_a_header_is_neither_stamped_nor_read() {
        let mut stub = [0; 15];
        DataHeader::set_timestamp(&mut stub, Timestamp::new(1));
        assert_eq!(stub, [0; 15]);
        assert_eq!(DataHeader::timestamp_of(&stub), Timestamp::ZERO);
        assert_eq!(DataHeader::decode(&stub), Err(DecodeError::TooShort { length: 15, header: HEADER_LEN }));
    }
}
