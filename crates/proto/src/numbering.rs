//! Where a protocol's datagrams carry the numbers of data packets, for observers of traffic.

/// The first bit of a packet of every UDT: 1 in control packets, 0 in data packets, before their sequence number.
const CONTROL: u32 = 1 << 31;
/// Bytes of a number.
const NUMBER: usize = 4;

/// Where data packets carry their number. An observer of one direction tells new data from retransmissions by it.
#[derive(Clone, Copy, Debug)]
pub struct Numbering {
    /// Bytes before the number.
    before: usize,
    /// How many numbers there are. The first one follows the last.
    numbers: u64,
    /// Whether the number has the first bit, which marks control packets otherwise.
    whole_word: bool,
    is_little_endian: bool,
    in_blasts: bool,
}

impl Numbering {
    /// UDT4: 31 bits behind a 0 bit.
    pub const UDT4: Self = Self { whole_word: false, ..Self::numbered(1 << 31) };

    /// The protocol of the 2004 paper: 30 bits behind a 0 bit.
    pub const UDT_2004: Self = Self { whole_word: false, ..Self::numbered(1 << 30) };

    /// Datagrams that begin with a number of 32 bits, big-endian. There are `numbers` of them, and the first one follows
    /// the last. Shorter datagrams are control.
    pub const fn numbered(numbers: u64) -> Self {
        Self { before: 0, numbers, whole_word: true, is_little_endian: false, in_blasts: false }
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

    /// The number of a datagram with data; `None` for every other datagram.
    pub fn number(&self, datagram: &[u8]) -> Option<u32> {
        let word = *datagram.get(self.before..)?.first_chunk::<NUMBER>()?;
        let word = if self.is_little_endian { u32::from_le_bytes(word) } else { u32::from_be_bytes(word) };
        (self.whole_word || word & CONTROL == 0).then_some(word)
    }

    /// Whether data with `number` is new to an observer that saw `highest` as the highest number so far.
    pub fn is_ahead(&self, highest: u32, number: u32) -> bool {
        if self.in_blasts {
            return number == 0 || number == highest.wrapping_add(1);
        }
        (1..self.numbers / 2).contains(&self.distance(highest, number))
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

    #[test]
    fn control_packets_and_stumps_have_no_number() {
        assert_eq!(Numbering::UDT4.number(&[0x7F, 0, 0, 9, 1]), Some(0x7F00_0009));
        assert_eq!(Numbering::UDT4.number(&[0x80, 0, 0, 9, 1]), None);
        assert_eq!(Numbering::UDT4.number(&[0, 0, 0]), None);
        assert_eq!(Numbering::numbered(1 << 32).behind(2).number(&[1, 2, 0x80, 0, 0, 9]), Some(0x8000_0009));
        assert_eq!(Numbering::numbered(1 << 32).behind(7).number(&[1, 2, 0x80, 0, 0, 9]), None);
    }
}
