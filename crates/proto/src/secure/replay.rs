//! The window of packet numbers that were seen, so that no packet counts twice.

use farhaul_wire::secure::PacketNumber;

/// Packets that may come late. At 10 Gbit/s and 1 500 bytes they are 79 ms of arrivals, and reordering is far shorter.
const WINDOW: u64 = 65_536;
const WORD: u64 = u64::BITS as u64;
/// Words of a full window. The word of the highest number may be partly used, so there is one more.
const WORDS: usize = (WINDOW / WORD) as usize + 1;

/// The numbers that were seen in one epoch.
///
/// The memory grows with the numbers: an idle connection needs a word.
#[derive(Clone, Debug, Default)]
pub struct Replay {
    /// One bit per number, as a ring of words. Its length is a power of two, or all of [`WORDS`].
    seen: Vec<u64>,
    /// One more than the highest number.
    end: PacketNumber,
}

impl Replay {
    /// Whether a packet may count: it was not seen, and is not too old to tell.
    pub fn is_new(&self, number: PacketNumber) -> bool {
        if number == PacketNumber::MAX {
            // No key lives so long.
            return false;
        }
        if number >= self.end {
            return true;
        }
        self.end - number <= WINDOW && self.seen[self.index(number)] & bit(number) == 0
    }

    /// Whether no number so high was seen.
    pub const fn is_newest(&self, number: PacketNumber) -> bool {
        number >= self.end
    }

    /// Notes a packet that was authenticated. Returns false if it must not count.
    pub fn note(&mut self, number: PacketNumber) -> bool {
        if !self.is_new(number) {
            return false;
        }
        if number >= self.end {
            self.advance(number);
        }
        let index = self.index(number);
        self.seen[index] |= bit(number);
        true
    }

    /// Bytes of memory.
    pub fn memory(&self) -> usize {
        self.seen.capacity() * size_of::<u64>()
    }

    /// Makes `number` the highest.
    fn advance(&mut self, number: PacketNumber) {
        let (old, new) = (self.end.div_ceil(WORD), number / WORD + 1);
        self.grow(new);
        // The words between are of numbers that were not seen.
        let fresh = (new - old.min(new)).min(self.seen.len() as u64);
        for word in new - fresh..new {
            let index = (word % self.seen.len() as u64) as usize;
            self.seen[index] = 0;
        }
        self.end = number + 1;
    }

    /// Makes room for `words` words from number zero on, or for a full window.
    fn grow(&mut self, words: u64) {
        let wanted = usize::try_from(words).unwrap_or(WORDS).next_power_of_two().min(WORDS);
        if wanted <= self.seen.len() {
            return;
        }
        // As long as it grows, it begins with the word of number zero, so words keep their places.
        self.seen.resize(wanted, 0);
    }

    fn index(&self, number: PacketNumber) -> usize {
        (number / WORD % self.seen.len() as u64) as usize
    }
}

const fn bit(number: PacketNumber) -> u64 {
    1 << (number % WORD)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_number_counts_once_and_only_within_the_window() {
        let mut replay = Replay::default();
        assert!(replay.note(5) && !replay.note(5) && replay.note(4));
        assert!(replay.note(5 + WINDOW), "a jump");
        assert!(!replay.note(5), "too old");
        assert!(replay.note(6), "the oldest of the window");
        assert!(replay.note(PacketNumber::MAX - 1) && !replay.note(PacketNumber::MAX - 1));
    }

    #[test]
    fn an_idle_connection_needs_little_memory() {
        let mut replay = Replay::default();
        (0..200).for_each(|number| assert!(replay.note(number)));
        assert!(replay.memory() <= 64, "{}", replay.memory());
    }

    proptest! {
        /// Against a set of all numbers.
        #[test]
        fn it_agrees_with_a_set(steps in proptest::collection::vec((0..200_000_u64, 0..70_000_u64), 1..200)) {
            let (mut replay, mut seen, mut end) = (Replay::default(), BTreeSet::new(), 0);
            for (ahead, back) in steps {
                let number = (end + ahead % 3_000).saturating_sub(back);
                let expected = (number >= end || end - number <= WINDOW) && !seen.contains(&number);
                prop_assert_eq!(replay.is_new(number), expected, "{}", number);
                prop_assert_eq!(replay.note(number), expected);
                if expected {
                    seen.insert(number);
                    end = end.max(number + 1);
                }
            }
        }
    }
}
