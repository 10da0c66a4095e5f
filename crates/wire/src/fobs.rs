//! Datagrams and control records of FOBS.
//!
//! **The format is ours.** A study of the program names its messages: ENDOFSEGMENT, DONE, FEEDBACK, ACK on one TCP
//! connection, COMPLETED and WRITECOMPLETED on another (the net100 study of ORNL). Neither a layout nor the program is
//! published. Here all records travel on the one control channel of a connection. WRITECOMPLETED has no counterpart,
//! because sessions confirm what was stored.
//!
//! ```text
//! datagram  number u32 | payload, one byte at least
//! Done      type u8 = 1 | end u32 | bytes u32                                 sender to receiver
//! Segment   type u8 = 2 | segment u32 | first u32 | packets u32               sender to receiver
//! Feedback  type u8 = 3 | segment u32 | first u32 | packets u32 | bitmap      receiver to sender
//! Ack       type u8 = 4 | 0 u32       | first u32 | packets u32 | bitmap      receiver to sender
//! Completed type u8 = 5 | end u32                                             receiver to sender
//! Terms     version u8 | ordered u8 | packets u32                             in the hello of the channel
//! ```
//!
//! All numbers are big-endian. Packets are numbered from 0 in the order of the stream, and 0 follows 2^31 − 1. An object
//! begins where the one before it ends. All of its packets but the last carry the same length of payload.
//!
//! A bitmap has one bit for each packet from `first` on, which is 1 if the packet has arrived. The lowest bit of a byte
//! comes first. The bits behind the last packet are 0.

use farhaul_units::{SeqNo, SeqRange};
use num_enum::TryFromPrimitive;

use crate::DecodeError;
use crate::blast::{Cursor, RecordError, seq_of_record};
use crate::field::{read_seq, split_payload};

mod bitmap;

pub use bitmap::Bitmap;

/// Bytes of a datagram before its payload.
pub const HEADER_LEN: usize = 4;
/// Most packets of one bitmap, 16 KiB. So a record never costs more than two frames of a channel.
pub const MAX_PACKETS: u32 = 1 << 17;
/// Most bytes of an object. The original's objects have 100 MB.
pub const MAX_OBJECT: u32 = 1 << 30;

/// The number and the payload of a datagram.
///
/// # Errors
/// The datagram has no payload, or the top bit of its number is set.
pub fn split(datagram: &[u8]) -> Result<(SeqNo, &[u8]), DecodeError> {
    let (number, payload) = split_payload(datagram)?;
    Ok((read_seq("number", u32::from_be_bytes(*number))?, payload))
}

/// The version of the program whose rules a sender follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, TryFromPrimitive)]
#[repr(u8)]
pub enum Version {
    /// Loss information after each segment, and a rate that follows it.
    #[default]
    Segments = 0,
    /// Acknowledgements of everything after some packets, and no adaptation of the rate.
    Greedy = 1,
}

/// Wishes of a sender for its receiver, in the hello of the channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// The rules of the sender.
    pub version: Version,
    /// Whether bytes in order may be read before their object is complete.
    pub ordered: bool,
    /// Greedy: new packets per acknowledgement. Zero leaves it to the receiver.
    pub packets: u32,
}

impl Terms {
    /// Bytes of these terms.
    pub const LEN: usize = 6;

    /// Their bytes.
    pub fn encode(self) -> [u8; Self::LEN] {
        let [a, b, c, d] = self.packets.to_be_bytes();
        [self.version as u8, u8::from(self.ordered), a, b, c, d]
    }

    /// Reads them. An empty hello has the default terms.
    ///
    /// # Errors
    /// The hello has another length, or a value that its field never has.
    pub fn decode(hello: &[u8]) -> Result<Self, RecordError> {
        let wrong = |field, value, valid| RecordError::OutOfRange { field, value, valid };
        let [version, ordered, packets @ ..]: [u8; Self::LEN] = match hello.try_into() {
            Ok(hello) => hello,
            Err(_) if hello.is_empty() => return Ok(Self::default()),
            Err(_) => return Err(wrong("length of FOBS' hello", hello.len() as u64, "0 or 6")),
        };
        let unknown = |_| wrong("version of FOBS", version.into(), "0 or 1");
        let version = Version::try_from_primitive(version).map_err(unknown)?;
        let ordered = match ordered {
            0 => false,
            1 => true,
            other => return Err(wrong("FOBS' flag for order", other.into(), "0 or 1")),
        };
        Ok(Self { version, ordered, packets: u32::from_be_bytes(packets) })
    }
}

/// A control record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// The present object is complete at the sender: it has this many bytes, and ends before packet `end`.
    Done {
        /// The first packet of the next object.
        end: SeqNo,
        /// Payload bytes of the object, at least 1.
        bytes: u32,
    },
    /// All packets of a segment have left. The receiver answers with [`Record::Feedback`] of the same range.
    Segment(Segment),
    /// The packets of a segment's range that have arrived.
    Feedback(Segment, Bitmap<'a>),
    /// Greedy: the packets of a range that have arrived. The segment has no meaning and is zero.
    Ack(Segment, Bitmap<'a>),
    /// All objects before this packet have arrived.
    Completed(SeqNo),
}

/// A segment, and the range of its packets. Packets between them that were not sent again may belong to the range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The number of the segment.
    pub number: u32,
    /// The range, of 1 to [`MAX_PACKETS`] packets.
    pub range: SeqRange,
}

/// The types of records.
mod kind {
    pub(super) const DONE: u8 = 1;
    pub(super) const SEGMENT: u8 = 2;
    pub(super) const FEEDBACK: u8 = 3;
    pub(super) const ACK: u8 = 4;
    pub(super) const COMPLETED: u8 = 5;
}

impl<'a> Record<'a> {
    /// Reads one from the front of `bytes`. Returns it with its length, or `None` if more bytes are needed.
    ///
    /// # Errors
    /// The type is unknown, or a field has a value that it never has.
    pub fn decode(bytes: &'a [u8]) -> Result<Option<(Self, usize)>, RecordError> {
        let mut rest = Cursor::new(bytes);
        let Some([kind]) = rest.array() else { return Ok(None) };
        let record = match kind {
            kind::DONE => {
                let (Some(end), Some(bytes)) = (rest.array(), rest.array()) else { return Ok(None) };
                let (end, bytes) = (seq_of_record("end of an object", end)?, u32::from_be_bytes(bytes));
                if !(1..=MAX_OBJECT).contains(&bytes) {
                    let (field, value) = ("bytes of an object", bytes.into());
                    return Err(RecordError::OutOfRange { field, value, valid: "1 to 2^30" });
                }
                Self::Done { end, bytes }
            }
            kind::SEGMENT | kind::FEEDBACK | kind::ACK => {
                let (Some(number), Some(first), Some(packets)) = (rest.array(), rest.array(), rest.array()) else {
                    return Ok(None);
                };
                let segment = segment(u32::from_be_bytes(number), first, u32::from_be_bytes(packets))?;
                if kind == kind::SEGMENT {
                    Self::Segment(segment)
                } else {
                    let packets = segment.range.len();
                    let Some(body) = rest.take(Bitmap::bytes_for(packets)) else { return Ok(None) };
                    let bitmap = Bitmap::new(body, packets)?;
                    if kind == kind::ACK { Self::Ack(segment, bitmap) } else { Self::Feedback(segment, bitmap) }
                }
            }
            kind::COMPLETED => {
                let Some(end) = rest.array() else { return Ok(None) };
                Self::Completed(seq_of_record("end of the completed objects", end)?)
            }
            other => return Err(RecordError::UnknownType(other)),
        };
        Ok(Some((record, rest.at())))
    }
}

/// Appends a record [`Record::Done`].
pub fn encode_done(end: SeqNo, bytes: u32, out: &mut Vec<u8>) {
    out.push(kind::DONE);
    out.extend_from_slice(&end.value().to_be_bytes());
    out.extend_from_slice(&bytes.to_be_bytes());
}

/// Appends a record [`Record::Segment`].
pub fn encode_segment(segment: Segment, out: &mut Vec<u8>) {
    put_segment(kind::SEGMENT, segment, out);
}

/// Appends a record [`Record::Feedback`]. `missing` are the ranges of the segment that have not arrived, in order.
pub fn encode_feedback(segment: Segment, missing: impl Iterator<Item = SeqRange>, out: &mut Vec<u8>) {
    put_segment(kind::FEEDBACK, segment, out);
    bitmap::encode(segment.range, missing, out);
}

/// Appends a record [`Record::Ack`]. `missing` are the packets of `range` that have not arrived, in order.
pub fn encode_ack(range: SeqRange, missing: impl Iterator<Item = SeqRange>, out: &mut Vec<u8>) {
    put_segment(kind::ACK, Segment { number: 0, range }, out);
    bitmap::encode(range, missing, out);
}

/// Appends a record [`Record::Completed`].
pub fn encode_completed(end: SeqNo, out: &mut Vec<u8>) {
    out.push(kind::COMPLETED);
    out.extend_from_slice(&end.value().to_be_bytes());
}

fn put_segment(kind: u8, segment: Segment, out: &mut Vec<u8>) {
    out.push(kind);
    out.extend_from_slice(&segment.number.to_be_bytes());
    out.extend_from_slice(&segment.range.first.value().to_be_bytes());
    out.extend_from_slice(&segment.range.len().to_be_bytes());
}

fn segment(number: u32, first: [u8; 4], packets: u32) -> Result<Segment, RecordError> {
    let first = seq_of_record("first packet of a segment", first)?;
    if !(1..=MAX_PACKETS).contains(&packets) {
        let (field, value) = ("packets of a segment", packets.into());
        return Err(RecordError::OutOfRange { field, value, valid: "1 to 2^17" });
    }
    Ok(Segment { number, range: SeqRange::new(first, first.plus(packets - 1)) })
}

#[cfg(test)]
mod tests;
