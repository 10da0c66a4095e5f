//! The compressed list of lost packets in a NAK (paper:udt-2004 §3.2).
//!
//! A word with the top bit clear is one lost packet; a word with the top bit set begins a range that ends *before* the next
//! word. From UDT 2 on, and in UDT4, the end belongs to the range.

use super::seq::SeqNo30;
use crate::DecodeError;
use farhaul_units::SeqNo;

const WORD_LEN: usize = 4;
const RANGE_BIT: u32 = 1 << 31;

/// The body of a NAK, seen to be well formed as a whole before anybody acts on any part of it, and to hold as many packets as
/// the header says.
///
/// Ranges may still overlap, repeat, or lie outside anything that was sent: clip them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossList<'a> {
    words: &'a [[u8; WORD_LEN]],
    count: u16,
}

/// Lost packets side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossRange {
    /// The first one.
    pub first: SeqNo30,
    /// The first one that is not lost.
    pub end: SeqNo30,
}

impl LossRange {
    /// Number of packets; never zero in a list that was decoded.
    pub const fn len(self) -> u32 {
        let distance = self.end.distance_from(self.first);
        if distance < 0 { 0 } else { distance as u32 }
    }

    /// Whether there is none.
    pub const fn is_empty(self) -> bool {
        self.len() == 0
    }
}

impl<'a> LossList<'a> {
    /// Checks the body of a NAK whose header speaks of `count` losses.
    ///
    /// # Errors
    /// An empty body, a length that is not a multiple of 4, a number of more than 30 bits, a range without an end, one that is
    /// empty or runs backwards, or another sum of losses; a sum above 65 535 is written as 65 535.
    pub fn from_body(count: u16, body: &'a [u8]) -> Result<Self, DecodeError> {
        let (words, rest) = body.as_chunks();
        if words.is_empty() || !rest.is_empty() {
            let legal = "a multiple of 4, and not 0";
            return Err(DecodeError::BodyLength { packet: "NAK", length: body.len(), legal });
        }
        let mut at = 0;
        let mut sum = 0u64;
        while at < words.len() {
            let (range, taken) = read_entry(words, at)?;
            sum += u64::from(range.len());
            at += taken;
        }
        if to_count(sum) != count {
            return Err(DecodeError::OutOfRange { field: "number of losses", value: count.into(), legal: "their sum" });
        }
        Ok(Self { words, count })
    }

    /// The losses in the order in which the peer lists them.
    pub fn iter(&self) -> impl Iterator<Item = LossRange> + use<'a> {
        let words = self.words;
        let mut at = 0;
        core::iter::from_fn(move || {
            // It was seen to be well formed.
            let (range, taken) = read_entry(words, at).ok()?;
            at += taken;
            Some(range)
        })
    }

    /// How many packets it lists, at most 65 535: the header's word.
    pub const fn count(&self) -> u16 {
        self.count
    }

    /// The bytes as they stand on the wire.
    pub fn as_body(&self) -> &'a [u8] {
        self.words.as_flattened()
    }
}

/// Appends `ranges` to `out` as the body of a NAK, in at most `max_words` words. Returns how many of them were taken, the rest
/// must wait for the next NAK, and the number of losses for the header.
///
/// One packet takes one word, more take two. Empty ranges count as taken and leave nothing behind.
pub fn encode_losses(ranges: impl Iterator<Item = LossRange>, max_words: usize, out: &mut Vec<u8>) -> (usize, u16) {
    let (mut room, mut taken, mut sum) = (max_words, 0, 0u64);
    for range in ranges {
        let cost = range.len().min(2) as usize;
        if cost > room {
            break;
        }
        match cost {
            0 => {}
            1 => out.extend_from_slice(&range.first.value().to_be_bytes()),
            _ => {
                out.extend_from_slice(&(range.first.value() | RANGE_BIT).to_be_bytes());
                out.extend_from_slice(&range.end.value().to_be_bytes());
            }
        }
        room -= cost;
        sum += u64::from(range.len());
        taken += 1;
    }
    (taken, to_count(sum))
}

fn to_count(sum: u64) -> u16 {
    u16::try_from(sum).unwrap_or(u16::MAX)
}

/// The entry that begins at `at`, and how many words it takes. Past the end it is an open range.
fn read_entry(words: &[[u8; WORD_LEN]], at: usize) -> Result<(LossRange, usize), DecodeError> {
    let word_at = |at: usize| words.get(at).map(|word| u32::from_be_bytes(*word));
    let word = word_at(at).ok_or(DecodeError::OpenRange { word: at })?;
    let first = SeqNo30::from_word("lost packet", word & !RANGE_BIT)?;
    if word & RANGE_BIT == 0 {
        return Ok((LossRange { first, end: first.plus(1) }, 1));
    }
    let end = word_at(at + 1).ok_or(DecodeError::OpenRange { word: at })?;
    if end & RANGE_BIT != 0 {
        return Err(DecodeError::RangeEndMarked { word: at + 1 });
    }
    let range = LossRange { first, end: SeqNo30::from_word("end of a range", end)? };
    if range.is_empty() {
        let (first, last) = (SeqNo::new(first.value()), SeqNo::new(range.end.value()));
        return Err(DecodeError::ReversedRange { packet: "NAK", first, last });
    }
    Ok((range, 2))
}
