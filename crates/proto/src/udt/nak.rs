//! When this side reports losses: at once, or a few packets later, and again while they stay missing.

use std::collections::VecDeque;

use farhaul_units::{Duration, Instant, SeqNo, SeqRange};

use crate::buffer::RecvBuffer;
use crate::loss::RecvList;
use crate::timer::Timer;

/// Shortest time between two looks at the list: losses of one look share a packet.
const MIN_INTERVAL: Duration = Duration::from_millis(10);
/// Ranges that wait to be reported at most; more are left to the timer.
const MAX_PENDING: usize = 512;
/// Gaps held back for reordering at most; beyond it, the oldest is reported early.
const MAX_HELD: usize = 256;

/// The loss-reporting half of a receiver.
#[derive(Debug, Default)]
pub(crate) struct Naks {
    list: RecvList,
    timer: Timer,
    /// Ranges to be reported in the next packet.
    pending: Vec<SeqRange>,
    /// Gaps that wait for stragglers (2004 paper §4.6).
    held: VecDeque<SeqRange>,
    tolerance: u32,
    pub(crate) sent: u64,
    /// Packets found missing.
    pub(crate) lost: u64,
}

impl Naks {
    /// Reports a gap once `tolerance` packets beyond it have arrived.
    pub(crate) fn new(tolerance: u32) -> Self {
        Self { tolerance, ..Self::default() }
    }

    /// The packets of `gap` were jumped over.
    pub(crate) fn on_gap(&mut self, gap: SeqRange, now: Instant, round_trip: Duration) {
        self.lost += u64::from(gap.len());
        if self.tolerance > 0 {
            self.held.push_back(gap);
            if self.held.len() <= MAX_HELD {
                return;
            }
        }
        let gap = if self.tolerance > 0 { self.held.pop_front().unwrap_or(gap) } else { gap };
        self.report(gap, now, round_trip);
    }

    /// Packets arrived: gaps that were held back long enough are reported, as far as they are still missing.
    pub(crate) fn on_arrival(&mut self, buffer: &RecvBuffer, now: Instant, round_trip: Duration) {
        while let Some(&gap) = self.held.front() {
            let beyond = buffer.end().distance_from(gap.last) - 1;
            if beyond < self.tolerance as i32 {
                break;
            }
            self.held.pop_front();
            let missing: Vec<SeqRange> = buffer.missing(gap).collect();
            for range in missing {
                self.report(range, now, round_trip);
            }
        }
    }

    fn report(&mut self, range: SeqRange, now: Instant, round_trip: Duration) {
        self.list.reported(range, now);
        self.timer.start(now, (round_trip * 2).max(MIN_INTERVAL));
        self.queue(range);
    }

    /// Everything before `ack_point` has arrived.
    pub(crate) fn acknowledge(&mut self, ack_point: SeqNo) {
        self.list.acknowledge(ack_point);
        if self.list.is_empty() {
            self.timer.stop();
        }
    }

    /// Reports again what is still missing, at widening intervals.
    pub(crate) fn handle_timeout(&mut self, now: Instant, buffer: &RecvBuffer, round_trip: Duration) {
        if !self.timer.fires(now) {
            return;
        }
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

    /// Whether a report is to be sent.
    pub(crate) fn is_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// The ranges to report, as many as `take` can use; it says how many those were.
    pub(crate) fn poll(&mut self, take: impl FnOnce(&[SeqRange]) -> usize) {
        let taken = take(&self.pending).clamp(1, self.pending.len());
        self.pending.drain(..taken);
        self.sent += 1;
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.timer.deadline()
    }

    pub(crate) fn memory(&self) -> usize {
        self.list.memory() + (self.pending.capacity() + self.held.capacity()) * size_of::<SeqRange>()
    }
}

#[cfg(test)]
mod tests {
    use farhaul_units::MsgNo;
    use farhaul_wire::udt4::{MessageField, Position};

    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    fn arrive(buffer: &mut RecvBuffer, seqs: impl IntoIterator<Item = u32>) {
        let field = MessageField { position: Position::Only, in_order: false, message: MsgNo::FIRST };
        for seq in seqs {
            buffer.insert(SeqNo::new(seq), field, &[0; 10]);
        }
    }

    fn range(first: u32, last: u32) -> SeqRange {
        SeqRange::new(SeqNo::new(first), SeqNo::new(last))
    }

    fn take(naks: &mut Naks) -> Vec<SeqRange> {
        let mut taken = Vec::new();
        if naks.is_pending() {
            naks.poll(|ranges| {
                taken.extend_from_slice(ranges);
                ranges.len()
            });
        }
        taken
    }

    #[test]
    fn a_gap_is_reported_at_once_and_what_stays_missing_again() {
        let mut buffer = RecvBuffer::new(SeqNo::new(0), 10, 100);
        let mut naks = Naks::new(0);
        arrive(&mut buffer, [0, 5]);
        naks.on_gap(range(1, 4), Instant::ZERO, RTT);
        assert_eq!(take(&mut naks), [range(1, 4)]);
        arrive(&mut buffer, [2]);
        naks.handle_timeout(Instant::ZERO + 2 * RTT, &buffer, RTT);
        assert_eq!(take(&mut naks), [range(1, 1), range(3, 4)]);
        arrive(&mut buffer, [1, 3, 4]);
        naks.handle_timeout(Instant::ZERO + 10 * RTT, &buffer, RTT);
        assert_eq!((take(&mut naks), naks.deadline()), (vec![], None));
    }

    #[test]
    fn with_tolerance_a_straggler_is_no_loss() {
        let mut buffer = RecvBuffer::new(SeqNo::new(0), 10, 100);
        let mut naks = Naks::new(3);
        arrive(&mut buffer, [0, 2]);
        naks.on_gap(range(1, 1), Instant::ZERO, RTT);
        naks.on_arrival(&buffer, Instant::ZERO, RTT);
        assert!(!naks.is_pending());
        arrive(&mut buffer, [1, 3, 4, 6]);
        naks.on_gap(range(5, 5), Instant::ZERO, RTT);
        arrive(&mut buffer, [7, 8]);
        naks.on_arrival(&buffer, Instant::ZERO, RTT);
        assert_eq!(take(&mut naks), [range(5, 5)]);
    }
}
