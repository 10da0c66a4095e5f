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
    /// No datagram so far. A row of [`protocols`](farhaul_proto::registry::protocols) has the numbering of its protocol.
    pub(crate) const fn new(numbering: Numbering) -> Self {
        Self { numbering, highest: None }
    }

    /// The share of the traffic to which `datagram`, which is about to be sent, belongs.
    pub(crate) fn share(&mut self, datagram: &[u8]) -> Share {
        let Numbering { number, last } = self.numbering;
        let Some(number) = number(datagram) else { return Share::Control };
        let ahead = self.highest.is_none_or(|highest| {
            let distance = number.wrapping_sub(highest) & last;
            (1..=last / 2).contains(&distance)
        });
        if ahead {
            self.highest = Some(number);
        }
        if ahead { Share::New } else { Share::Repeated }
    }
}

#[cfg(test)]
mod tests {
    use farhaul_proto::registry::protocols;

    use super::*;

    /// The first bit of UDT's control packets.
    const CONTROL: u32 = 1 << 31;

    fn shares(numbering: Numbering, words: &[u32]) -> Vec<Share> {
        let mut first_times = FirstTimes::new(numbering);
        words.iter().map(|word| first_times.share(&word.to_be_bytes())).collect()
    }

    fn udt4() -> Numbering {
        protocols()[0].numbering
    }

    #[test]
    fn only_numbers_above_the_highest_are_new_data() {
        use Share::{Control, New, Repeated};
        let words = [5, 6, 8, 6, 8, 9, CONTROL | 10, 10];
        assert_eq!(shares(udt4(), &words), [New, New, New, Repeated, Repeated, New, Control, New]);
    }

    #[test]
    fn numbers_wrap_to_zero() {
        for last in [(1 << 31) - 1, (1 << 30) - 1] {
            let words = [last - 1, last, 0, last, 1];
            let numbering = Numbering { last, ..udt4() };
            assert_eq!(shares(numbering, &words), [Share::New, Share::New, Share::New, Share::Repeated, Share::New]);
        }
    }

    #[test]
    fn a_datagram_too_short_for_a_number_is_control() {
        assert_eq!(FirstTimes::new(udt4()).share(&[0, 0, 0]), Share::Control);
    }
}
