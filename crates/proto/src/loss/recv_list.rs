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
pub struct RecvList {
    regions: VecDeque<Region>,
}

#[derive(Debug)]
struct Region {
    range: SeqRange,
    last_report: Instant,
    /// RTTs until the next report.
    patience: u32,
    /// It was reported more than once.
    again: bool,
}

impl RecvList {
    /// A gap was found and reported.
    pub fn reported(&mut self, gap: SeqRange, now: Instant) {
        if self.regions.len() >= MAX_REGIONS
            && let Some(newest) = self.regions.back_mut()
        {
            newest.range.last = newest.range.last.later(gap.last);
            newest.last_report = now;
            return;
        }
        self.regions.push_back(Region { range: gap, last_report: now, patience: FIRST_REPEAT, again: false });
    }

    /// Everything before `ack_point` has arrived.
    pub fn acknowledge(&mut self, ack_point: SeqNo) {
        while self.regions.front().is_some_and(|region| region.range.last.is_before(ack_point)) {
            self.regions.pop_front();
        }
        if let Some(front) = self.regions.front_mut() {
            front.range.first = front.range.first.later(ack_point);
        }
    }

    /// The regions that are due to be reported again. They count as reported now.
    pub fn take_due(&mut self, now: Instant, round_trip: Duration, mut report: impl FnMut(SeqRange)) {
        for region in &mut self.regions {
            if region.last_report + round_trip * region.patience <= now {
                (region.last_report, region.again) = (now, true);
                region.patience = (region.patience + 1).min(LAST_REPEAT);
                report(region.range);
            }
        }
    }

    /// When the region of a packet was last reported.
    pub(crate) fn last_report(&self, seq: SeqNo) -> Option<Instant> {
        let after = self.regions.partition_point(|region| !region.range.first.is_after(seq));
        let region = self.regions.get(after.checked_sub(1)?)?;
        region.range.contains(seq).then_some(region.last_report)
    }

    /// Regions before `seq` in which packets are missing, and which were last reported before `answered`. They count as
    /// reported now. The others of these regions are forgotten.
    ///
    /// A sender holds packets back that it retransmitted within the last RTT. So regions that were reported again must
    /// have been reported `margin` earlier.
    pub(crate) fn take_unanswered(
        &mut self,
        (seq, answered): (SeqNo, Instant),
        margin: Duration,
        now: Instant,
        mut missing: impl FnMut(SeqRange) -> bool,
        mut report: impl FnMut(SeqRange),
    ) {
        self.regions.retain_mut(|region| {
            let margin = if region.again { margin } else { Duration::ZERO };
            if !region.range.last.is_before(seq) || region.last_report + margin >= answered {
                return true;
            }
            (region.last_report, region.again) = (now, true);
            let is_missing = missing(region.range);
            if is_missing {
                report(region.range);
            }
            is_missing
        });
    }

    /// Forgets regions in which nothing is missing any more.
    pub fn retain(&mut self, mut missing: impl FnMut(SeqRange) -> bool) {
        self.regions.retain(|region| missing(region.range));
    }

    /// When the next region is due.
    pub(crate) fn next_due(&self, round_trip: Duration) -> Option<Instant> {
        self.regions.iter().map(|region| region.last_report + round_trip * region.patience).min()
    }

    /// Whether nothing is missing.
    pub fn is_empty(&self) -> bool {
        self.regions.is_empty()
    }

    /// Bytes of memory.
    pub fn memory(&self) -> usize {
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

    /// The regions without an answer when that to the report of `seq` at `answered` arrives at `millis`.
    fn unanswered(list: &mut RecvList, (seq, answered): (u32, u64), millis: u64) -> Vec<SeqRange> {
        let mut unanswered = Vec::new();
        let answer = (SeqNo::new(seq), at(answered));
        let margin = Duration::from_millis(5);
        list.take_unanswered(
            answer,
            margin,
            at(millis),
            |region| region != range(3, 5),
            |region| unanswered.push(region),
        );
        unanswered
    }

    #[test]
    fn earlier_reports_than_an_answered_one_are_unanswered_where_packets_are_missing() {
        let mut list = RecvList::default();
        for (first, millis) in [(3, 0), (8, 10), (20, 20), (30, 30)] {
            list.reported(range(first, first + 2), at(millis));
        }
        assert_eq!(
            [2, 3, 10, 11].map(|seq| list.last_report(SeqNo::new(seq))),
            [None, Some(at(0)), Some(at(10)), None]
        );
        assert_eq!(unanswered(&mut list, (20, 20), 120), [range(8, 10)]);
        assert_eq!([3, 8, 20].map(|seq| list.last_report(SeqNo::new(seq))), [None, Some(at(120)), Some(at(20))]);
        list.reported(range(40, 42), at(125));
        assert_eq!(unanswered(&mut list, (40, 125), 225), [range(20, 22), range(30, 32)], "the sender may hold 8 back");
        list.reported(range(50, 52), at(126));
        assert_eq!(unanswered(&mut list, (50, 126), 226), [range(8, 10), range(40, 42)]);
        assert_eq!(unanswered(&mut list, (8, 226), 326), [], "those that follow leave later");
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
