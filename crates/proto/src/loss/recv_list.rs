//! Gaps that this side has reported, and when to report them again.
//!
//! The receive buffer knows which packets are missing. This list remembers only the regions with missing packets, and
//! when each was last reported. So a region need not be split when one of its packets arrives. The number of regions is
//! bounded: beyond the bound, the newest one grows.

use std::collections::VecDeque;

use farhaul_units::{Duration, Instant, SeqNo, SeqRange};

/// Most regions. Beyond that, only the precision of the repeat timer suffers.
const MAX_REGIONS: usize = 1024;
/// RTTs until a report is first repeated. Each later repeat waits one RTT more (2004 paper §3.3, k·RTT).
const FIRST_REPEAT: u32 = 2;
/// The repeat interval grows to at most this many RTTs.
const LAST_REPEAT: u32 = 16;

/// The receiver's loss list.
#[derive(Debug, Default)]
pub(crate) struct RecvList {
    regions: VecDeque<Region>,
}

#[derive(Debug)]
struct Region {
    range: SeqRange,
    last_report: Instant,
    /// RTTs until the next report.
    patience: u32,
}

impl RecvList {
    /// A gap was found and reported.
    pub(crate) fn reported(&mut self, gap: SeqRange, now: Instant) {
        if self.regions.len() >= MAX_REGIONS
            && let Some(newest) = self.regions.back_mut()
        {
            newest.range.last = newest.range.last.later(gap.last);
            newest.last_report = now;
            return;
        }
        self.regions.push_back(Region { range: gap, last_report: now, patience: FIRST_REPEAT });
    }

    /// Everything before `ack_point` has arrived.
    pub(crate) fn acknowledge(&mut self, ack_point: SeqNo) {
        while self.regions.front().is_some_and(|region| region.range.last.is_before(ack_point)) {
            self.regions.pop_front();
        }
        if let Some(front) = self.regions.front_mut() {
            front.range.first = front.range.first.later(ack_point);
        }
    }

    /// The regions that are due to be reported again. They count as reported now.
    pub(crate) fn take_due(&mut self, now: Instant, round_trip: Duration, mut report: impl FnMut(SeqRange)) {
        for region in &mut self.regions {
            if region.last_report + round_trip * region.patience <= now {
                region.last_report = now;
                region.patience = (region.patience + 1).min(LAST_REPEAT);
                report(region.range);
            }
        }
    }

    /// Forgets regions in which nothing is missing any more.
    pub(crate) fn retain(&mut self, mut missing: impl FnMut(SeqRange) -> bool) {
        self.regions.retain(|region| missing(region.range));
    }

    /// When the next region is due.
    pub(crate) fn next_due(&self, round_trip: Duration) -> Option<Instant> {
        self.regions.iter().map(|region| region.last_report + round_trip * region.patience).min()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.regions.is_empty()
    }

    pub(crate) fn memory(&self) -> usize {
        self.regions.capacity() * size_of::<Region>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    fn range(first: u32, last: u32) -> SeqRange {
        SeqRange::new(SeqNo::new(first), SeqNo::new(last))
    }

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn due(list: &mut RecvList, millis: u64) -> Vec<SeqRange> {
        let mut due = Vec::new();
        list.take_due(at(millis), RTT, |range| due.push(range));
        due
    }

    #[test]
    fn the_repeat_interval_widens_with_each_report() {
        let mut list = RecvList::default();
        list.reported(range(3, 5), at(0));
        assert!(due(&mut list, 199).is_empty());
        assert_eq!(due(&mut list, 200), [range(3, 5)]);
        assert!(due(&mut list, 499).is_empty());
        assert_eq!(due(&mut list, 500), [range(3, 5)]);
        assert_eq!(list.next_due(RTT), Some(at(900)));
    }

    #[test]
    fn arrived_packets_are_not_reported_again() {
        let mut list = RecvList::default();
        list.reported(range(3, 5), at(0));
        list.reported(range(8, 8), at(0));
        list.acknowledge(SeqNo::new(5));
        assert_eq!(due(&mut list, 200), [range(5, 5), range(8, 8)]);
        list.acknowledge(SeqNo::new(9));
        assert!(list.is_empty());
    }

    #[test]
    fn the_number_of_regions_is_bounded() {
        let mut list = RecvList::default();
        for i in 0..100_000 {
            list.reported(range(2 * i, 2 * i), at(0));
        }
        assert!(list.memory() < 128 * 1024);
        let last = due(&mut list, 200).last().copied();
        assert_eq!(last.map(|range| range.last), Some(SeqNo::new(199_998)));
    }
}
