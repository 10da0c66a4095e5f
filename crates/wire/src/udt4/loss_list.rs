//! The compressed list of lost packets in a NAK.
//!
//! A word with top bit zero is one lost packet. A word with top bit one begins a range that ends with the next word.
//! Both ends are inclusive, unlike in the 2004 paper, where the end is exclusive.

use farhaul_units::{SeqNo, SeqRange};

use crate::DecodeError;
use crate::field::{RANGE_BIT, put_loss};

/// The body of a NAK, checked as a whole.
///
/// Ranges may still overlap, repeat, or lie outside the packets sent: clip them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossList<'a> {
    words: &'a [[u8; 4]],
}

impl<'a> LossList<'a> {
    /// Checks the body of a NAK.
    ///
    /// # Errors
    /// The body is empty or its length is not a multiple of 4. Or a range has no end, has an end with the top bit set,
    /// or runs backwards.
    pub fn from_body(body: &'a [u8]) -> Result<Self, DecodeError> {
        let (words, rest) = body.as_chunks();
        if words.is_empty() || !rest.is_empty() {
            let legal = "a multiple of 4, and not 0";
            return Err(DecodeError::BodyLength { packet: "NAK", length: body.len(), legal });
        }
        let mut at = 0;
        while at < words.len() {
            at += check_entry(words, at)?;
        }
        Ok(Self { words })
    }

    /// The losses in the order of the peer's list.
    pub fn iter(&self) -> impl Iterator<Item = SeqRange> + use<'a> {
        let mut words = self.words.iter().map(|word| u32::from_be_bytes(*word));
        core::iter::from_fn(move || {
            let word = words.next()?;
            let first = SeqNo::new(word);
            let last = if word & RANGE_BIT == 0 { first } else { SeqNo::new(words.next()?) };
            Some(SeqRange::new(first, last))
        })
    }

    /// The bytes as encoded on the wire.
    pub fn as_body(&self) -> &'a [u8] {
        self.words.as_flattened()
    }
}

/// Appends `ranges` to `out` as the body of a NAK, in at most `max_words` words. Returns how many ranges were taken.
/// The others must wait for the next NAK.
///
/// One packet takes one word, more take two. Reversed ranges count as taken and write nothing. If none is written,
/// there is no NAK to send. A packet holds (MSS - 44) / 4 words.
pub fn encode_losses(ranges: impl Iterator<Item = SeqRange>, max_words: usize, out: &mut Vec<u8>) -> usize {
    let mut room = max_words;
    ranges.take_while(|range| put_loss(out, &mut room, range.len(), [range.first.value(), range.last.value()])).count()
}

/// The number of words of the entry that begins at `at`, if it is valid.
fn check_entry(words: &[[u8; 4]], at: usize) -> Result<usize, DecodeError> {
    let word = u32::from_be_bytes(words[at]);
    if word & RANGE_BIT == 0 {
        return Ok(1);
    }
    let end = u32::from_be_bytes(*words.get(at + 1).ok_or(DecodeError::OpenRange { word: at })?);
    if end & RANGE_BIT != 0 {
        return Err(DecodeError::RangeEndMarked { word: at + 1 });
    }
    let (first, last) = (SeqNo::new(word), SeqNo::new(end));
    if SeqRange::new(first, last).is_empty() {
        return Err(DecodeError::ReversedRange { packet: "NAK", first, last });
    }
    Ok(2)
}

#[cfg(test)]
mod tests;
