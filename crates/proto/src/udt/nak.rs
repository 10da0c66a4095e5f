//! When this side reports losses: at once, or later on paths that reorder packets, and again while packets stay
//! missing.
//!
//! A sender retransmits the oldest packet first. So on a path that keeps the order, a retransmission shows that those of
//! older packets in earlier reports are lost. These packets are reported again at once, not by timer.

mod reorder;

use farhaul_units::{Duration, Instant, SeqNo, SeqRange};
use farhaul_wire::udt4::Timestamp;

use self::reorder::Reordering;
use crate::buffer::RecvBuffer;
use crate::estimate::Rtt;
use crate::loss::RecvList;
use crate::timer::Timer;
use crate::transport::earliest;

/// Shortest time between two runs of the repeat timer. Losses found in one run share a packet.
const MIN_INTERVAL: Duration = Duration::from_millis(10);
/// Most ranges that wait to be reported. The timer reports the others later.
const MAX_PENDING: usize = 512;

/// The loss-reporting half of a receiver.
#[derive(Debug, Default)]
pub(crate) struct Naks {
    list: RecvList,
    timer: Timer,
    /// Ranges to be reported in the next packet.
    pending: Vec<SeqRange>,
    reordering: Reordering,
    /// All missing packets before this one were reported.
    reported: SeqNo,
    /// Whether a packet is missing from `reported` on.
    waits: bool,
    /// The last retransmission of the present batch, and when its packet was reported.
    answered: Option<(SeqNo, Instant)>,
    pub(crate) sent: u64,
    /// Packets found missing.
    pub(crate) lost: u64,
}

impl Naks {
    /// For a peer whose first packet is `first`. Reports a gap once `tolerance` packets beyond it have arrived.
    pub(crate) fn new(first: SeqNo, tolerance: u32) -> Self {
        Self { reordering: Reordering::new(tolerance), reported: first, ..Self::default() }
    }

    /// A missing packet arrived that was sent at `left`.
    pub(crate) fn on_late(&mut self, seq: SeqNo, left: Timestamp, now: Instant, rtt: &Rtt) {
        if self.reordering.on_late(seq, left, now, rtt.smoothed()) {
            // A younger report cannot have been answered yet.
            let report = self.list.last_report(seq).filter(|at| rtt.min().is_some_and(|least| now - *at >= least));
            let goes_further = self.answered.is_none_or(|(last, _)| seq.is_after(last));
            if let Some(at) = report.filter(|_| goes_further) {
                self.answered = Some((seq, at));
            }
        }
    }

    /// Packets arrived, the furthest of which was sent at `left`. Reports the gaps that are due.
    pub(crate) fn on_arrival(&mut self, buffer: &RecvBuffer, left: Timestamp, now: Instant, rtt: &Rtt) {
        if buffer.is_contiguous() {
            self.reordering.on_complete();
            (self.waits, self.answered) = (false, None);
            return;
        }
        self.reordering.on_overtaking(buffer.end(), left, now, rtt.smoothed());
        self.report_unanswered(buffer, now, rtt);
        self.report_lost(buffer, now, rtt);
    }

    /// Reports packets again whose retransmission was overtaken.
    fn report_unanswered(&mut self, buffer: &RecvBuffer, now: Instant, rtt: &Rtt) {
        let Some(answered) = self.answered.take() else { return };
        let margin = rtt.with_margin().saturating_sub(rtt.smoothed());
        let mut unanswered = Vec::new();
        self.list.take_unanswered(
            answered,
            margin,
            now,
            |region| buffer.missing(region).next().is_some(),
            |region| unanswered.push(region),
        );
        for region in unanswered {
            for range in buffer.missing(region) {
                self.queue(range);
            }
        }
    }

    /// Reports packets that count as lost now, for the first time.
    fn report_lost(&mut self, buffer: &RecvBuffer, now: Instant, rtt: &Rtt) {
        let times = (rtt.smoothed(), rtt.with_margin());
        let from = self.reported.later(buffer.ack_point());
        let to = self.reordering.lost_before(buffer.end(), now, times).map_or(from, |to| to.later(from));
        if to.is_after(from) {
            for range in buffer.missing(SeqRange::new(from, to.minus(1))) {
                self.lost += u64::from(range.len());
                self.report(range, now, rtt.with_margin());
            }
        }
        self.reported = to;
        self.waits = to.is_before(buffer.end());
    }

    fn report(&mut self, range: SeqRange, now: Instant, round_trip: Duration) {
        self.list.reported(range, now);
        self.timer.set_earlier(now + (round_trip * 2).max(MIN_INTERVAL));
        self.queue(range);
    }

    /// Everything before `ack_point` has arrived.
    pub(crate) fn acknowledge(&mut self, ack_point: SeqNo) {
        self.list.acknowledge(ack_point);
        // Otherwise it would count as ahead after half the number space.
        self.reported = self.reported.later(ack_point);
        if self.list.is_empty() {
            self.timer.stop();
        }
    }

    /// Reports packets again that are still missing, at widening intervals.
    pub(crate) fn handle_timeout(&mut self, now: Instant, buffer: &RecvBuffer, rtt: &Rtt) {
        if self.waits {
            self.report_lost(buffer, now, rtt);
        }
        if !self.timer.fires(now) {
            return;
        }
        let round_trip = rtt.with_margin();
        self.list.retain(|region| buffer.missing(region).next().is_some());
        let mut due = Vec::new();
        self.list.take_due(now, round_trip, |region| due.push(region));
        for region in due {
            for range in buffer.missing(region) {
                self.queue(range);
            }
        }
        if let Some(next) = self.list.next_due(round_trip) {
            self.timer.set(next.max(now + MIN_INTERVAL));
        }
    }

    fn queue(&mut self, range: SeqRange) {
        if self.pending.len() < MAX_PENDING {
            self.pending.push(range);
        }
    }

    /// Whether a report is due.
    pub(crate) fn is_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Hands the waiting ranges to `take`, which returns how many it used.
    pub(crate) fn poll(&mut self, take: impl FnOnce(&[SeqRange]) -> usize) {
        let taken = take(&self.pending).clamp(1, self.pending.len());
        self.pending.drain(..taken);
        self.sent += 1;
    }

    pub(crate) fn deadline(&self, rtt: &Rtt) -> Option<Instant> {
        let times = (rtt.smoothed(), rtt.with_margin());
        let waiting = if self.waits { self.reordering.deadline(self.reported, times) } else { None };
        earliest(self.timer.deadline(), waiting)
    }

    pub(crate) fn memory(&self) -> usize {
        self.list.memory() + self.pending.capacity() * size_of::<SeqRange>() + self.reordering.memory()
    }
}

#[cfg(test)]
mod tests {
    use farhaul_units::MsgNo;
    use farhaul_wire::udt4::{MessageField, Position};

    use super::*;

    /// An estimate of 100 ms.
    fn rtt() -> Rtt {
        let mut rtt = Rtt::default();
        for _ in 0..100 {
            rtt.sample(Duration::from_millis(100), Instant::ZERO);
        }
        rtt
    }

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// A receiver and its reports.
    struct Bench {
        buffer: RecvBuffer,
        naks: Naks,
        rtt: Rtt,
    }

    impl Bench {
        fn new(tolerance: u32) -> Self {
            let buffer = RecvBuffer::new(SeqNo::new(0), 10, 1_000);
            Self { buffer, naks: Naks::new(SeqNo::new(0), tolerance), rtt: rtt() }
        }

        /// One packet arrives at `millis`. It was sent 50 ms plus `extra` earlier.
        fn arrive(&mut self, seq: u32, millis: u64, extra: u32) {
            let field = MessageField { position: Position::Only, in_order: false, message: MsgNo::FIRST };
            let left = Timestamp::new((millis as u32).wrapping_sub(50 + extra).wrapping_mul(1_000));
            let end = self.buffer.end();
            self.buffer.insert(SeqNo::new(seq), field, &[0; 10]);
            if SeqNo::new(seq).is_before(end) {
                self.naks.on_late(SeqNo::new(seq), left, at(millis), &self.rtt);
            }
            self.naks.on_arrival(&self.buffer, left, at(millis), &self.rtt);
            self.naks.acknowledge(self.buffer.ack_point());
        }

        /// The reports until this time.
        fn reports(&mut self, millis: u64) -> Vec<SeqRange> {
            self.naks.handle_timeout(at(millis), &self.buffer, &self.rtt);
            let mut taken = Vec::new();
            if self.naks.is_pending() {
                self.naks.poll(|ranges| {
                    taken.extend_from_slice(ranges);
                    ranges.len()
                });
            }
            taken
        }
    }

    fn range(first: u32, last: u32) -> SeqRange {
        SeqRange::new(SeqNo::new(first), SeqNo::new(last))
    }

    #[test]
    fn a_gap_is_reported_at_once_and_what_stays_missing_again() {
        let mut bench = Bench::new(0);
        bench.arrive(0, 100, 0);
        bench.arrive(5, 100, 0);
        assert_eq!(bench.reports(100), [range(1, 4)]);
        bench.arrive(2, 250, 0);
        assert_eq!(bench.reports(299), []);
        assert_eq!(bench.reports(300), [range(1, 1), range(3, 4)]);
        for seq in [1, 3, 4] {
            bench.arrive(seq, 400, 0);
        }
        assert_eq!((bench.reports(2_000), bench.naks.deadline(&bench.rtt)), (vec![], None));
    }

    #[test]
    fn a_retransmission_shows_that_those_of_earlier_reports_are_lost() {
        let mut bench = Bench::new(0);
        bench.arrive(0, 100, 0);
        for (seq, millis) in [(2, 100), (4, 110), (6, 120)] {
            bench.arrive(seq, millis, 0);
            assert_eq!(bench.reports(millis), [range(seq - 1, seq - 1)]);
        }
        bench.arrive(3, 210, 0);
        assert_eq!(bench.reports(210), [range(1, 1)]);
        bench.arrive(5, 220, 0);
        assert_eq!(bench.reports(220), [], "it was reported after the packet that arrived");
        bench.arrive(8, 225, 0);
        assert_eq!(bench.reports(225), [range(7, 7)]);
        bench.arrive(7, 300, 0);
        assert_eq!(bench.reports(300), [], "the report is younger than an RTT, so this is no answer");
    }

    #[test]
    fn where_packets_overtake_each_other_a_retransmission_shows_nothing() {
        let mut bench = Bench::new(0);
        bench.arrive(0, 100, 0);
        bench.arrive(2, 100, 0);
        assert_eq!(bench.reports(100), [range(1, 1)]);
        bench.arrive(1, 108, 9);
        for (seq, millis) in [(4, 110), (6, 120)] {
            bench.arrive(seq, millis, 0);
        }
        assert_eq!(bench.reports(150), [range(3, 3), range(5, 5)]);
        bench.arrive(5, 250, 0);
        assert_eq!(bench.reports(250), []);
    }

    #[test]
    fn the_wait_for_a_repeat_follows_the_rtt_as_it_becomes_known() {
        let mut bench = Bench::new(0);
        bench.rtt = Rtt::default();
        bench.arrive(0, 100, 0);
        bench.arrive(2, 100, 0);
        assert_eq!(bench.reports(100), [range(1, 1)]);
        bench.rtt = rtt();
        bench.arrive(4, 150, 0);
        assert_eq!(bench.reports(150), [range(3, 3)]);
        assert_eq!(bench.reports(350), [range(1, 1), range(3, 3)]);
    }

    #[test]
    fn gaps_are_reported_after_more_packets_without_one_than_half_the_number_space() {
        let mut bench = Bench::new(0);
        bench.arrive(0, 100, 0);
        for step in 1..=5 {
            bench.naks.acknowledge(SeqNo::new(step << 28));
        }
        let first = 5 << 28;
        bench.buffer = RecvBuffer::new(SeqNo::new(first), 100, 1_000);
        bench.arrive(first + 3, 200, 0);
        assert_eq!(bench.reports(200), [range(first, first + 2)]);
    }

    #[test]
    fn with_tolerance_a_late_packet_is_no_loss() {
        let mut bench = Bench::new(3);
        bench.arrive(0, 100, 0);
        bench.arrive(2, 100, 0);
        assert_eq!(bench.reports(100), []);
        for seq in [1, 3, 4, 6, 7] {
            bench.arrive(seq, 100, 0);
            assert_eq!(bench.reports(100), []);
        }
        bench.arrive(8, 100, 0);
        assert_eq!(bench.reports(100), [range(5, 5)]);
    }

    #[test]
    fn after_late_originals_gaps_wait_for_late_packets_and_are_reported_by_timer() {
        let mut bench = Bench::new(0);
        bench.arrive(0, 100, 0);
        bench.arrive(2, 100, 0);
        assert_eq!(bench.reports(100), [range(1, 1)]);
        bench.arrive(1, 108, 9);
        bench.arrive(4, 120, 0);
        assert_eq!(bench.reports(142), []);
        bench.arrive(3, 144, 25);
        bench.arrive(6, 150, 0);
        assert_eq!(bench.naks.deadline(&bench.rtt), Some(at(180)));
        assert_eq!((bench.reports(179), bench.reports(180)), (vec![], vec![range(5, 5)]));
        assert_eq!((bench.naks.lost, bench.naks.sent), (2, 2));
    }
}
