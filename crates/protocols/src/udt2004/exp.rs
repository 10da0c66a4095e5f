//! The EXP timer (paper:udt-2004 §3.1): how long a sender waits for feedback on its data.

use farhaul_units::{Duration, Instant};

use farhaul_proto::consts::SYN_INTERVAL;
use farhaul_proto::timer::Timer;

/// RTTs in the interval. Source: paper §3.1.
const ROUND_TRIPS: u32 = 2;
/// Expirations in a row that lengthen the wait. The n-th waits n intervals, so that a sender to a dead peer slows down
/// (departure D134; attack B15).
const LONGEST: u32 = 16;

/// Runs while data is unacknowledged.
#[derive(Debug)]
pub(super) struct Exp {
    timer: Timer,
    /// Expirations since the last acknowledgement or loss report.
    in_a_row: u32,
}

impl Exp {
    pub(super) const fn new() -> Self {
        Self { timer: Timer::stopped(), in_a_row: 0 }
    }

    /// Data was sent.
    pub(super) fn on_sent(&mut self, now: Instant, rtt: Duration) {
        self.timer.start(now, self.interval(rtt));
    }

    /// An acknowledgement or a loss report arrived. `in_flight` is whether any data is still unacknowledged.
    //= paper:udt-2004 §3.3: reset by ACK or NAK only
    pub(super) fn on_word(&mut self, now: Instant, rtt: Duration, in_flight: bool) {
        self.in_a_row = 0;
        self.timer.stop();
        if in_flight {
            self.timer.set(now + self.interval(rtt));
        }
    }

    /// Whether the timer expires now. Returns the number of expirations in a row.
    pub(super) fn handle_timeout(&mut self, now: Instant, rtt: Duration) -> Option<u32> {
        if !self.timer.fires(now) {
            return None;
        }
        self.in_a_row = self.in_a_row.saturating_add(1);
        self.timer.set(now + self.interval(rtt));
        Some(self.in_a_row)
    }

    /// This computer was suspended, so the peer was not silent.
    pub(super) fn on_suspended(&mut self, now: Instant, rtt: Duration) {
        if self.timer.deadline().is_some() {
            self.timer.set(now + self.interval(rtt));
        }
    }

    pub(super) const fn deadline(&self) -> Option<Instant> {
        self.timer.deadline()
    }

    fn interval(&self, rtt: Duration) -> Duration {
        (rtt * ROUND_TRIPS + SYN_INTERVAL) * (self.in_a_row + 1).min(LONGEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn it_expires_two_round_trips_and_a_syn_after_the_last_feedback_and_then_more_slowly() {
        let mut exp = Exp::new();
        exp.on_sent(at(0), RTT);
        exp.on_sent(at(50), RTT);
        exp.on_word(at(100), RTT, true);
        let expired: Vec<u64> = (100..2_500).filter(|&millis| exp.handle_timeout(at(millis), RTT).is_some()).collect();
        assert_eq!(expired, [310, 730, 1_360, 2_200]);
        exp.on_word(at(2_500), RTT, false);
        assert_eq!(exp.deadline(), None);
        exp.on_sent(at(3_000), RTT);
        assert_eq!(exp.deadline(), Some(at(3_210)));
    }
}
