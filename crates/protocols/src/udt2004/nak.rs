//! When this side reports losses (paper:udt-2004 §3.4.2). It reports a new gap at once, or N packets later (§4.6). The
//! timer repeats reports of missing packets at widening intervals.

use std::collections::VecDeque;

use farhaul_units::{Duration, Instant, SeqNo, SeqRange};

use farhaul_proto::buffer::RecvBuffer;
use farhaul_proto::consts::SYN_INTERVAL;
use farhaul_proto::loss::RecvList;
use farhaul_proto::timer::Timer;

/// Most ranges that wait to be reported. The timer reports the others later. A packet of 1500 bytes holds 183 ranges of
/// more than one packet.
const MAX_PENDING: usize = 512;
/// Most gaps that wait for late packets. Further ones are reported at once.
const MAX_WAITING: usize = 1024;

/// The loss-reporting half of a receiver.
#[derive(Debug)]
pub(super) struct Naks {
    list: RecvList,
    timer: Timer,
    /// NAK interval: the larger of RTT and mean arrival interval, set once per SYN interval.
    interval: Duration,
    /// Ranges for the next packet.
    pending: Vec<SeqRange>,
    /// Ranges that did not fit in a packet. They wait for the timer.
    rest: Vec<SeqRange>,
    /// N: packets that must arrive beyond a gap before it counts as lost.
    patience: u64,
    waiting: VecDeque<Waiting>,
    /// Packets that arrived.
    arrived: u64,
    pub(super) sent: u64,
    /// Packets found missing.
    pub(super) lost: u64,
}

/// A gap that late packets may still close.
#[derive(Debug)]
struct Waiting {
    gap: SeqRange,
    /// It counts as lost once this many packets have arrived, or an RTT has passed.
    lost_at: u64,
    since: Instant,
}

impl Naks {
    pub(super) fn new(patience: u32) -> Self {
        Self {
            list: RecvList::default(),
            timer: Timer::stopped(),
            interval: SYN_INTERVAL,
            pending: Vec::new(),
            rest: Vec::new(),
            patience: u64::from(patience),
            waiting: VecDeque::new(),
            arrived: 0,
            sent: 0,
            lost: 0,
        }
    }

    /// The latest packet left this gap before it.
    pub(super) fn on_gap(&mut self, gap: SeqRange, now: Instant) {
        if self.patience == 0 || self.waiting.len() >= MAX_WAITING {
            self.report(gap, now);
            return;
        }
        self.waiting.push_back(Waiting { gap, lost_at: self.arrived + self.patience, since: now });
        self.timer.start(now, self.interval);
    }

    /// A packet arrived. If it made a gap, [`on_gap`](Self::on_gap) was called before.
    pub(super) fn on_packet(&mut self, buffer: &RecvBuffer, now: Instant) {
        self.arrived += 1;
        while let Some(due) = pop_if(&mut self.waiting, |waiting| waiting.lost_at < self.arrived) {
            self.report_missing(due.gap, buffer, now);
        }
    }

    fn report_missing(&mut self, gap: SeqRange, buffer: &RecvBuffer, now: Instant) {
        for range in buffer.missing(gap) {
            self.report(range, now);
        }
    }

    fn report(&mut self, range: SeqRange, now: Instant) {
        self.lost += u64::from(range.len());
        self.list.reported(range, now);
        self.timer.start(now, self.interval);
        push(&mut self.pending, range);
    }

    /// Everything before `ack_point` has arrived.
    pub(super) fn acknowledge(&mut self, ack_point: SeqNo) {
        self.list.acknowledge(ack_point);
        while pop_if(&mut self.waiting, |waiting| waiting.gap.last.is_before(ack_point)).is_some() {}
        if self.list.is_empty() && self.waiting.is_empty() {
            self.timer.stop();
        }
    }

    /// A SYN interval with arrivals has ended.
    pub(super) fn on_syn(&mut self, rtt: Duration, mean_interval: Duration) {
        self.interval = rtt.max(mean_interval);
    }

    /// If the NAK timer fires: reports packets again that are still missing k·RTT after their last report, with k
    /// growing from 2.
    pub(super) fn handle_timeout(&mut self, now: Instant, buffer: &RecvBuffer, rtt: Duration) {
        if !self.timer.fires(now) {
            return;
        }
        // Otherwise a gap with few packets after it would wait for ever.
        while let Some(due) = pop_if(&mut self.waiting, |waiting| now - waiting.since >= rtt) {
            self.report_missing(due.gap, buffer, now);
        }
        for range in std::mem::take(&mut self.rest) {
            for missing in buffer.missing(range) {
                push(&mut self.pending, missing);
            }
        }
        self.list.retain(|region| buffer.missing(region).next().is_some());
        let pending = &mut self.pending;
        self.list.take_due(now, rtt, |region| {
            for range in buffer.missing(region) {
                push(pending, range);
            }
        });
        if !self.list.is_empty() || !self.waiting.is_empty() {
            self.timer.set(now + self.interval.max(SYN_INTERVAL / 10));
        }
    }

    /// Whether a report is due.
    pub(super) fn is_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Hands the waiting ranges to `take`, which returns how many fit in a packet. The others wait for the timer.
    pub(super) fn poll(&mut self, take: impl FnOnce(&[SeqRange]) -> usize) {
        // The timer's ranges may follow those of a new gap, but the sender takes ranges only in order.
        let base = self.pending.first().map_or_else(SeqNo::default, |range| range.first);
        self.pending.sort_unstable_by_key(|range| range.first.distance_from(base));
        let taken = take(&self.pending).min(self.pending.len());
        for index in taken..self.pending.len() {
            push(&mut self.rest, self.pending[index]);
        }
        self.pending.clear();
        self.sent += 1;
    }

    pub(super) const fn deadline(&self) -> Option<Instant> {
        self.timer.deadline()
    }

    pub(super) fn memory(&self) -> usize {
        let ranges = (self.pending.capacity() + self.rest.capacity()) * size_of::<SeqRange>();
        self.list.memory() + ranges + self.waiting.capacity() * size_of::<Waiting>()
    }
}

/// The oldest gap, if it is due.
fn pop_if(waiting: &mut VecDeque<Waiting>, is_due: impl FnOnce(&Waiting) -> bool) -> Option<Waiting> {
    if waiting.front().is_some_and(is_due) { waiting.pop_front() } else { None }
}

fn push(ranges: &mut Vec<SeqRange>, range: SeqRange) {
    if ranges.len() < MAX_PENDING {
        ranges.push(range);
    }
}

#[cfg(test)]
mod tests {
    use farhaul_units::MsgNo;
    use farhaul_wire::udt4::{MessageField, Position};

    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn range(first: u32, last: u32) -> SeqRange {
        SeqRange::new(SeqNo::new(first), SeqNo::new(last))
    }

    struct Bench {
        buffer: RecvBuffer,
        naks: Naks,
    }

    impl Bench {
        fn new(patience: u32) -> Self {
            let mut naks = Naks::new(patience);
            naks.on_syn(RTT, Duration::ZERO);
            Self { buffer: RecvBuffer::new(SeqNo::new(0), 10, 100_000), naks }
        }

        fn arrive(&mut self, seq: u32, millis: u64) {
            let field = MessageField { position: Position::Only, in_order: false, message: MsgNo::FIRST };
            let end = self.buffer.end();
            self.buffer.insert(SeqNo::new(seq), field, &[0; 10]);
            if SeqNo::new(seq).is_after(end) {
                self.naks.on_gap(SeqRange::new(end, SeqNo::new(seq).minus(1)), at(millis));
            }
            self.naks.on_packet(&self.buffer, at(millis));
            self.naks.acknowledge(self.buffer.ack_point());
        }

        /// The reports at this time, at most `room` ranges.
        fn report(&mut self, millis: u64, room: usize) -> Vec<SeqRange> {
            self.naks.handle_timeout(at(millis), &self.buffer, RTT);
            let mut taken = Vec::new();
            if self.naks.is_pending() {
                self.naks.poll(|ranges| {
                    taken.extend_from_slice(&ranges[..ranges.len().min(room)]);
                    taken.len()
                });
            }
            taken
        }
    }

    #[test]
    fn a_gap_is_reported_at_once_and_only_the_new_one() {
        let mut bench = Bench::new(0);
        bench.arrive(0, 0);
        bench.arrive(3, 0);
        assert_eq!(bench.report(0, 9), [range(1, 2)]);
        bench.arrive(6, 10);
        assert_eq!(bench.report(10, 9), [range(4, 5)]);
        assert_eq!((bench.naks.lost, bench.naks.sent), (4, 2));
    }

    #[test]
    fn missing_packets_are_reported_again_after_two_then_three_round_trips() {
        let mut bench = Bench::new(0);
        bench.arrive(0, 0);
        bench.arrive(3, 0);
        let mut reports = Vec::new();
        for millis in 0..1_000 {
            if millis == 250 {
                bench.arrive(1, 250);
            }
            let report = bench.report(millis, 9);
            if !report.is_empty() {
                reports.push((millis, report));
            }
        }
        let [one, two] = [range(1, 2), range(2, 2)];
        assert_eq!(reports, [(0, vec![one]), (200, vec![one]), (500, vec![two]), (900, vec![two])]);
        bench.arrive(2, 1_000);
        assert_eq!(bench.naks.deadline(), None);
    }

    #[test]
    fn the_timer_runs_at_the_mean_interval_if_that_exceeds_the_round_trip() {
        let mut bench = Bench::new(0);
        bench.naks.on_syn(RTT, Duration::from_millis(700));
        bench.arrive(0, 0);
        bench.arrive(2, 0);
        bench.report(0, 9);
        assert_eq!(bench.naks.deadline(), Some(at(700)));
    }

    #[test]
    fn ranges_that_do_not_fit_in_a_packet_wait_for_the_timer() {
        let mut bench = Bench::new(0);
        for seq in [0, 2, 4, 6, 8] {
            bench.arrive(seq, 0);
        }
        assert_eq!(bench.report(0, 3), [range(1, 1), range(3, 3), range(5, 5)]);
        assert!(bench.report(99, 3).is_empty());
        assert_eq!(bench.report(100, 3), [range(7, 7)]);
    }

    #[test]
    fn with_patience_a_gap_is_lost_when_that_many_packets_came_after_it() {
        for patience in [1, 3, 8] {
            let mut bench = Bench::new(patience);
            bench.arrive(0, 0);
            for seq in 2..2 + patience {
                bench.arrive(seq, 0);
                assert!(bench.report(0, 9).is_empty(), "{seq}");
            }
            bench.arrive(2 + patience, 0);
            assert_eq!(bench.report(0, 9), [range(1, 1)]);
        }
    }

    #[test]
    fn a_late_packet_within_patience_is_no_loss() {
        let mut bench = Bench::new(3);
        for seq in [0, 2, 3, 1, 4, 5, 6, 7] {
            bench.arrive(seq, 0);
            assert!(bench.report(0, 9).is_empty(), "{seq}");
        }
        assert_eq!((bench.naks.lost, bench.naks.deadline()), (0, None));
    }

    #[test]
    fn a_gap_without_later_packets_is_reported_after_a_round_trip() {
        let mut bench = Bench::new(8);
        bench.arrive(0, 0);
        bench.arrive(2, 0);
        assert!(bench.report(99, 9).is_empty());
        assert_eq!(bench.report(100, 9), [range(1, 1)]);
    }

    /// Attack B5: endless gaps take no more memory than the bounds permit.
    #[test]
    fn memory_is_bounded_whatever_is_missing() {
        for patience in [0, 1_000_000] {
            let mut bench = Bench::new(patience);
            (0..40_000).for_each(|n| bench.arrive(2 * n, 0));
            assert!(bench.naks.memory() < 200_000, "{}", bench.naks.memory());
        }
    }
}
