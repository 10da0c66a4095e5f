//! What several formats share: bodies of big-endian 32-bit words in their order, fields with a narrower range, ranges of lost
//! packets, and bitmaps.

use core::time::Duration;

use farhaul_units::{AckNo, SeqNo};

use crate::DecodeError;

/// The words of a body that has exactly `N` of them: `legal` bytes.
#[inline]
pub(crate) fn read_words<const N: usize>(
    packet: &'static str,
    body: &[u8],
    legal: &'static str,
) -> Result<[u32; N], DecodeError> {
    let words = match body.as_chunks() {
        (words, []) => <&[[u8; 4]; N]>::try_from(words).ok(),
        _ => None,
    };
    let words = words.ok_or(DecodeError::BodyLength { packet, length: body.len(), legal })?;
    Ok(words.map(u32::from_be_bytes))
}

/// The header of `N` bytes and the payload of a datagram, which must not be empty.
#[inline]
pub(crate) fn split_payload<const N: usize>(datagram: &[u8]) -> Result<(&[u8; N], &[u8]), DecodeError> {
    let parts = datagram.split_first_chunk().filter(|(_, payload)| !payload.is_empty());
    parts.ok_or(DecodeError::TooShort { length: datagram.len(), header: N + 1 })
}

/// Appends words.
#[inline]
pub(crate) fn put_words<const N: usize>(out: &mut Vec<u8>, words: [u32; N]) {
    out.extend_from_slice(words.map(u32::to_be_bytes).as_flattened());
}

/// A word whose top bit must be zero.
#[inline]
pub(crate) const fn below_2_31(field: &'static str, value: u32) -> Result<u32, DecodeError> {
    if value >> 31 == 0 { Ok(value) } else { Err(DecodeError::TopBit { field, value }) }
}

#[inline]
pub(crate) fn read_seq(field: &'static str, word: u32) -> Result<SeqNo, DecodeError> {
    below_2_31(field, word).map(SeqNo::new)
}

#[inline]
pub(crate) fn read_ack_number(field: &'static str, word: u32) -> Result<AckNo, DecodeError> {
    below_2_31(field, word).map(AckNo::new)
}

pub(crate) fn read_micros(word: u32) -> Duration {
    Duration::from_micros(word.into())
}

/// Whole microseconds, at most 2^32 - 1.
pub(crate) fn micros(time: Duration) -> u32 {
    u32::try_from(time.as_micros()).unwrap_or(u32::MAX)
}

/// The mark of a word that begins a range of lost packets, which the next word ends.
pub(crate) const RANGE_BIT: u32 = 1 << 31;

/// Appends a range of lost packets, of one word or two, unless it is empty. Returns false if it does not fit in `room` words.
pub(crate) fn put_loss(out: &mut Vec<u8>, room: &mut usize, packets: u32, [first, end]: [u32; 2]) -> bool {
    let Some(rest) = room.checked_sub(packets.min(2) as usize) else { return false };
    *room = rest;
    match packets {
        0 => {}
        1 => put_words(out, [first]),
        _ => put_words(out, [first | RANGE_BIT, end]),
    }
    true
}

/// Clears the bits `first` to `last` of a bitmap, both inclusive. The lowest bit of a byte comes first.
pub(crate) fn clear_bits(bits: &mut [u8], first: u32, last: u32) {
    let (from, to) = ((first / 8) as usize, (last / 8) as usize);
    let (head, tail) = (0xFF << (first % 8), 0xFF >> (7 - last % 8));
    if from == to {
        bits[from] &= !(head & tail);
        return;
    }
    bits[from] &= !head;
    bits[from + 1..to].fill(0);
    bits[to] &= !tail;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_big_endian() {
        let mut bytes = Vec::new();
        put_words(&mut bytes, [7, 0x0102_0304]);
        assert_eq!(bytes, [0, 0, 0, 7, 1, 2, 3, 4]);
        assert_eq!(read_words("test", &bytes, "8"), Ok([7, 0x0102_0304]));
    }

    #[test]
    fn another_number_of_words_is_refused_and_told() {
        let wrong = |length| Err(DecodeError::BodyLength { packet: "test", length, legal: "8" });
        for length in [0, 4, 7, 9, 12] {
            assert_eq!(read_words::<2>("test", &[0; 12][..length], "8"), wrong(length));
        }
    }

    #[test]
    fn a_top_bit_is_refused_and_named() {
        let value = 0x8000_0001;
        assert_eq!(below_2_31("second", value), Err(DecodeError::TopBit { field: "second", value }));
    }
}
