//! How long a packet may be missing before it counts as lost. The wait is zero unless the path reordered packets
//! recently.
//!
//! UDT reports a gap at once. An option waits for some more packets (2004 paper §4.6). Both fail on a path whose delay
//! varies per packet, because there nearly every packet overtakes another. Each overtaken packet would be reported,
//! retransmitted, and taken for congestion.
//!
//! So this side waits as long as the path makes packets late. It can measure that, because data packets carry their
//! send time. A packet that fills a gap is an *original* if it was sent no later than the packet that overtook it.
//! Otherwise it is a retransmission.
//!
//! ```text
//! L      lateness of an original: from the first packet that overtook it to its arrival
//! wait = 0 while no original was late in the last 16 to 32 round trips, otherwise
//!        5/4 · max L in that time, at least RTT/4 and at most RTT
//! ```
//!
//! The shape is that of RACK's reordering window (RFC 8985, §6.2). It is zero without reordering. Then it is a quarter
//! of an RTT, grows with the lateness to at most one RTT, and ends after 16 RTTs without reordering.
//!
//! RACK counts 16 recoveries and widens in steps. A sender only learns that a retransmission was spurious. It does not
//! learn how late the original was.

use std::collections::VecDeque;

use farhaul_units::{Duration, Instant, SeqNo};
use farhaul_wire::udt4::Timestamp;

/// Marks closer together than this part of an RTT are merged, so lateness has this resolution.
const RESOLUTION: u32 = 64;
/// Marks kept: two RTTs of them, twice the longest wait.
const MAX_MARKS: usize = 2 * RESOLUTION as usize;
/// The wait is at least this part of an RTT, because the first late packets are rarely the latest. Source: RFC 8985,
/// §6.2.
const FIRST_SHARE: u32 = 4;
/// Reordering is forgotten after one to two times this many RTTs. Source: RFC 8985, §6.2.
const MEMORY: u32 = 16;

/// The wait before a gap is reported, and its measurements.
#[derive(Debug, Default)]
pub(super) struct Reordering {
    /// Packets that must arrive beyond a gap, whatever the wait.
    packets: u32,
    /// The end of the arrived packets over time. Empty while nothing is missing.
    marks: VecDeque<Mark>,
    /// The largest lateness of the present and of the previous period.
    worst: [Duration; 2],
    period_end: Instant,
}

/// Missing packets before `end` were overtaken by a packet that arrived at `at`.
#[derive(Clone, Copy, Debug)]
struct Mark {
    end: SeqNo,
    at: Instant,
    /// When the sender sent the last of the overtaking packets.
    left: Timestamp,
}

impl Reordering {
    /// Nothing was late yet. A gap is reported once `packets` packets beyond it have arrived.
    pub(super) fn new(packets: u32) -> Self {
        Self { packets, ..Self::default() }
    }

    /// Everything before `end` has arrived or was overtaken. The last overtaking packet was sent at `left`.
    pub(super) fn on_overtaking(&mut self, end: SeqNo, left: Timestamp, now: Instant, round_trip: Duration) {
        match self.marks.back_mut() {
            Some(newest) if !end.is_after(newest.end) => {}
            Some(newest) if now - newest.at < round_trip / RESOLUTION => (newest.end, newest.left) = (end, left),
            _ => {
                if self.marks.len() == MAX_MARKS {
                    self.marks.pop_front();
                }
                self.marks.push_back(Mark { end, at: now, left });
            }
        }
    }

    /// A missing packet arrived that was sent at `left`. Returns whether it is a retransmission on a path that keeps the
    /// order.
    pub(super) fn on_late(&mut self, seq: SeqNo, left: Timestamp, now: Instant, round_trip: Duration) -> bool {
        let overtaken = self.marks.partition_point(|mark| !mark.end.is_after(seq));
        let Some(&mark) = self.marks.get(overtaken) else { return false };
        let is_repair = (left.value().wrapping_sub(mark.left.value()) as i32) > 0;
        if !is_repair {
            self.forget_old(now, round_trip);
            self.worst[0] = self.worst[0].max(now - mark.at);
        }
        is_repair && self.wait(round_trip).is_zero()
    }

    /// Nothing is missing.
    pub(super) fn on_complete(&mut self) {
        self.marks.clear();
    }

    /// Returns the packet before which all missing packets count as lost. `end` is one after the furthest packet.
    /// `patience` is the longest time until an answer.
    pub(super) fn lost_before(
        &mut self,
        end: SeqNo,
        now: Instant,
        (round_trip, patience): (Duration, Duration),
    ) -> Option<SeqNo> {
        self.forget_old(now, round_trip);
        let wait = self.wait(round_trip);
        let waited = |time: Duration| self.marks.iter().rev().find(|mark| mark.at + time <= now).map(|mark| mark.end);
        let in_time = waited(wait);
        if self.packets == 0 {
            return in_time;
        }
        // If too few packets follow, the count is never reached.
        let in_number = in_time.map(|seq| seq.earlier(end.minus(self.packets)));
        match (in_number, waited(patience.max(wait))) {
            (Some(one), Some(other)) => Some(one.later(other)),
            (one, other) => one.or(other),
        }
    }

    /// When more packets from `reported` on count as lost if no packet arrives.
    pub(super) fn deadline(&self, reported: SeqNo, (round_trip, patience): (Duration, Duration)) -> Option<Instant> {
        let wait = self.wait(round_trip);
        let wait = if self.packets == 0 { wait } else { wait.max(patience) };
        let waiting = self.marks.partition_point(|mark| !mark.end.is_after(reported));
        self.marks.get(waiting).map(|mark| mark.at + wait)
    }

    pub(super) fn memory(&self) -> usize {
        self.marks.capacity() * size_of::<Mark>()
    }

    fn wait(&self, round_trip: Duration) -> Duration {
        let worst = self.worst[0].max(self.worst[1]);
        if worst.is_zero() {
            return Duration::ZERO;
        }
        (worst + worst / 4).max(round_trip / FIRST_SHARE).min(round_trip)
    }

    fn forget_old(&mut self, now: Instant, round_trip: Duration) {
        if now < self.period_end {
            return;
        }
        let period = round_trip * MEMORY;
        let recent = now < self.period_end + period;
        self.worst = [Duration::ZERO, if recent { self.worst[0] } else { Duration::ZERO }];
        self.period_end = now + period;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(64);
    const TIMES: (Duration, Duration) = (RTT, Duration::from_millis(100));

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn left(millis: u64) -> Timestamp {
        Timestamp::new(millis as u32 * 1_000)
    }

    fn seq(seq: u32) -> SeqNo {
        SeqNo::new(seq)
    }

    /// A path on which packet 6 overtook packet 5 at 100 ms. Packet 5, sent at `departure`, arrived at `arrival`.
    fn after_lateness(arrival: u64, departure: u64) -> Reordering {
        let mut reordering = Reordering::new(0);
        reordering.on_overtaking(seq(7), left(50), at(100), RTT);
        reordering.on_late(seq(5), left(departure), at(arrival), RTT);
        reordering.on_complete();
        reordering
    }

    /// The wait of a gap found at `start` before it is reported.
    fn wait(reordering: &mut Reordering, start: u64) -> u64 {
        reordering.on_overtaking(seq(20), left(start), at(start), RTT);
        let found = (start..start + 500).find(|&ms| reordering.lost_before(seq(20), at(ms), TIMES).is_some());
        if let Some(ms) = found {
            assert_eq!(reordering.deadline(seq(0), TIMES).map(|due| due <= at(ms)), Some(true));
        }
        reordering.on_complete();
        found.expect("it is lost some time") - start
    }

    #[test]
    fn a_gap_is_lost_at_once_where_nothing_was_ever_late() {
        assert_eq!(wait(&mut Reordering::new(0), 100), 0);
    }

    #[test]
    fn after_an_original_came_late_gaps_wait_that_much_and_a_quarter() {
        assert_eq!(wait(&mut after_lateness(120, 49), 200), 25);
        assert_eq!(wait(&mut after_lateness(120, 50), 200), 25, "they left together");
        assert_eq!(wait(&mut after_lateness(101, 49), 200), 16, "a quarter of a round trip at least");
    }

    #[test]
    fn a_retransmission_is_no_late_original() {
        assert_eq!(wait(&mut after_lateness(170, 130), 200), 0);
    }

    #[test]
    fn the_wait_is_never_longer_than_a_round_trip() {
        assert_eq!(wait(&mut after_lateness(900, 49), 1_000), 64);
    }

    #[test]
    fn reordering_is_forgotten_after_sixteen_to_thirty_two_round_trips() {
        let mut reordering = after_lateness(120, 49);
        assert_eq!(wait(&mut reordering, 1_000), 25);
        assert_eq!(wait(&mut reordering, 1_200), 25);
        assert_eq!(wait(&mut reordering, 2_300), 0);
        assert_eq!(wait(&mut after_lateness(120, 49), 9_000), 0, "nothing happened meanwhile");
    }

    #[test]
    fn each_gap_waits_from_the_time_it_was_found() {
        let mut reordering = after_lateness(120, 49);
        reordering.on_overtaking(seq(20), left(200), at(200), RTT);
        reordering.on_overtaking(seq(30), left(204), at(204), RTT);
        assert_eq!(reordering.lost_before(seq(30), at(224), TIMES), None);
        assert_eq!(reordering.lost_before(seq(30), at(225), TIMES), Some(seq(20)));
        assert_eq!(reordering.deadline(seq(20), TIMES), Some(at(229)));
        assert_eq!(reordering.lost_before(seq(30), at(229), TIMES), Some(seq(30)));
        assert_eq!(reordering.deadline(seq(30), TIMES), None);
    }

    #[test]
    fn a_number_of_packets_is_waited_for_but_not_for_ever() {
        let mut reordering = Reordering::new(3);
        reordering.on_overtaking(seq(7), left(100), at(100), RTT);
        assert_eq!(reordering.lost_before(seq(7), at(100), TIMES), Some(seq(4)));
        assert_eq!(reordering.deadline(seq(4), TIMES), Some(at(200)));
        assert_eq!(reordering.lost_before(seq(7), at(200), TIMES), Some(seq(7)));
    }

    #[test]
    fn memory_is_bounded_however_long_something_is_missing() {
        let mut reordering = Reordering::new(0);
        for step in 0..100_000 {
            reordering.on_overtaking(seq(step), left(0), Instant::ZERO + RTT / 8 * step, RTT);
        }
        assert!(reordering.memory() < 8_192);
    }
}
