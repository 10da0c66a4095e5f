//! Blocks that were asked for, or sent, a short time ago. Asking or sending again would only make duplicates.
//!
//! Two sets stand for the present and the last period, so a block is remembered for one to two periods.

use farhaul_units::{Duration, Instant, SeqNo, SeqRange};

use farhaul_proto::seq_set::SeqSet;

/// The blocks of the last one to two periods.
#[derive(Debug)]
pub(crate) struct Lately {
    base: SeqNo,
    present: SeqSet,
    last: SeqSet,
    turned: Instant,
}

impl Lately {
    pub(crate) const fn new(base: SeqNo, now: Instant) -> Self {
        Self { base, present: SeqSet::new(base), last: SeqSet::new(base), turned: now }
    }

    /// Forgets what is older than two periods.
    pub(crate) fn turn(&mut self, now: Instant, period: Duration) {
        let passed = now - self.turned;
        if passed < period {
            return;
        }
        self.last = std::mem::replace(&mut self.present, SeqSet::new(self.base));
        if passed >= period * 2 {
            self.last = SeqSet::new(self.base);
        }
        self.turned = now;
    }

    pub(crate) fn insert(&mut self, range: SeqRange) {
        self.present.insert_range(range);
    }

    /// Nothing before `base` matters any more.
    pub(crate) fn advance(&mut self, base: SeqNo) {
        self.base = self.base.later(base);
        self.present.advance(base);
        self.last.advance(base);
    }

    /// The first run in `range` without any of these blocks.
    pub(crate) fn first_run_without(&self, range: SeqRange) -> Option<SeqRange> {
        let end = range.last.next();
        let mut at = range.first;
        loop {
            let absent = self.last.next_absent(self.present.next_absent(at, end), end);
            if absent == at {
                break;
            }
            at = absent;
        }
        if !at.is_before(end) {
            return None;
        }
        let present = [&self.present, &self.last].into_iter().filter_map(|set| set.next_present(at, end));
        let end = present.reduce(SeqNo::earlier).unwrap_or(end);
        Some(SeqRange::new(at, end.minus(1)))
    }

    pub(crate) fn memory(&self) -> usize {
        self.present.memory() + self.last.memory()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(first: u32, last: u32) -> SeqRange {
        SeqRange::new(SeqNo::new(first), SeqNo::new(last))
    }

    #[test]
    fn runs_leave_out_both_periods() {
        let (start, period) = (Instant::ZERO, Duration::from_millis(10));
        let mut lately = Lately::new(SeqNo::new(1), start);
        assert_eq!(lately.first_run_without(range(1, 9)), Some(range(1, 9)));
        lately.insert(range(1, 3));
        lately.turn(start + period, period);
        lately.insert(range(4, 5));
        lately.insert(range(8, 8));
        assert_eq!(lately.first_run_without(range(1, 9)), Some(range(6, 7)));
        assert_eq!(lately.first_run_without(range(8, 9)), Some(range(9, 9)));
        assert_eq!(lately.first_run_without(range(2, 5)), None);
        lately.turn(start + period * 2, period);
        assert_eq!(lately.first_run_without(range(1, 9)), Some(range(1, 3)));
        lately.turn(start + period * 4, period);
        assert_eq!(lately.first_run_without(range(1, 9)), Some(range(1, 9)));
    }

    #[test]
    fn a_block_is_forgotten_after_one_to_two_periods_across_the_wrap() {
        let (start, period) = (Instant::ZERO, Duration::from_millis(10));
        let mut lately = Lately::new(SeqNo::MAX, start);
        lately.insert(SeqRange::new(SeqNo::MAX, SeqNo::new(2)));
        assert_eq!(lately.first_run_without(SeqRange::new(SeqNo::MAX, SeqNo::new(3))), Some(range(3, 3)));
        lately.turn(start + period * 2, period);
        assert_eq!(lately.first_run_without(range(0, 3)), Some(range(0, 3)));
    }
}
