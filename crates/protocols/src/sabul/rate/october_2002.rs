//! The law of the paper on rate control, October 2002: by the loss rate, linear, around a target.
//!
//! Every T = 20 ms, with r the share of packets lost in it:
//!
//! ```text
//! r > a   I ← I·(1 + k1·(r − a)) + c           (1)
//! r < a   I ← I·(1 + k2·(r − a))               (2)
//! r = a   I ← I + d                            (3)
//! more than V reports since I last changed:  I ← I + b      (4)
//! a = 0.001, k1 = 0.125, k2 = 10, c = 2 µs, b = 0.5 µs, d = 0.1 µs, V = 10
//! ```
//!
//! Source: paper:sabul-rate-2002, from a text with damaged formulas. Disabled code in release 2.1 has the same form,
//! with k1 = 0.1 and c = 0.5 µs.
//!
//! **Read in one of several ways** (departure D307). r is the losses that entered the sender's list, by the
//! packets sent, at most 1. A period
//! without either changes nothing. The paper gives no bounds: I stays within 1 µs to 1 s.

use farhaul_units::{Duration, SeqNo};

use super::{Bounds, Law, Report};

/// T.
const TICK: Duration = Duration::from_millis(20);
/// a: the tolerated loss rate.
const TARGET: f64 = 0.001;
/// k1, (1).
const SLOWER: f64 = 0.125;
/// c, µs, (1).
const SLOWER_STEP: f64 = 2.0;
/// k2, (2): 1 % per T without loss.
const FASTER: f64 = 10.0;
/// d, µs, (3).
const EQUAL_STEP: f64 = 0.1;
/// V, and b in µs, (4).
const REPORTS: u32 = 10;
const REPORTS_STEP: f64 = 0.5;
/// I.
pub(super) const BOUNDS: Bounds = Bounds { shortest: 1.0, longest: 1e6 };

/// The law.
#[derive(Debug)]
pub(super) struct October2002 {
    interval: f64,
    bounds: Bounds,
    /// Since the last tick.
    sent: u64,
    lost: u64,
    /// Reports since I last changed.
    reports: u32,
}

impl October2002 {
    pub(super) const fn new(interval: f64, bounds: Bounds) -> Self {
        Self { interval, bounds, sent: 0, lost: 0, reports: 0 }
    }

    fn set(&mut self, interval: f64) {
        self.interval = self.bounds.clamp(interval);
        self.reports = 0;
    }
}

impl Law for October2002 {
    fn interval(&self) -> f64 {
        self.interval
    }

    fn resume(&mut self, interval: f64, _next: SeqNo) {
        (self.sent, self.lost) = (0, 0);
        self.set(interval);
    }

    fn clock(&self) -> Option<Duration> {
        Some(TICK)
    }

    fn on_tick(&mut self) {
        let most = self.sent.max(self.lost);
        if most == 0 {
            return;
        }
        let excess = self.lost as f64 / most as f64 - TARGET;
        (self.sent, self.lost) = (0, 0);
        //= paper:sabul-rate-2002
        if excess > 0.0 {
            self.set(self.interval * (1.0 + SLOWER * excess) + SLOWER_STEP);
        } else if excess < 0.0 {
            self.set(self.interval * (1.0 + FASTER * excess));
        } else {
            self.set(self.interval + EQUAL_STEP);
        }
    }

    fn on_sent(&mut self, packets: u32) {
        self.sent += u64::from(packets);
    }

    fn on_report(&mut self, report: Report) -> Duration {
        self.lost += u64::from(report.losses);
        self.reports += 1;
        if self.reports > REPORTS {
            self.set(self.interval + REPORTS_STEP);
        }
        Duration::ZERO
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tick(interval: f64, sent: u32, losses: u32) -> f64 {
        let mut law = October2002::new(interval, BOUNDS);
        law.on_sent(sent);
        law.on_report(Report { first: SeqNo::new(0), losses, acked: SeqNo::new(0), next: SeqNo::new(9) });
        law.on_tick();
        law.interval()
    }

    /// Worked examples with I = 100 µs.
    #[test]
    fn the_interval_follows_the_distance_from_the_target() {
        assert!((tick(100.0, 1_000, 101) - (100.0 * 1.0125 + 2.0)).abs() < 1e-9, "10.1 % lost");
        assert!((tick(100.0, 1_000, 0) - 99.0).abs() < 1e-9, "nothing lost");
        assert!((tick(100.0, 1_000, 1) - 100.1).abs() < 1e-9, "exactly the target");
        assert!((tick(100.0, 10, 50) - (100.0 * (1.0 + 0.125 * 0.999) + 2.0)).abs() < 1e-9, "all lost, and more");
    }

    #[test]
    fn a_period_without_packets_changes_nothing() {
        let mut law = October2002::new(100.0, BOUNDS);
        law.on_tick();
        assert_eq!(law.interval(), 100.0);
    }

    #[test]
    fn the_eleventh_report_within_a_period_adds_half_a_microsecond() {
        let mut law = October2002::new(100.0, BOUNDS);
        let report = Report { first: SeqNo::new(0), losses: 1, acked: SeqNo::new(0), next: SeqNo::new(9) };
        for _ in 0..10 {
            law.on_report(report);
        }
        assert_eq!(law.interval(), 100.0);
        law.on_report(report);
        assert_eq!(law.interval(), 100.5);
    }
}
