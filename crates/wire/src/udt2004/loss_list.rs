//! The compressed list of lost packets in a NAK (paper:udt-2004 §3.2).
//!
//! A word with top bit zero is one lost packet. A word with top bit one begins a range that ends *before* the next
//! word. From UDT 2 on, and in UDT4, the end belongs to the range.

use super::seq::SeqNo30;
use crate::DecodeError;
use crate::field::{RANGE_BIT, put_loss};
use farhaul_units::SeqNo;

/// The body of a NAK. It was checked as a whole, including the number of packets in the header.
///
/// Ranges may still overlap, repeat, or lie outside the packets sent: clip them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossList<'a> {
    words: &'a [[u8; 4]],
    count: u16,
}

/// A range of lost packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossRange {
    /// The first lost packet.
    pub first: SeqNo30,
    /// One past the last lost packet.
    pub end: SeqNo30,
}

impl LossRange {
    /// Number of packets; never zero in a decoded list.
    pub const fn len(self) -> u32 {
        let distance = self.end.distance_from(self.first);
        if distance < 0 { 0 } else { distance as u32 }
    }

    /// Whether the range is empty.
    pub const fn is_empty(self) -> bool {
        self.len() == 0
    }
}

impl<'a> LossList<'a> {
    /// Checks the body of a NAK whose header states `count` losses.
    ///
    /// # Errors
    /// The body is empty or its length is not a multiple of 4. Or a number has more than 30 bits, or a range has no
    /// end, is empty or runs backwards. Or the sum of losses is not `count`; sums above 65 535 are encoded as 65 535.
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

    /// The losses in the order of the peer's list.
    pub fn iter(&self) -> impl Iterator<Item = LossRange> + use<'a> {
        let words = self.words;
        let mut at = 0;
        core::iter::from_fn(move || {
            // Checked by `from_body`.
            let (range, taken) = read_entry(words, at).ok()?;
            at += taken;
            Some(range)
        })
    }

    /// Number of packets in the list, at most 65 535, as encoded in the header.
    pub const fn count(&self) -> u16 {
        self.count
    }

    /// The bytes as encoded on the wire.
    pub fn as_body(&self) -> &'a [u8] {
        self.words.as_flattened()
    }
}

/// Appends `ranges` to `out` as the body of a NAK, in at most `max_words` words.
///
/// Returns how many ranges were taken, and the number of losses for the header. The other ranges must wait for the next
/// NAK. One packet takes one word, more take two. Empty ranges count as taken and write nothing.
pub fn encode_losses(ranges: impl Iterator<Item = LossRange>, max_words: usize, out: &mut Vec<u8>) -> (usize, u16) {
    let (mut room, mut taken, mut sum) = (max_words, 0, 0u64);
    for range in ranges {
        if !put_loss(out, &mut room, range.len(), [range.first.value(), range.end.value()]) {
            break;
        }
        sum += u64::from(range.len());
        taken += 1;
    }
    (taken, to_count(sum))
}

fn to_count(sum: u64) -> u16 {
    u16::try_from(sum).unwrap_or(u16::MAX)
}

/// The entry that begins at `at`, and its number of words. Past the end it is an open range.
fn read_entry(words: &[[u8; 4]], at: usize) -> Result<(LossRange, usize), DecodeError> {
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
