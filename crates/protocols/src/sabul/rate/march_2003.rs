//! The law of release 2.1, March 2003: additive in packets per interval, by an eighth down.
//!
//! T is the interval of 10 ms. D is the next packet at the last decrease.
//!
//! ```text
//! report   first loss beyond D:  I ← 1.125·I, pause for T, n ← 1, k ← 4, D ← next packet         (1)
//!          otherwise n ← n + 1;  at n = 2^k: k ← k + 1, I ← 1.125·I                              (2)
//! every T  l ← losses reported / max(packets sent, losses), since the last time
//!          H ← 0.1·H + 0.9·l                                                                     (3)
//!          if H ≤ 0.001, with N = T/I packets in T:
//!          inc ← max(10^⌈log10 N⌉ / 1000, 1/1500)                                                (4)
//!          I ← I·T / (I·inc + T), that is N + inc packets, then within 10 µs to 1000 µs          (5)
//! ```
//!
//! Source: the program of release 2.1, with which the authors' model for ns-2 agrees.
//!
//! **Read in one of several ways** (departure D305). A loss counts when it enters the sender's list. The clock is
//! the sender's own, and runs while packets leave. The bounds apply after an increase only, so decreases go beyond.

use farhaul_units::{Duration, SeqNo};

use super::{Bounds, Law, Report};

/// T, (1) and (4).
const TICK: Duration = Duration::from_millis(10);
/// T in µs.
const TICK_MICROS: f64 = 10_000.0;
/// I grows by this factor, (1) and (2).
const DECREASE: f64 = 1.125;
/// k after a first decrease, (1): fifteen more reports make the second.
const FIRST_K: u32 = 4;
/// Largest k. The program has no bound.
const LAST_K: u32 = 31;
/// Weight of the newest loss rate in H, (3).
const NEWEST: f64 = 0.9;
/// Loss rate above which I does not shrink.
const TOLERATED: f64 = 0.001;
/// The least increase, packets per T, (4).
const LEAST_INCREASE: f64 = 1.0 / 1_500.0;
/// I after an increase, (5).
pub(super) const BOUNDS: Bounds = Bounds { shortest: 10.0, longest: 1_000.0 };

/// The law.
#[derive(Debug)]
pub(super) struct March2003 {
    interval: f64,
    bounds: Bounds,
    /// D; `None` before the first decrease, and once that packet is acknowledged.
    decreased_at: Option<SeqNo>,
    /// n and k, (2).
    reports: u32,
    k: u32,
    /// Since the last tick.
    sent: u64,
    lost: u64,
    /// H.
    history: f64,
}

impl March2003 {
    pub(super) const fn new(interval: f64, bounds: Bounds) -> Self {
        Self { interval, bounds, decreased_at: None, reports: 0, k: FIRST_K, sent: 0, lost: 0, history: 0.0 }
    }

    /// The increase for `packets` packets per T, (4).
    fn increase(packets: f64) -> f64 {
        let decade = libm::pow(10.0, libm::ceil(libm::log10(packets)));
        (decade / 1_000.0).max(LEAST_INCREASE)
    }
}

impl Law for March2003 {
    fn interval(&self) -> f64 {
        self.interval
    }

    fn resume(&mut self, interval: f64, next: SeqNo) {
        (self.interval, self.decreased_at) = (interval, Some(next));
        (self.reports, self.sent, self.lost, self.history) = (1, 0, 0, 0.0);
    }

    fn clock(&self) -> Option<Duration> {
        Some(TICK)
    }

    fn on_tick(&mut self) {
        let most = self.sent.max(self.lost);
        let loss = if most == 0 { 0.0 } else { self.lost as f64 / most as f64 };
        self.history = (1.0 - NEWEST) * self.history + NEWEST * loss;
        (self.sent, self.lost) = (0, 0);
        if self.history > TOLERATED {
            return;
        }
        let increase = Self::increase(TICK_MICROS / self.interval);
        self.interval = self.bounds.clamp(self.interval * TICK_MICROS / (self.interval * increase + TICK_MICROS));
    }

    fn on_sent(&mut self, packets: u32) {
        self.sent += u64::from(packets);
    }

    fn on_report(&mut self, report: Report) -> Duration {
        self.lost += u64::from(report.losses);
        // A number that was acknowledged long ago would have no order.
        self.decreased_at = self.decreased_at.filter(|at| !at.is_before(report.acked));
        if self.decreased_at.is_none_or(|at| report.first.is_after(at)) {
            self.interval *= DECREASE;
            (self.decreased_at, self.reports, self.k) = (Some(report.next), 1, FIRST_K);
            return TICK;
        }
        self.reports += 1;
        if self.reports >= 1 << self.k {
            self.k = (self.k + 1).min(LAST_K);
            self.interval *= DECREASE;
        }
        Duration::ZERO
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(first: u32, next: u32) -> Report {
        Report { first: SeqNo::new(first), losses: 1, acked: SeqNo::new(0), next: SeqNo::new(next) }
    }

    fn law(interval: f64) -> March2003 {
        March2003::new(interval, BOUNDS)
    }

    /// A worked example: at 100 µs a tick has N = 100 packets, so (4) adds 0.1 and (5) gives 10 000/100.1 µs.
    #[test]
    fn a_tick_without_loss_adds_a_thousandth_of_the_decade() {
        let mut law = law(100.0);
        law.on_sent(100);
        law.on_tick();
        assert!((law.interval() - 10_000.0 / 100.1).abs() < 1e-9, "{}", law.interval());
        for (packets, increase) in [(1_000.0, 1.0), (833.3, 1.0), (99.0, 0.1), (101.0, 1.0), (0.4, 1.0 / 1_000.0)] {
            assert!((March2003::increase(packets) - increase).abs() < 1e-12, "{packets}");
        }
        assert!((March2003::increase(0.01) - LEAST_INCREASE).abs() < 1e-12);
    }

    #[test]
    fn a_report_beyond_the_last_decrease_takes_a_ninth_of_the_rate_and_pauses() {
        let mut law = law(80.0);
        assert_eq!((law.on_report(report(0, 500)), law.interval()), (TICK, 90.0));
        assert_eq!((law.on_report(report(500, 900)), law.interval()), (Duration::ZERO, 90.0), "500 is not beyond 500");
        assert_eq!((law.on_report(report(501, 900)), law.interval()), (TICK, 101.25));
    }

    #[test]
    fn the_sixteenth_report_of_one_event_is_another_decrease_and_then_the_thirty_second() {
        let mut law = law(80.0);
        let decreases: Vec<u32> = (1..=100)
            .filter(|_| {
                let before = law.interval();
                law.on_report(report(0, 500));
                law.interval() > before
            })
            .collect();
        assert_eq!(decreases, [1, 16, 32, 64]);
    }

    #[test]
    fn a_loss_of_more_than_a_thousandth_stops_the_growth_and_is_forgotten_by_tens() {
        let mut law = law(100.0);
        law.on_report(report(0, 500));
        let slow = law.interval();
        law.on_sent(10);
        law.on_tick();
        assert_eq!(law.interval(), slow, "H is 0.09");
        law.on_tick();
        assert_eq!(law.interval(), slow, "H is 0.009");
        law.on_tick();
        assert!(law.interval() < slow, "H is 0.0009");
    }

    #[test]
    fn the_bounds_hold_after_an_increase_only() {
        let mut law = law(10.0);
        law.on_tick();
        assert_eq!(law.interval(), 10.0);
        for first in 0..100 {
            law.on_report(report(10 * first + 1, 10 * first));
        }
        assert!(law.interval() > 1_000.0);
        (0..10).for_each(|_| law.on_tick());
        assert!(law.interval() <= 1_000.0);
    }

    #[test]
    fn the_losses_of_a_start_up_are_no_news() {
        let mut law = law(10.0);
        law.resume(50.0, SeqNo::new(700));
        assert_eq!((law.on_report(report(600, 800)), law.interval()), (Duration::ZERO, 50.0));
    }
}
