//! Tells new data from retransmissions by the numbers on the wire.

use crate::packet::Share;

/// The first bit of a UDT packet: 1 in control packets.
const CONTROL: u32 = 1 << 31;
/// Bytes of a number.
const NUMBER: usize = 4;

/// Tells new data from retransmissions by the numbers in the datagrams of one direction of one connection.
///
/// In all generations of UDT, data packets begin with a 0 bit and then their sequence number. Other protocols
/// [number](FirstTimes::numbered) their datagrams elsewhere.
#[derive(Clone, Copy, Debug)]
pub struct FirstTimes {
    /// Bytes before the number.
    before: usize,
    /// How many numbers there are. The first one follows the last.
    numbers: u64,
    /// Whether the number has the first bit, which marks control packets otherwise.
    whole_word: bool,
    is_little_endian: bool,
    in_blasts: bool,
    /// The highest number sent so far.
    highest: Option<u32>,
}

impl FirstTimes {
    /// UDT4: 31 bits.
    pub const UDT4: Self = Self { whole_word: false, ..Self::numbered(1 << 31) };

    /// The protocol of the 2004 paper: 30 bits.
    pub const UDT_2004: Self = Self { whole_word: false, ..Self::numbered(1 << 30) };

    /// Datagrams that begin with a number of 32 bits, big-endian. There are `numbers` of them, and the first one follows
    /// the last. Shorter datagrams are control.
    pub const fn numbered(numbers: u64) -> Self {
        Self { before: 0, numbers, whole_word: true, is_little_endian: false, in_blasts: false, highest: None }
    }

    /// The number stands behind so many bytes, such as a tag.
    #[must_use]
    pub const fn behind(mut self, bytes: usize) -> Self {
        self.before = bytes;
        self
    }

    /// The number is little-endian.
    #[must_use]
    pub const fn little_endian(mut self) -> Self {
        self.is_little_endian = true;
        self
    }

    /// Every blast begins again with number zero, and sends all its datagrams in order before it repeats any. If number
    /// zero itself is repeated, that one repetition counts as new.
    #[must_use]
    pub const fn in_blasts(mut self) -> Self {
        self.in_blasts = true;
        self
    }

    /// The share of the traffic to which `datagram`, which is about to be sent, belongs.
    pub fn share(&mut self, datagram: &[u8]) -> Share {
        let word = datagram.get(self.before..).and_then(<[u8]>::first_chunk::<NUMBER>);
        let Some(word) = word else { return Share::Control };
        let word = if self.is_little_endian { u32::from_le_bytes(*word) } else { u32::from_be_bytes(*word) };
        if !self.whole_word && word & CONTROL != 0 {
            return Share::Control;
        }
        let ahead = match self.highest {
            None => true,
            Some(highest) if self.in_blasts => word == 0 || word == highest.wrapping_add(1),
            Some(highest) => (1..self.numbers / 2).contains(&self.distance(highest, word)),
        };
        if ahead {
            self.highest = Some(word);
        }
        if ahead { Share::New } else { Share::Repeated }
    }

    /// How far `to` is ahead of `from`.
    fn distance(&self, from: u32, to: u32) -> u64 {
        let (from, to) = (u64::from(from), u64::from(to));
        if to >= from { to - from } else { to + self.numbers.saturating_sub(from) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(mut numbering: FirstTimes, words: &[u32]) -> Vec<Share> {
        words.iter().map(|word| numbering.share(&word.to_be_bytes())).collect()
    }

    #[test]
    fn only_numbers_above_the_highest_are_new_data() {
        use Share::{Control, New, Repeated};
        let words = [5, 6, 8, 6, 8, 9, CONTROL | 10, 10];
        assert_eq!(shares(FirstTimes::UDT4, &words), [New, New, New, Repeated, Repeated, New, Control, New]);
    }

    #[test]
    fn numbers_wrap_to_zero() {
        for (numbering, last) in [(FirstTimes::UDT4, (1 << 31) - 1), (FirstTimes::UDT_2004, (1 << 30) - 1)] {
            let words = [last - 1, last, 0, last, 1];
            assert_eq!(shares(numbering, &words), [Share::New, Share::New, Share::New, Share::Repeated, Share::New]);
        }
    }

    #[test]
    fn a_datagram_too_short_for_a_number_is_control() {
        let mut numbering = FirstTimes::UDT4;
        assert_eq!(numbering.share(&[0, 0, 0]), Share::Control);
    }

    #[test]
    fn numbers_may_stand_behind_a_tag_and_have_any_count() {
        use Share::{Control, New, Repeated};
        let mut numbering = FirstTimes::numbered(100_000_000).behind(8);
        let mut share = |number: u32| numbering.share(&[&[0xff; 8][..], &number.to_be_bytes()].concat());
        let numbers = [99_999_998, 99_999_999, 0, 99_999_999, 2, 1];
        assert_eq!(numbers.map(&mut share), [New, New, New, Repeated, New, Repeated]);
        assert_eq!(numbering.share(&[0xff; 11]), Control, "a tag without a number");
        let mut all_bits = FirstTimes::numbered(1 << 32);
        assert_eq!(
            [0x7fff_ffff_u32, CONTROL, 5].map(|number| all_bits.share(&number.to_be_bytes())),
            [New, New, Repeated]
        );
    }

    #[test]
    fn each_blast_begins_anew_and_what_is_out_of_order_is_repeated() {
        use Share::{New, Repeated};
        let mut numbering = FirstTimes::numbered(1 << 31).little_endian().in_blasts();
        let numbers = [0, 1, 2, 3, 1, 3, 3, 0, 1, 2, 1, 0_u32];
        let expected = [New, New, New, New, Repeated, Repeated, Repeated, New, New, New, Repeated, New];
        assert_eq!(numbers.map(|number| numbering.share(&number.to_le_bytes())), expected);
    }
}
