//! What was sent and what arrived, side by side.
//!
//! A feedback that comes now tells of datagrams that left an RTT ago. So arrivals of a period are compared with what
//! left in the same period, an RTT earlier.

use std::collections::VecDeque;

use farhaul_units::{Duration, Instant};

use crate::blast::engine::Feedback;

/// Bytes of IPv4 and UDP headers and of a tag per datagram. Feedback counts none of them.
const HEADERS: f64 = 36.0;
/// Departures within this time are one entry.
const GRAIN: Duration = Duration::from_millis(1);
/// Entries that are remembered: eight seconds of departures, and more of feedback.
const REMEMBERED: usize = 8_192;

/// The memory of a rate finder.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    arrivals: VecDeque<Arrival>,
    /// Bits on the wire that had left before each time.
    departures: VecDeque<(Instant, f64)>,
    sent: f64,
}

/// One feedback.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    at: Instant,
    /// The receiver's clock.
    clock: Duration,
    /// Bits on the wire that had arrived.
    bits: f64,
}

impl Counts {
    /// Datagrams of so many bits left.
    pub(super) fn on_sent(&mut self, now: Instant, bits: f64) {
        if self.departures.back().is_none_or(|(at, _)| now - *at >= GRAIN) {
            if self.departures.len() == REMEMBERED {
                self.departures.pop_front();
            }
            self.departures.push_back((now, self.sent));
        }
        self.sent += bits;
    }

    pub(super) fn on_feedback(&mut self, now: Instant, feedback: &Feedback) {
        let bits = (feedback.bytes as f64 + feedback.datagrams as f64 * HEADERS) * 8.0;
        if self.arrivals.back().is_some_and(|last| feedback.clock <= last.clock) {
            return;
        }
        if self.arrivals.len() == REMEMBERED {
            self.arrivals.pop_front();
        }
        self.arrivals.push_back(Arrival { at: now, clock: feedback.clock, bits });
    }

    /// Rates of sending and of arrival in bit/s, over the feedbacks that came from `from` on. `None` if they span less
    /// than `least`.
    pub(super) fn compare(&self, from: Instant, least: Duration, round_trip: Duration) -> Option<Comparison> {
        let last = self.arrivals.back()?;
        let at = self.arrivals.partition_point(|arrival| arrival.at < from);
        let first = self.arrivals.get(at)?;
        let time = last.clock.saturating_sub(first.clock);
        if time < least || time == Duration::ZERO {
            return None;
        }
        let arrived = (last.bits - first.bits) / time.as_secs_f64();
        let ago = |at: Instant| at.saturating_sub(round_trip);
        Some(Comparison { sent: self.sent_between(ago(first.at), ago(last.at)), arrived })
    }

    /// Rate of sending between two instants, bit/s.
    pub(super) fn sent_between(&self, from: Instant, to: Instant) -> f64 {
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

/// What was sent, and what of it arrived, bit/s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Comparison {
    pub(super) sent: f64,
    pub(super) arrived: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(1_000_000_000) + Duration::from_millis(millis)
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
            let feedback = Feedback { datagrams: 0, bytes, clock: Duration::from_millis(500 + 10 * tick) };
            counts.on_feedback(at(10 * tick), &feedback);
        }
        let round_trip = Duration::from_millis(50);
        let early = counts.compare(at(250), Duration::from_millis(20), round_trip).unwrap();
        assert!((early.arrived - 1e6).abs() < 1.0 && (early.sent - 3e6).abs() < 1e3, "{early:?}");
        assert!((counts.sent_between(at(50), at(150)) - 2e6).abs() < 1e4);
        assert_eq!(counts.compare(at(280), Duration::from_millis(20), round_trip), None, "too short");
    }

    #[test]
    fn a_pause_is_a_lower_rate_and_no_departure() {
        let mut counts = Counts::default();
        counts.on_sent(at(0), 1_000.0);
        counts.on_sent(at(100), 1_000.0);
        assert!((counts.sent_between(at(0), at(100)) - 1e4).abs() < 1e-6);
        assert_eq!(counts.sent_between(at(10), at(90)), 0.0);
    }
}
