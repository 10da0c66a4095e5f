//! Datagrams that were asked for, or repeated, a short time ago.
//!
//! The receiver does not ask twice before a repetition could have come. The sender does not repeat twice before the
//! receiver could have noticed (attack B6). Both rules are ours.

use std::collections::VecDeque;

use farhaul_units::{Instant, SeqNo, SeqRange};

use farhaul_proto::seq_set::SeqSet;

/// Numbers, each with a time until which it stays. Its size depends on the window of the transfer alone.
#[derive(Debug)]
pub(super) struct Recent {
    numbers: SeqSet,
    /// Ranges in the order of their ends. Parts of them may be gone.
    ends: VecDeque<(Instant, SeqRange)>,
}

impl Recent {
    pub(super) const fn new(first: SeqNo) -> Self {
        Self { numbers: SeqSet::new(first), ends: VecDeque::new() }
    }

    /// Adds a range of numbers of which none is present, until `end`.
    pub(super) fn insert(&mut self, range: SeqRange, end: Instant) {
        self.numbers.insert_range(range);
        // Ends stay in order. A shorter time for a later range has no use, because both sides look at times together.
        let end = self.ends.back().map_or(end, |(last, _)| end.max(*last));
        match self.ends.back_mut() {
            Some((last, before)) if *last == end && before.last.next() == range.first => before.last = range.last,
            _ => self.ends.push_back((end, range)),
        }
    }

    /// Removes one number and returns whether it was present.
    pub(super) fn remove(&mut self, number: SeqNo) -> bool {
        self.numbers.remove(number)
    }

    /// Removes everything whose time has ended, and returns how many numbers that were.
    pub(super) fn expire(&mut self, now: Instant) -> u32 {
        let mut expired = 0;
        while let Some((end, range)) = self.ends.front()
            && *end <= now
        {
            expired += self.numbers.remove_range(*range);
            self.ends.pop_front();
        }
        expired
    }

    /// Nothing before `number` matters any more.
    pub(super) fn advance(&mut self, number: SeqNo) {
        self.numbers.advance(number);
        while self.ends.front().is_some_and(|(_, range)| range.last.is_before(number)) {
            self.ends.pop_front();
        }
    }

    /// When the next numbers expire.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.ends.front().map(|(end, _)| *end)
    }

    /// The runs of numbers in `range` that are not present.
    pub(super) fn others(&self, range: SeqRange) -> impl Iterator<Item = SeqRange> + '_ {
        self.numbers.absent_runs(range.first, range.last.next())
    }

    /// Numbers present.
    pub(super) const fn len(&self) -> u32 {
        self.numbers.len()
    }

    /// Bytes of memory held.
    pub(super) fn memory(&self) -> usize {
        self.numbers.memory() + self.ends.capacity() * size_of::<(Instant, SeqRange)>()
    }
}

#[cfg(test)]
mod tests {
    use farhaul_units::Duration;

    use super::*;

    fn range(first: u32, last: u32) -> SeqRange {
        SeqRange::new(SeqNo::new(first), SeqNo::new(last))
    }

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn numbers_stay_until_their_time_or_until_they_are_removed() {
        let mut recent = Recent::new(SeqNo::new(0));
        recent.insert(range(3, 5), at(10));
        recent.insert(range(9, 9), at(20));
        assert!(recent.remove(SeqNo::new(4)) && !recent.remove(SeqNo::new(4)));
        assert_eq!(
            recent.others(range(2, 10)).collect::<Vec<_>>(),
            [range(2, 2), range(4, 4), range(6, 8), range(10, 10)]
        );
        assert_eq!((recent.expire(at(9)), recent.deadline()), (0, Some(at(10))));
        assert_eq!((recent.expire(at(10)), recent.deadline(), recent.len()), (2, Some(at(20)), 1));
    }

    #[test]
    fn what_lies_before_the_window_is_forgotten() {
        let mut recent = Recent::new(SeqNo::new(0));
        recent.insert(range(3, 5), at(10));
        recent.insert(range(7, 9), at(20));
        recent.advance(SeqNo::new(8));
        assert_eq!((recent.len(), recent.deadline()), (2, Some(at(20))));
    }
}
