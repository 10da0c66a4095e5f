//! Datagrams and control records of Hurricane.
//!
//! **The format is ours.** The paper describes datagrams with ID numbers, and lists of missing IDs that travel over TCP
//! in groups (paper:ornl §3.1). It gives no layout, and no program of its authors is published.
//!
//! ```text
//! datagram  number u32 | payload, one byte at least
//! Sent      type u8 = 1 | end u32                                     sender to receiver
//! Missing   type u8 = 2 | groups u16 | groups × (first u32 | count u32)   receiver to sender
//! Terms     trigger u32 | window u32                                  in the hello of the channel
//! ```
//!
//! All numbers are big-endian. Datagrams are numbered from 0 in the order of the stream, and 0 follows 2^31 − 1. The
//! payload continues where that of the datagram before it ends, so its length may differ from datagram to datagram.
//! Between Farhaul programs a tag stands before each datagram ([`blast::Tag`](crate::blast::Tag)).

use farhaul_units::{SeqNo, SeqRange};

use crate::DecodeError;
use crate::blast::{Cursor, RecordError, seq_of_record};
use crate::field::{read_seq, split_payload};

/// Bytes of a datagram before its payload.
pub const HEADER_LEN: usize = 4;
/// Most groups of one list, 8 KiB. A long list stalls the sender (paper:ornl §3.1), so more travel in several records.
pub const MAX_GROUPS: usize = 1024;
/// Most datagrams of one group: a quarter of the numbers, so that before and after stay distinct.
pub const MAX_COUNT: u32 = 1 << 29;

/// Bytes of a group.
const GROUP_LEN: usize = 8;

/// The number and the payload of a datagram.
///
/// # Errors
/// The datagram has no payload, or the top bit of its number is set.
pub fn split(datagram: &[u8]) -> Result<(SeqNo, &[u8]), DecodeError> {
    let (number, payload) = split_payload(datagram)?;
    Ok((read_seq("number", u32::from_be_bytes(*number))?, payload))
}

/// Wishes of a sender for its receiver, in the hello of the channel. Zero leaves a value to the receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// Missing datagrams that cause a request.
    pub trigger: u32,
    /// The time in which they are counted, in thousandths of an RTT.
    pub window: u32,
}

impl Terms {
    /// Bytes of these terms.
    pub const LEN: usize = 8;

    /// Their bytes.
    pub fn encode(self) -> [u8; Self::LEN] {
        let ([a, b, c, d], [e, f, g, h]) = (self.trigger.to_be_bytes(), self.window.to_be_bytes());
        [a, b, c, d, e, f, g, h]
    }

    /// Reads them. A hello without terms leaves all to the receiver.
    ///
    /// # Errors
    /// The hello has another length.
    pub fn decode(hello: &[u8]) -> Result<Self, RecordError> {
        if hello.is_empty() {
            return Ok(Self::default());
        }
        let mut rest = Cursor::new(hello);
        match (rest.array(), rest.array(), hello.len()) {
            (Some(trigger), Some(window), Self::LEN) => {
                Ok(Self { trigger: u32::from_be_bytes(trigger), window: u32::from_be_bytes(window) })
            }
            _ => {
                let (field, value) = ("length of Hurricane's hello", hello.len() as u64);
                Err(RecordError::OutOfRange { field, value, valid: "0 or 8" })
            }
        }
    }
}

/// A control record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// The sender has sent all datagrams before this number, and pauses. So the receiver can miss the last ones.
    Sent(SeqNo),
    /// The datagrams that the receiver misses.
    Missing(Groups<'a>),
}

/// The types of records.
mod kind {
    pub(super) const SENT: u8 = 1;
    pub(super) const MISSING: u8 = 2;
}

impl<'a> Record<'a> {
    /// Reads one from the front of `bytes`. Returns it with its length, or `None` if more bytes are needed.
    ///
    /// # Errors
    /// The type is unknown, a number has its top bit set, or a list or a group has a length that it never has.
    pub fn decode(bytes: &'a [u8]) -> Result<Option<(Self, usize)>, RecordError> {
        let mut rest = Cursor::new(bytes);
        let Some([kind]) = rest.array() else { return Ok(None) };
        let record = match kind {
            kind::SENT => {
                let Some(end) = rest.array() else { return Ok(None) };
                Self::Sent(seq_of_record("end of the datagrams sent", end)?)
            }
            kind::MISSING => {
                let Some(groups) = rest.array().map(u16::from_be_bytes) else { return Ok(None) };
                if !(1..=MAX_GROUPS).contains(&usize::from(groups)) {
                    let (field, valid) = ("number of groups of missing datagrams", "1 to 1024");
                    return Err(RecordError::OutOfRange { field, value: groups.into(), valid });
                }
                let Some(body) = rest.take(usize::from(groups) * GROUP_LEN) else { return Ok(None) };
                Self::Missing(Groups::new(body)?)
            }
            other => return Err(RecordError::UnknownType(other)),
        };
        Ok(Some((record, rest.at())))
    }
}

/// Appends a record [`Record::Sent`].
pub fn encode_sent(end: SeqNo, out: &mut Vec<u8>) {
    out.push(kind::SENT);
    out.extend_from_slice(&end.value().to_be_bytes());
}

/// Appends one record [`Record::Missing`] with as many of `ranges` as it holds, and returns their number. It appends
/// nothing if there are none. Empty ranges are skipped.
pub fn encode_missing(ranges: impl Iterator<Item = SeqRange>, out: &mut Vec<u8>) -> usize {
    let at = out.len();
    out.extend_from_slice(&[kind::MISSING, 0, 0]);
    let mut groups: u16 = 0;
    for range in ranges.filter(|range| !range.is_empty()).take(MAX_GROUPS) {
        out.extend_from_slice(&range.first.value().to_be_bytes());
        out.extend_from_slice(&range.len().min(MAX_COUNT).to_be_bytes());
        groups += 1;
    }
    if groups == 0 {
        out.truncate(at);
    } else {
        out[at + 1..at + 3].copy_from_slice(&groups.to_be_bytes());
    }
    usize::from(groups)
}

/// The groups of a list, checked as a whole. They may still overlap, repeat, or lie outside the datagrams sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Groups<'a> {
    groups: &'a [[u8; GROUP_LEN]],
}

impl<'a> Groups<'a> {
    /// Checks each group of a list.
    fn new(body: &'a [u8]) -> Result<Self, RecordError> {
        let (groups, _) = body.as_chunks();
        for group in groups {
            read_group(group)?;
        }
        Ok(Self { groups })
    }

    /// The groups in the order of the list.
    pub fn iter(&self) -> impl Iterator<Item = SeqRange> + use<'a> {
        // Checked by `new`.
        self.groups.iter().filter_map(|group| read_group(group).ok())
    }
}

/// The datagrams of a group.
fn read_group(group: &[u8; GROUP_LEN]) -> Result<SeqRange, RecordError> {
    let [a, b, c, d, count @ ..] = *group;
    let first = seq_of_record("first datagram of a group", [a, b, c, d])?;
    let count = u32::from_be_bytes(count);
    if !(1..=MAX_COUNT).contains(&count) {
        let (field, valid) = ("number of datagrams of a group", "1 to 2^29");
        return Err(RecordError::OutOfRange { field, value: count.into(), valid });
    }
    Ok(SeqRange::new(first, first.plus(count - 1)))
}

#[cfg(test)]
mod tests;
