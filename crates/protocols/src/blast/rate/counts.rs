//! Departures and arrivals, side by side.
//!
//! A feedback that comes at once tells of datagrams that left an RTT ago. So arrivals of a period are compared with what
//! left in the same period, an RTT earlier. A channel that repairs a loss delivers feedback late. So the receiver's
//! clock dates it, and the fastest feedback shows how both clocks differ.
//!
//! The delay of these datagrams is only known within the jitter of the path. While the rate is steady, this does not
//! matter. Close to a pause or a change of the rate it decides how much left. So each comparison also has the least that
//! left, over all delays that are possible. Only what exceeds the arrivals for each of them was lost.

use std::collections::VecDeque;

use farhaul_units::{Duration, Instant};

use crate::blast::engine::{Feedback, RoundTrips};

/// Bytes of IPv4 and UDP headers and of a tag per datagram. Feedback counts none of them.
const HEADERS: f64 = 36.0;
/// Departures within this time are one entry.
const GRAIN: Duration = Duration::from_millis(1);
/// The difference of the clocks is that of the fastest feedback of the last one to two periods of this length. Clocks
/// drift apart by milliseconds in it.
const CLOCK_PERIOD: Duration = Duration::from_secs(30);
/// Feedbacks that stray further are no jitter, but lies or an outage.
const LONGEST_STRAY: Duration = Duration::from_millis(250);
/// The delay of datagrams is not known more exactly than this: reports are that far apart.
const EDGE: Duration = Duration::from_millis(10);
/// The least that left is the least of so many delays and one.
const DELAYS: u32 = 8;
/// The path carries no more if less than this share of what was sent arrives.
const SATURATED: f64 = 0.8;
/// Fewer packets tell nothing of the path, since one more or less must not decide.
const PACKETS: f64 = 20.0;
/// Bits of a packet on the wire, about.
pub(super) const PACKET_BITS: f64 = 12_000.0;
/// Entries that are remembered: eight seconds of departures, and more of feedback.
const REMEMBERED: usize = 8_192;

/// What left and what arrived, for a search of the rate.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    arrivals: VecDeque<FeedbackSample>,
    /// Bits on the wire that had left before each time.
    departures: VecDeque<(Instant, f64)>,
    sent: f64,
    offset: Offset,
}

/// How far this side's clock is ahead of the receiver's, the return delay of the fastest feedback included.
#[derive(Clone, Copy, Debug, Default)]
struct Offset {
    /// Nanoseconds, of this period and of the one before.
    least: Option<i128>,
    before: Option<i128>,
    end: Instant,
}

impl Offset {
    fn note(&mut self, now: Instant, clock: Duration) {
        if now >= self.end {
            (self.before, self.least, self.end) = (self.least, None, now + CLOCK_PERIOD);
        }
        let offset = (now - Instant::ZERO).as_nanos() as i128 - clock.as_nanos() as i128;
        self.least = Some(self.least.map_or(offset, |least| least.min(offset)));
    }

    /// When a feedback with this clock would have come over an empty path.
    fn time_of(&self, clock: Duration) -> Instant {
        let offset = self.least.into_iter().chain(self.before).min().unwrap_or(0);
        let nanos = (clock.as_nanos() as i128 + offset).clamp(0, i128::from(u64::MAX));
        Instant::from_nanos(nanos as u64)
    }
}

/// One feedback.
#[derive(Clone, Copy, Debug)]
struct FeedbackSample {
    /// The receiver's clock.
    clock: Duration,
    /// Bits on the wire that had arrived.
    bits: f64,
}

impl Counts {
    /// Datagrams of so many bits left.
    pub(crate) fn on_sent(&mut self, now: Instant, bits: f64) {
        if self.departures.back().is_none_or(|(at, _)| now - *at >= GRAIN) {
            if self.departures.len() == REMEMBERED {
                self.departures.pop_front();
            }
            self.departures.push_back((now, self.sent));
        }
        self.sent += bits;
    }

    pub(crate) fn on_feedback(&mut self, now: Instant, feedback: &Feedback) {
        let bits = (feedback.bytes as f64 + feedback.datagrams as f64 * HEADERS) * 8.0;
        // Neither clocks nor counts of an honest peer fall.
        if self.arrivals.back().is_some_and(|last| feedback.clock <= last.clock || bits < last.bits) {
            return;
        }
        if self.arrivals.len() == REMEMBERED {
            self.arrivals.pop_front();
        }
        self.offset.note(now, feedback.clock);
        self.arrivals.push_back(FeedbackSample { clock: feedback.clock, bits });
    }

    /// Feedback from now on has another clock.
    pub(crate) fn forget_arrivals(&mut self) {
        self.arrivals.clear();
        self.offset = Offset::default();
    }

    /// The time up to which arrivals are known.
    pub(crate) fn latest(&self) -> Option<Instant> {
        self.arrivals.back().map(|last| self.offset.time_of(last.clock))
    }

    /// Sending and arrival over the feedbacks of the time from `from` on. `None` if they span less than `least`.
    pub(crate) fn compare(&self, from: Instant, least: Duration, path: &RoundTrips) -> Option<Comparison> {
        let at = self.arrivals.partition_point(|arrival| self.offset.time_of(arrival.clock) < from);
        let (first, last) = (self.arrivals.get(at)?, self.arrivals.back()?);
        if last.clock.saturating_sub(first.clock) < least { None } else { self.between(first, last, path) }
    }

    /// The same over the latest feedbacks that span `least`, and at most four times as much.
    pub(crate) fn compare_latest(&self, least: Duration, path: &RoundTrips) -> Option<Comparison> {
        let last = self.arrivals.back()?;
        let young = self.arrivals.partition_point(|arrival| arrival.clock + least <= last.clock);
        let first = self.arrivals.get(young.checked_sub(1)?)?;
        if last.clock > first.clock + least * 4 { None } else { self.between(first, last, path) }
    }

    /// How far the feedbacks from `from` on stray from a steady loss, on average, as a time at the rate of arrival. A queue
    /// that grows or overflows is steady, and so is a pause of the sender. Jitter is not. [`LONGEST_STRAY`] at most. `None`
    /// without three feedbacks.
    pub(crate) fn unsteadiness(&self, from: Instant, path: &RoundTrips) -> Option<Duration> {
        let at = self.arrivals.partition_point(|arrival| self.offset.time_of(arrival.clock) < from);
        let (first, last) = (self.arrivals.get(at)?, self.arrivals.back()?);
        let inner = self.arrivals.len().saturating_sub(at + 2);
        let (time, bits) = ((last.clock.saturating_sub(first.clock)).as_secs_f64(), last.bits - first.bits);
        if inner == 0 || bits <= 0.0 {
            return None;
        }
        let missing = |arrival: &FeedbackSample| {
            self.sent_before(self.offset.time_of(arrival.clock).saturating_sub(path.smoothed)) - arrival.bits
        };
        let (before, after) = (missing(first), missing(last));
        let stray = |arrival: &FeedbackSample| {
            let share = arrival.clock.saturating_sub(first.clock).as_secs_f64() / time;
            (missing(arrival) - before - share * (after - before)).abs()
        };
        let mean = self.arrivals.range(at + 1..at + 1 + inner).map(stray).sum::<f64>() / inner as f64;
        Some(Duration::from_secs_f64((mean / bits * time).min(LONGEST_STRAY.as_secs_f64())))
    }

    fn between(&self, first: &FeedbackSample, last: &FeedbackSample, path: &RoundTrips) -> Option<Comparison> {
        let time = last.clock.saturating_sub(first.clock);
        if time == Duration::ZERO {
            return None;
        }
        let arrived = (last.bits - first.bits) / time.as_secs_f64();
        let (begin, end) = (self.offset.time_of(first.clock), self.offset.time_of(last.clock));
        let sent_after = |delay: Duration| self.sent_between(begin.saturating_sub(delay), end.saturating_sub(delay));
        let sent = sent_after(path.smoothed);
        let shortest = path.least.saturating_sub(EDGE);
        let range = (path.smoothed + path.variation.max(EDGE)).saturating_sub(shortest);
        let least = (0..=DELAYS).map(|step| sent_after(shortest + range * step / DELAYS)).fold(sent, f64::min);
        Some(Comparison { sent, least, arrived, time })
    }

    /// Rate of sending between two instants, bit/s.
    pub(crate) fn sent_between(&self, from: Instant, to: Instant) -> f64 {
        let time = (to - from).as_secs_f64();
        if time > 0.0 { (self.sent_before(to) - self.sent_before(from)) / time } else { 0.0 }
    }

    /// Bits that had left before `at`, as if each entry's bits left evenly until the next.
    fn sent_before(&self, at: Instant) -> f64 {
        let index = self.departures.partition_point(|(from, _)| *from <= at);
        let Some(&(from, bits)) = index.checked_sub(1).and_then(|index| self.departures.get(index)) else {
            return self.departures.front().map_or(self.sent, |(_, bits)| *bits);
        };
        let (next, after) = match self.departures.get(index) {
            Some(&(next, after)) => (next - from, after),
            None => (GRAIN, self.sent),
        };
        // A pause is no departure: the bits of an entry left within its grain.
        let span = next.min(GRAIN).as_secs_f64();
        bits + (after - bits) * ((at - from).as_secs_f64() / span.max(1e-9)).min(1.0)
    }
}

/// Rates of departure and arrival, bit/s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Comparison {
    /// If the datagrams took the smoothed RTT, and the least for any delay that is possible.
    pub(crate) sent: f64,
    pub(crate) least: f64,
    pub(crate) arrived: f64,
    pub(crate) time: Duration,
}

impl Comparison {
    /// Whether the path did not carry what was sent, whatever the delay.
    pub(crate) fn shows_overload(&self) -> bool {
        self.least * self.time.as_secs_f64() >= PACKETS * PACKET_BITS && self.arrived < SATURATED * self.least
    }

    /// Whether this share of `rate` left, but for a packet at each end.
    pub(crate) fn tests(&self, rate: f64, share: f64) -> bool {
        self.least + 2.0 * PACKET_BITS / self.time.as_secs_f64() >= share * rate
    }
}

/// The time of so many packets at `rate` bit/s.
pub(crate) fn time_of(packets: f64, rate: f64) -> Duration {
    Duration::from_secs_f64(PACKET_BITS * packets / rate.max(1.0))
}

/// The time of the fewest packets that tell of the path.
pub(crate) fn telling_time(rate: f64) -> Duration {
    time_of(PACKETS, rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(1_000_000_000) + Duration::from_millis(millis)
    }

    fn steady(round_trip: Duration) -> RoundTrips {
        RoundTrips { least: round_trip, smoothed: round_trip, variation: Duration::ZERO }
    }

    /// 1 000 packets of 12 000 bits at 1 ms, a pause of a second, and 1 000 more. All arrive 50 ms later, or `late`.
    fn with_a_pause(late: u64) -> Counts {
        let mut counts = Counts::default();
        let (mut arrived, mut bytes) = (0, 0);
        for millis in 0..3_000_u64 {
            let sends = |millis: u64| millis < 1_000 || (2_000..3_000).contains(&millis);
            if sends(millis) {
                counts.on_sent(at(millis), PACKET_BITS);
            }
            let departure = millis.checked_sub(50 + if millis > 2_040 { late } else { 0 });
            if departure.is_some_and(sends) {
                (arrived, bytes) = (arrived + 1, bytes + 1_464);
                let clock = at(millis) - Instant::ZERO;
                counts.on_feedback(at(millis), &Feedback { datagrams: arrived, bytes, clock, ..Feedback::default() });
            }
        }
        counts
    }

    #[test]
    fn a_pause_of_the_sender_shows_no_overload_although_the_delay_is_not_known_exactly() {
        for late in [0, 5] {
            let counts = with_a_pause(late);
            // The RTT of the channel is larger or smaller than the delay.
            for millis in [45, 50, 57] {
                let path = steady(Duration::from_millis(millis));
                for from in 0..1_200 {
                    let compared = counts.compare(at(1_000 + from), Duration::from_millis(20), &path);
                    assert!(!compared.unwrap().shows_overload(), "{compared:?} at {from} with {millis} ms");
                }
            }
        }
    }

    #[test]
    fn a_path_that_carries_three_quarters_shows_overload_after_twenty_packets() {
        let mut counts = Counts::default();
        let path = steady(Duration::from_millis(20));
        for millis in 0..400_u64 {
            counts.on_sent(at(millis), PACKET_BITS);
            let datagrams = millis * 3 / 4;
            let (bytes, clock) = (datagrams * 1_464, at(millis) - Instant::ZERO);
            counts.on_feedback(at(millis), &Feedback { datagrams, bytes, clock, ..Feedback::default() });
        }
        let compared = |millis| counts.compare_latest(Duration::from_millis(millis), &path).unwrap();
        assert!(!compared(12).shows_overload() && compared(40).shows_overload());
    }

    #[test]
    fn arrivals_are_compared_with_what_left_an_rtt_before() {
        let mut counts = Counts::default();
        // 1 Mbit/s for 100 ms, then 3 Mbit/s.
        for millis in 0..300 {
            counts.on_sent(at(millis), if millis < 100 { 1_000.0 } else { 3_000.0 });
        }
        for tick in 0..30_u64 {
            let bytes = tick * 1_250;
            let clock = Duration::from_millis(500 + 10 * tick);
            let feedback = Feedback { bytes, clock, ..Feedback::default() };
            // Every third one is late.
            counts.on_feedback(at(10 * tick + if tick % 3 == 1 { 9 } else { 0 }), &feedback);
        }
        let path = steady(Duration::from_millis(50));
        let early = counts.compare(at(250), Duration::from_millis(20), &path).unwrap();
        assert!((early.arrived - 1e6).abs() < 1.0 && (early.sent - 3e6).abs() < 1e3, "{early:?}");
        assert!((counts.sent_between(at(50), at(150)) - 2e6).abs() < 1e4);
        assert_eq!(counts.compare(at(280), Duration::from_millis(20), &path), None, "too short");
    }

    #[test]
    fn a_pause_is_a_lower_rate_and_no_departure() {
        let mut counts = Counts::default();
        counts.on_sent(at(0), 1_000.0);
        counts.on_sent(at(100), 1_000.0);
        assert!((counts.sent_between(at(0), at(100)) - 1e4).abs() < 1e-6);
        assert_eq!(counts.sent_between(at(10), at(90)), 0.0);
    }

    /// One packet each millisecond, of which a share arrives 20 ms later and `late` after that. Feedback every 10 ms.
    fn unsteadiness(share: f64, sends: impl Fn(u64) -> bool, late: impl Fn(u64) -> u64) -> Duration {
        let mut counts = Counts::default();
        for millis in 0..400_u64 {
            if sends(millis) {
                counts.on_sent(at(millis), PACKET_BITS);
            }
            if millis % 10 == 0 {
                let arrived = (0..millis.saturating_sub(20 + late(millis))).filter(|&millis| sends(millis)).count();
                let bytes = (arrived as f64 * share * 1_500.0) as u64;
                let clock = at(millis) - Instant::ZERO;
                counts.on_feedback(at(millis), &Feedback { bytes, clock, ..Feedback::default() });
            }
        }
        counts.unsteadiness(at(100), &steady(Duration::from_millis(20))).unwrap()
    }

    #[test]
    fn jitter_is_unsteady_and_neither_a_steady_loss_nor_a_pause_of_the_sender_is() {
        let micros = |unsteady: Duration| unsteady.as_micros();
        assert!(micros(unsteadiness(1.0, |_| true, |_| 0)) < 100);
        assert!(micros(unsteadiness(0.7, |_| true, |_| 0)) < 100);
        assert!(micros(unsteadiness(1.0, |millis| !(200..260).contains(&millis), |_| 0)) < 100);
        let jitter = micros(unsteadiness(1.0, |_| true, |millis| millis / 10 % 3 * 3));
        assert!((2_000..4_000).contains(&jitter), "{jitter} µs");
    }

    #[test]
    fn counts_of_a_peer_that_lies_are_no_time_beyond_bounds() {
        let mut counts = Counts::default();
        let clock = |millis| at(millis) - Instant::ZERO;
        for millis in 0..300 {
            counts.on_sent(at(millis), if millis % 100 == 0 { PACKET_BITS } else { 0.0 });
        }
        for (millis, bytes) in [(110, 0), (120, u64::MAX), (130, 1), (140, u64::MAX)] {
            let feedback = Feedback { bytes, datagrams: bytes, clock: clock(millis), ..Feedback::default() };
            counts.on_feedback(at(millis), &feedback);
        }
        let stray = counts.unsteadiness(at(100), &steady(Duration::from_millis(20)));
        assert!(stray.is_some_and(|stray| stray <= LONGEST_STRAY), "{stray:?}");
        assert_eq!(counts.arrivals.len(), 3, "a count that falls is none");
    }
}
