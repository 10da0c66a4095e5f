//! The receiver's list of losses: gaps that were found, and when each was last reported.
//!
//! The receive buffer knows which packets are missing. This list only remembers regions with missing packets, in the
//! order of their last report. A hostile sender cannot make it long: beyond a bound, the newest region grows.

use std::collections::VecDeque;

use farhaul_units::{Duration, Instant, SeqNo, SeqRange};

/// Most regions of each kind. Beyond, only the time of the next report becomes less precise.
const MAX_REGIONS: usize = 4_096;

/// Gaps in the order of their last report.
#[derive(Debug, Default)]
pub(super) struct Reports {
    /// Gaps that were never reported.
    fresh: VecDeque<SeqRange>,
    /// The others, with the time of the last report. The oldest comes first.
    reported: VecDeque<(Instant, SeqRange)>,
}

impl Reports {
    /// These packets are missing.
    pub(super) fn found(&mut self, gap: SeqRange) {
        let is_full = self.fresh.len() >= MAX_REGIONS;
        match self.fresh.back_mut().filter(|_| is_full) {
            Some(newest) => newest.last = newest.last.later(gap.last),
            None => self.fresh.push_back(gap),
        }
    }

    /// The next gap that was never reported. It counts as reported now.
    pub(super) fn take_fresh(&mut self, now: Instant) -> Option<SeqRange> {
        let gap = self.fresh.pop_front()?;
        self.push(now, gap);
        Some(gap)
    }

    /// The next region that was last reported `repeat` ago. It counts as reported now.
    pub(super) fn take_due(&mut self, now: Instant, repeat: Duration) -> Option<SeqRange> {
        let (at, region) = *self.reported.front()?;
        if at + repeat > now {
            return None;
        }
        self.reported.pop_front();
        self.push(now, region);
        Some(region)
    }

    /// The region taken last was reported before `from` only. The rest is due at once.
    pub(super) fn put_back(&mut self, from: SeqNo) {
        let Some((at, region)) = self.reported.pop_back() else { return };
        let done = SeqRange::new(region.first, from.minus(1));
        if !done.is_empty() {
            self.push(at, done);
        }
        self.reported.push_front((Instant::ZERO, SeqRange::new(from, region.last)));
    }

    fn push(&mut self, at: Instant, region: SeqRange) {
        let is_full = self.reported.len() >= MAX_REGIONS;
        match self.reported.back_mut().filter(|_| is_full) {
            Some((_, newest)) => {
                newest.first = newest.first.earlier(region.first);
                newest.last = newest.last.later(region.last);
            }
            None => self.reported.push_back((at, region)),
        }
    }

    /// Forgets regions without any missing packet.
    pub(super) fn retain(&mut self, mut is_missing: impl FnMut(SeqRange) -> bool) {
        self.fresh.retain(|gap| is_missing(*gap));
        self.reported.retain(|(_, region)| is_missing(*region));
    }

    /// When the next region is due.
    pub(super) fn next_due(&self, repeat: Duration) -> Option<Instant> {
        self.reported.front().map(|(at, _)| *at + repeat)
    }

    /// Reports are due again at once: time has stood still.
    pub(super) fn expire(&mut self) {
        for (at, _) in &mut self.reported {
            *at = Instant::ZERO;
        }
    }

    pub(super) fn memory(&self) -> usize {
        self.fresh.capacity() * size_of::<SeqRange>() + self.reported.capacity() * size_of::<(Instant, SeqRange)>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPEAT: Duration = Duration::from_millis(30);

    fn range(first: u32, last: u32) -> SeqRange {
        SeqRange::new(SeqNo::new(first), SeqNo::new(last))
    }

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(1_000 + millis)
    }

    #[test]
    fn a_gap_is_reported_at_once_and_then_after_each_repeat_time() {
        let mut reports = Reports::default();
        reports.found(range(3, 5));
        assert_eq!((reports.take_fresh(at(0)), reports.take_fresh(at(0))), (Some(range(3, 5)), None));
        assert_eq!((reports.take_due(at(29), REPEAT), reports.next_due(REPEAT)), (None, Some(at(30))));
        assert_eq!((reports.take_due(at(30), REPEAT), reports.take_due(at(30), REPEAT)), (Some(range(3, 5)), None));
        assert_eq!(reports.next_due(REPEAT), Some(at(60)));
    }

    #[test]
    fn the_rest_of_a_region_is_due_before_the_others() {
        let mut reports = Reports::default();
        reports.found(range(0, 999));
        reports.take_fresh(at(0));
        reports.put_back(SeqNo::new(366));
        assert_eq!(reports.take_due(at(20), REPEAT), Some(range(366, 999)));
        reports.put_back(SeqNo::new(366));
        assert_eq!(reports.take_due(at(20), REPEAT), Some(range(366, 999)), "nothing of it was reported");
        assert_eq!(reports.take_due(at(20), REPEAT), None);
        assert_eq!(reports.take_due(at(30), REPEAT), Some(range(0, 365)));
    }

    #[test]
    fn repaired_regions_are_forgotten() {
        let mut reports = Reports::default();
        reports.found(range(3, 5));
        reports.found(range(8, 9));
        reports.take_fresh(at(0));
        reports.retain(|range| range.first == SeqNo::new(8));
        assert_eq!((reports.next_due(REPEAT), reports.take_fresh(at(1))), (None, Some(range(8, 9))));
    }

    #[test]
    fn the_number_of_regions_is_bounded_and_none_is_lost() {
        let mut reports = Reports::default();
        for i in 0..50_000 {
            reports.found(range(2 * i, 2 * i));
        }
        while reports.take_fresh(at(0)).is_some() {}
        assert!(reports.memory() < 400 << 10, "{}", reports.memory());
        let last = std::iter::from_fn(|| reports.take_due(at(30), REPEAT)).last();
        assert_eq!(last.map(|range| range.last), Some(SeqNo::new(99_998)));
    }
}
