//! Tells new data from retransmissions by the numbers on the wire.

use farhaul_proto::Numbering;

use crate::packet::Share;

/// Tells new data from retransmissions by the number of each datagram of one direction of one connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FirstTimes {
    numbering: Numbering,
    /// The highest number sent so far.
    highest: Option<u32>,
}

impl FirstTimes {
    /// No datagram so far. A row of [`protocols`](farhaul_protocols::registry::protocols) has the numbering of its protocol.
    pub(crate) const fn new(numbering: Numbering) -> Self {
        Self { numbering, highest: None }
    }

    /// The share of the traffic to which `datagram`, which is about to be sent, belongs.
    pub(crate) fn share(&mut self, datagram: &[u8]) -> Share {
        let Some(number) = self.numbering.number(datagram) else { return Share::Control };
        let is_ahead = self.highest.is_none_or(|highest| self.numbering.is_ahead(highest, number));
        if is_ahead {
            self.highest = Some(number);
        }
        if is_ahead { Share::New } else { Share::Repeated }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first bit of UDT's control packets.
    const CONTROL: u32 = 1 << 31;

    fn shares(numbering: Numbering, words: &[u32]) -> Vec<Share> {
        let mut first_times = FirstTimes::new(numbering);
        words.iter().map(|word| first_times.share(&word.to_be_bytes())).collect()
    }

    #[test]
    fn only_numbers_above_the_highest_are_new_data() {
        use Share::{Control, New, Repeated};
        let words = [5, 6, 8, 6, 8, 9, CONTROL | 10, 10];
        assert_eq!(shares(Numbering::UDT4, &words), [New, New, New, Repeated, Repeated, New, Control, New]);
    }

    #[test]
    fn numbers_wrap_to_zero() {
        for (numbering, last) in [(Numbering::UDT4, (1 << 31) - 1), (Numbering::UDT_2004, (1 << 30) - 1)] {
            let words = [last - 1, last, 0, last, 1];
            assert_eq!(shares(numbering, &words), [Share::New, Share::New, Share::New, Share::Repeated, Share::New]);
        }
    }

    #[test]
    fn a_datagram_too_short_for_a_number_is_control() {
        assert_eq!(FirstTimes::new(Numbering::UDT4).share(&[0, 0, 0]), Share::Control);
    }

    #[test]
    fn numbers_may_stand_behind_a_tag_and_have_any_count() {
        use Share::{Control, New, Repeated};
        let mut numbering = FirstTimes::new(Numbering::numbered(100_000_000).behind(8));
        let mut share = |number: u32| numbering.share(&[&[0xff; 8][..], &number.to_be_bytes()].concat());
        let numbers = [99_999_998, 99_999_999, 0, 99_999_999, 2, 1];
        assert_eq!(numbers.map(&mut share), [New, New, New, Repeated, New, Repeated]);
        assert_eq!(numbering.share(&[0xff; 11]), Control, "a tag without a number");
        let mut all_bits = FirstTimes::new(Numbering::numbered(1 << 32));
        assert_eq!(
            [0x7fff_ffff_u32, CONTROL, 5].map(|number| all_bits.share(&number.to_be_bytes())),
            [New, New, Repeated]
        );
    }

    #[test]
    fn each_blast_begins_anew_and_what_is_out_of_order_is_repeated() {
        use Share::{New, Repeated};
        let mut numbering = FirstTimes::new(Numbering::numbered(1 << 31).little_endian().in_blasts());
        let numbers = [0, 1, 2, 3, 1, 3, 3, 0, 1, 2, 1, 0_u32];
        let expected = [New, New, New, New, Repeated, Repeated, Repeated, New, New, New, Repeated, New];
        assert_eq!(numbers.map(|number| numbering.share(&number.to_le_bytes())), expected);
    }
}
