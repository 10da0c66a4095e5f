//! What was sent and what arrived, side by side.
//!
//! A feedback that comes now tells of datagrams that left an RTT ago. So arrivals of a period are compared with what
//! the sender wanted to send in the same period, an RTT earlier.

use std::collections::VecDeque;

use farhaul_units::{Duration, Instant};

use crate::blast::engine::Feedback;

/// Bytes of IPv4 and UDP headers per datagram, which count into the rate.
const HEADERS: f64 = 28.0;
/// Feedbacks and rates that are remembered: ten seconds of feedback every 10 ms.
const REMEMBERED: usize = 1_000;

/// The memory of a rate finder.
#[derive(Clone, Debug)]
pub(super) struct Counts {
    arrivals: VecDeque<Arrival>,
    /// Rates by the time from which they held, and the bits that were due before.
    rates: VecDeque<Sent>,
}

/// One feedback.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    at: Instant,
    /// The receiver's clock.
    clock: Duration,
    /// Bits on the wire that had arrived.
    bits: f64,
    /// The sender had something to send since the feedback before.
    busy: bool,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    from: Instant,
    rate: f64,
    bits: f64,
}

impl Counts {
    pub(super) fn new(now: Instant, rate: f64) -> Self {
        Self { arrivals: VecDeque::new(), rates: VecDeque::from([Sent { from: now, rate, bits: 0.0 }]) }
    }

    pub(super) fn on_feedback(&mut self, now: Instant, feedback: &Feedback, busy: bool) {
        let bits = (feedback.bytes as f64 + feedback.datagrams as f64 * HEADERS) * 8.0;
        if self.arrivals.back().is_some_and(|last| feedback.clock <= last.clock) {
            return;
        }
        if self.arrivals.len() == REMEMBERED {
            self.arrivals.pop_front();
        }
        self.arrivals.push_back(Arrival { at: now, clock: feedback.clock, bits, busy });
    }

    /// This rate holds from now on.
    pub(super) fn on_rate(&mut self, now: Instant, rate: f64) {
        let Some(last) = self.rates.back().copied() else { return };
        if rate.to_bits() == last.rate.to_bits() {
            return;
        }
        let bits = last.bits + last.rate * (now - last.from).as_secs_f64();
        if self.rates.len() == REMEMBERED {
            self.rates.pop_front();
        }
        self.rates.push_back(Sent { from: now, rate, bits });
    }

    /// Rates of sending and of arrival in bit/s, over the feedbacks that came from `from` on. `None` if they span less
    /// than `least`, or the sender was not always busy.
    pub(super) fn compare(&self, from: Instant, least: Duration, round_trip: Duration) -> Option<Comparison> {
        let last = self.arrivals.back()?;
        let at = self.arrivals.partition_point(|arrival| arrival.at < from);
        let first = self.arrivals.get(at)?;
        let time = last.clock.saturating_sub(first.clock);
        let busy = self.arrivals.range(at + 1..).all(|arrival| arrival.busy);
        if time < least || time == Duration::ZERO || !busy {
            return None;
        }
        let arrived = (last.bits - first.bits) / time.as_secs_f64();
        let span = (last.at - first.at).as_secs_f64();
        let sent = (self.due(last.at.saturating_sub(round_trip)) - self.due(first.at.saturating_sub(round_trip)))
            / span.max(1e-9);
        Some(Comparison { sent, arrived })
    }

    /// Bits that were due before `at`.
    fn due(&self, at: Instant) -> f64 {
        let index = self.rates.partition_point(|sent| sent.from <= at);
        let sent = self.rates[index.saturating_sub(1)];
        sent.bits + sent.rate * at.saturating_since(sent.from).as_secs_f64()
    }
}

/// What was sent, and what of it arrived, bit/s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Comparison {
    pub(super) sent: f64,
    pub(super) arrived: f64,
}
