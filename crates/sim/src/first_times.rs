//! Tells new data from retransmissions by the sequence numbers on the wire.

use crate::packet::Share;

/// The first bit of a UDT packet: 1 in control packets.
const CONTROL: u32 = 1 << 31;

/// Tells new data from retransmissions by the first 32 bits of each datagram of one direction of one connection.
///
/// In all generations of UDT, data packets begin with a 0 bit and then their sequence number.
#[derive(Clone, Copy, Debug)]
pub struct FirstTimes {
    /// The largest sequence number. Zero follows it.
    last: u32,
    /// The highest sequence number sent so far.
    highest: Option<u32>,
}

impl FirstTimes {
    /// UDT4: 31 bits.
    pub const UDT4: Self = Self { last: (1 << 31) - 1, highest: None };

    /// The protocol of the 2004 paper: 30 bits.
    pub const UDT_2004: Self = Self { last: (1 << 30) - 1, highest: None };

    /// The share of the traffic to which `datagram`, which is about to be sent, belongs.
    pub fn share(&mut self, datagram: &[u8]) -> Share {
        let Some(word) = datagram.first_chunk().map(|word| u32::from_be_bytes(*word)) else { return Share::Control };
        if word & CONTROL != 0 {
            return Share::Control;
        }
        let ahead = self.highest.is_none_or(|highest| {
            let distance = word.wrapping_sub(highest) & self.last;
            (1..=self.last / 2).contains(&distance)
        });
        if ahead {
            self.highest = Some(word);
        }
        if ahead { Share::New } else { Share::Repeated }
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
}
