//! Greedy repetitions: whatever is not acknowledged, round and round (recollection).

use farhaul_units::{Duration, Instant, SeqNo, SeqRange};
use farhaul_wire::fobs::Bitmap;

use crate::blast::numbered::FIRST;
use farhaul_proto::seq_set::SeqSet;

/// The acknowledged packets, and the place of the next repetition.
#[derive(Debug)]
pub(super) struct Circle {
    acknowledged: SeqSet,
    cursor: SeqNo,
    /// When the present round began. The next one begins an RTT later at the earliest, because no acknowledgement could
    /// come before (ours, attack B6).
    begun: Option<Instant>,
}

impl Circle {
    pub(super) const fn new() -> Self {
        Self { acknowledged: SeqSet::new(FIRST), cursor: FIRST, begun: None }
    }

    /// The packets of `range` have arrived except those that the bitmap misses. The caller has checked that they left.
    pub(super) fn on_ack(&mut self, range: SeqRange, bitmap: Bitmap<'_>) {
        let mut from = range.first;
        for missing in bitmap.missing(range) {
            self.acknowledged.insert_range(SeqRange::new(from, missing.first.minus(1)));
            from = missing.last.next();
        }
        self.acknowledged.insert_range(SeqRange::new(from, range.last));
    }

    /// The next packets of `first..end` to repeat, without a break. A new round begins if it may.
    pub(super) fn next(&mut self, now: Instant, first: SeqNo, end: SeqNo, round_trip: Duration) -> Option<SeqRange> {
        let from = self.cursor.later(first);
        let next = self.run(from, end);
        if next.is_some() || self.next_round(round_trip).is_some_and(|at| now < at) {
            return next;
        }
        let next = self.run(first, end)?;
        (self.cursor, self.begun) = (first, Some(now));
        Some(next)
    }

    /// When the next round may begin.
    fn next_round(&self, round_trip: Duration) -> Option<Instant> {
        self.begun.map(|begun| begun + round_trip)
    }

    /// The earliest time for the next packet of `first..end` to repeat; `None` if all are acknowledged.
    pub(super) fn deadline(&self, first: SeqNo, end: SeqNo, round_trip: Duration) -> Option<Instant> {
        if self.run(self.cursor.later(first), end).is_some() {
            return Some(Instant::ZERO);
        }
        self.run(first, end).map(|_| self.next_round(round_trip).unwrap_or(Instant::ZERO))
    }

    fn run(&self, from: SeqNo, end: SeqNo) -> Option<SeqRange> {
        self.acknowledged.absent_runs(from, end).next()
    }

    /// Packets left for the first time. They end the round of those before them.
    pub(super) fn on_sent(&mut self, now: Instant, end: SeqNo) {
        self.cursor = end;
        self.begun.get_or_insert(now);
    }

    /// Packets left again.
    pub(super) fn on_repeated(&mut self, end: SeqNo) {
        self.cursor = end;
    }

    /// The peer has everything before `packet`.
    pub(super) fn advance(&mut self, packet: SeqNo) {
        self.acknowledged.advance(packet);
        self.cursor = self.cursor.later(packet);
    }

    /// Bytes of memory held.
    pub(super) fn memory(&self) -> usize {
        self.acknowledged.memory()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND_TRIP: Duration = Duration::from_millis(10);

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn a_round_begins_an_rtt_after_the_one_before_it_at_the_earliest() {
        let (mut circle, end) = (Circle::new(), SeqNo::new(10));
        circle.on_sent(at(5), end);
        assert_eq!(circle.next(at(14), FIRST, end, ROUND_TRIP), None);
        assert_eq!(circle.deadline(FIRST, end, ROUND_TRIP), Some(at(15)));
        let whole = SeqRange::new(FIRST, SeqNo::new(9));
        assert_eq!(circle.next(at(15), FIRST, end, ROUND_TRIP), Some(whole));
        circle.on_repeated(SeqNo::new(4));
        assert_eq!(circle.next(at(15), FIRST, end, ROUND_TRIP), Some(SeqRange::new(SeqNo::new(4), SeqNo::new(9))));
        circle.on_repeated(end);
        assert_eq!(circle.next(at(24), FIRST, end, ROUND_TRIP), None);
        assert_eq!(circle.next(at(25), FIRST, end, ROUND_TRIP), Some(whole));
    }
}
