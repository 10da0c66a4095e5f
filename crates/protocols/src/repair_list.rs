//! Packets that the peer reported lost, and those among them retransmitted recently.
//!
//! It is a bitmap over the flight. Its memory is fixed, whatever a peer reports (attack B5). A packet is retransmitted
//! at most once per RTT, however often it is reported (attack B6).

use farhaul_units::{Duration, Instant, SeqNo, SeqRange};

use farhaul_proto::seq_set::SeqSet;

/// The sender's loss list, with a memory of repairs.
#[derive(Debug)]
pub(crate) struct RepairList {
    lost: SeqSet,
    /// Retransmitted in the present half of an RTT, and in the one before.
    resent: SeqSet,
    resent_before: SeqSet,
    /// When the present half ends.
    half_ends: Instant,
}

impl RepairList {
    /// Nothing is lost. The first packet of the connection is `first`.
    pub(crate) const fn new(first: SeqNo) -> Self {
        Self {
            lost: SeqSet::new(first),
            resent: SeqSet::new(first),
            resent_before: SeqSet::new(first),
            half_ends: Instant::ZERO,
        }
    }

    /// Lists a report of packets in flight. Returns how many are news: neither listed nor retransmitted recently.
    pub(crate) fn report(&mut self, range: SeqRange, now: Instant, rtt: Duration) -> u32 {
        self.begin_half_if_due(now, rtt, range);
        if self.resent.is_empty() && self.resent_before.is_empty() {
            return self.lost.insert_range(range);
        }
        let mut news = 0;
        for run in self.resent.absent_runs(range.first, range.last.next()) {
            for run in self.resent_before.absent_runs(run.first, run.last.next()) {
                news += self.lost.insert_range(run);
            }
        }
        news
    }

    /// Everything in `range` must be retransmitted, regardless of its earlier state. Returns how many were not listed.
    pub(crate) fn expire(&mut self, range: SeqRange) -> u32 {
        self.lost.insert_range(range)
    }

    /// The next packet in `from..end` to retransmit.
    pub(crate) fn next_after(&self, from: SeqNo, end: SeqNo) -> Option<SeqNo> {
        self.lost.next_present(from, end)
    }

    /// The first packet to retransmit.
    pub(crate) fn first(&mut self) -> Option<SeqNo> {
        self.lost.first()
    }

    /// How many packets from `seq` on are listed without a break, at most `max`.
    pub(crate) fn run_length(&self, seq: SeqNo, max: u32) -> u32 {
        self.lost.next_absent(seq, seq.plus(max)).distance_from(seq).unsigned_abs()
    }

    /// These packets were retransmitted.
    pub(crate) fn served(&mut self, range: SeqRange, now: Instant, rtt: Duration) {
        self.begin_half_if_due(now, rtt, range);
        self.lost.remove_range(range);
        self.resent.insert_range(range);
    }

    /// Everything before `seq` has arrived.
    pub(crate) fn acknowledge(&mut self, seq: SeqNo) {
        for set in [&mut self.lost, &mut self.resent, &mut self.resent_before] {
            set.advance(seq);
        }
    }

    /// Whether nothing waits for a repair.
    pub(crate) const fn is_empty(&self) -> bool {
        self.lost.is_empty()
    }

    /// Bytes of memory.
    pub(crate) fn memory(&self) -> usize {
        self.lost.memory() + self.resent.memory() + self.resent_before.memory()
    }

    /// Forgets packets that were retransmitted more than half an RTT before the present half.
    fn begin_half_if_due(&mut self, now: Instant, rtt: Duration, near: SeqRange) {
        if now < self.half_ends {
            return;
        }
        let half = rtt / 2;
        let long_ago = now - self.half_ends >= half;
        std::mem::swap(&mut self.resent, &mut self.resent_before);
        clear(&mut self.resent, near.first);
        if long_ago {
            clear(&mut self.resent_before, near.first);
        }
        self.half_ends = now + half;
    }
}

/// Empties a set whose numbers are in a window around `near`.
fn clear(set: &mut SeqSet, near: SeqNo) {
    const REACH: u32 = 1 << 28;
    if !set.is_empty() {
        set.remove_range(SeqRange::new(near.minus(REACH), near.plus(REACH)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn range(first: u32, last: u32) -> SeqRange {
        SeqRange::new(SeqNo::new(first), SeqNo::new(last))
    }

    #[test]
    fn losses_are_served_in_order_and_counted_once() {
        let mut list = RepairList::new(SeqNo::new(0));
        assert_eq!(list.report(range(7, 9), at(1), RTT), 3);
        assert_eq!(list.report(range(3, 8), at(1), RTT), 4);
        assert_eq!(list.first(), Some(SeqNo::new(3)));
        assert_eq!(list.run_length(SeqNo::new(3), 5), 5);
        list.served(range(3, 7), at(1), RTT);
        assert_eq!(list.first(), Some(SeqNo::new(8)));
    }

    /// Attack B6.
    #[test]
    fn a_retransmitted_packet_is_listed_again_after_half_to_one_round_trip() {
        let mut list = RepairList::new(SeqNo::new(0));
        list.report(range(5, 5), at(1_000), RTT);
        list.served(range(5, 5), at(1_000), RTT);
        let accepted = |millis| {
            let mut list = RepairList::new(SeqNo::new(0));
            list.report(range(5, 5), at(1_000), RTT);
            list.served(range(5, 5), at(1_000), RTT);
            // Time advances in small steps, as with other reports in between.
            for millis in 1_001..millis {
                list.report(range(80, 80), at(millis), RTT);
            }
            list.report(range(5, 5), at(millis), RTT)
        };
        assert_eq!([accepted(1_001), accepted(1_049), accepted(1_099), accepted(1_100)], [0, 0, 0, 1]);
        assert_eq!(list.report(range(4, 6), at(1_010), RTT), 2, "its neighbours are news");
        list.expire(range(5, 5));
        assert!(list.run_length(SeqNo::new(4), 9) == 3, "an expiration asks whatever was before");
    }

    #[test]
    fn after_a_long_pause_everything_is_news() {
        let mut list = RepairList::new(SeqNo::new(0));
        list.report(range(5, 9), at(0), RTT);
        list.served(range(5, 9), at(0), RTT);
        assert_eq!(list.report(range(5, 9), at(5_000), RTT), 5);
        list.acknowledge(SeqNo::new(8));
        assert_eq!((list.first(), list.run_length(SeqNo::new(8), 9)), (Some(SeqNo::new(8)), 2));
    }
}
