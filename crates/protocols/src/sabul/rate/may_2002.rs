//! The law of release 2.0: by the loss rate, in proportion.
//!
//! At each SYN record, with the packets sent since the last one and those received:
//!
//! ```text
//! l ← (sent − received) / sent,  H ← 0.1·H + 0.9·l                             (1)
//! start-up   H < 0.1 %: I ← I/2;  else the start-up ends, and I ← 2·I at H > 1 %   (2)
//! later      H > 1 %:   I ← I·(1 + H − 0.01)                                   (3)
//!            H < 0.1 %: I ← I·(1 − (0.001 − H))                                (4)
//! fifty reports of losses in a row:      I ← I + 2 µs                          (5)
//! 19 200 packets unacknowledged:         I ← 2·I                               (6)
//! I within 1 to 200 µs, first 10 µs
//! ```
//!
//! Source: paper:sabul-tr-2002. Signs of (3) and (4) are those of its listing; its prose has both reversed.
//!
//! **Read in one of several ways** (departure D306). An l below zero is zero: more arrived than left when the rate
//! fell. An acknowledgement ends a row of reports, (5). (6) applies again only after the number fell below.

use farhaul_units::{Duration, SeqNo};

use super::{Bounds, Law, Report};

/// Weight of the newest loss rate in H, (1).
const NEWEST: f64 = 0.9;
/// Loss rate above which I grows, (2) and (3).
const HIGH_LOSS: f64 = 0.01;
/// Loss rate below which I shrinks, (2) and (4).
const LOW_LOSS: f64 = 0.001;
/// Reports in a row that make I grow, (5), and by how much, µs.
const REPORTS: u32 = 50;
const REPORTS_STEP: f64 = 2.0;
/// Unacknowledged packets that double I, (6): three quarters of the window.
const UNACKNOWLEDGED: u32 = 19_200;
/// I.
pub(super) const BOUNDS: Bounds = Bounds { shortest: 1.0, longest: 200.0 };

/// The law.
#[derive(Debug)]
pub(super) struct May2002 {
    interval: f64,
    bounds: Bounds,
    starting: bool,
    /// Packets since the last SYN record.
    sent: u64,
    /// H.
    history: f64,
    /// Reports in a row, (5).
    reports: u32,
    /// (6) has been applied.
    is_full: bool,
}

impl May2002 {
    pub(super) const fn new(interval: f64, bounds: Bounds) -> Self {
        Self { interval, bounds, starting: true, sent: 0, history: 0.0, reports: 0, is_full: false }
    }

    fn set(&mut self, interval: f64) {
        self.interval = self.bounds.clamp(interval);
    }
}

impl Law for May2002 {
    fn interval(&self) -> f64 {
        self.interval
    }

    fn resume(&mut self, interval: f64, _next: SeqNo) {
        self.starting = false;
        (self.sent, self.history, self.reports) = (0, 0.0, 0);
        self.set(interval);
    }

    fn on_sent(&mut self, packets: u32) {
        self.sent += u64::from(packets);
    }

    fn on_syn(&mut self, received: u32) {
        if self.sent == 0 {
            return;
        }
        let loss = 1.0 - (f64::from(received) / self.sent as f64).min(1.0);
        self.history = (1.0 - NEWEST) * self.history + NEWEST * loss;
        self.sent = 0;
        match (self.starting, self.history) {
            (true, history) if history < LOW_LOSS => self.set(self.interval / 2.0),
            (true, history) => {
                self.starting = false;
                if history > HIGH_LOSS {
                    self.set(self.interval * 2.0);
                }
            }
            (false, history) if history > HIGH_LOSS => self.set(self.interval * (1.0 + history - HIGH_LOSS)),
            (false, history) if history < LOW_LOSS => self.set(self.interval * (1.0 - (LOW_LOSS - history))),
            (false, _) => {}
        }
    }

    fn on_report(&mut self, _report: Report) -> Duration {
        self.reports += 1;
        if self.reports == REPORTS {
            self.reports = 0;
            self.set(self.interval + REPORTS_STEP);
        }
        Duration::ZERO
    }

    fn on_ack(&mut self) {
        self.reports = 0;
    }

    fn on_unacknowledged(&mut self, packets: u32) {
        let is_full = packets >= UNACKNOWLEDGED;
        if is_full && !self.is_full {
            self.set(self.interval * 2.0);
        }
        self.is_full = is_full;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: Report = Report { first: SeqNo::new(0), losses: 1, acked: SeqNo::new(0), next: SeqNo::new(9) };

    fn syn(law: &mut May2002, sent: u32, received: u32) -> f64 {
        law.on_sent(sent);
        law.on_syn(received);
        law.interval()
    }

    fn settled(interval: f64) -> May2002 {
        let mut law = May2002::new(interval, BOUNDS);
        law.resume(interval, SeqNo::new(0));
        law
    }

    #[test]
    fn the_start_up_doubles_the_rate_until_the_first_loss() {
        let mut law = May2002::new(10.0, BOUNDS);
        assert_eq!([syn(&mut law, 1_000, 1_000), syn(&mut law, 1_000, 1_000)], [5.0, 2.5]);
        assert_eq!(syn(&mut law, 1_000, 900), 5.0, "H is 9 %");
        assert!(!law.starting);
    }

    #[test]
    fn a_start_up_that_ends_between_the_two_limits_keeps_its_rate() {
        let mut law = May2002::new(10.0, BOUNDS);
        assert_eq!(syn(&mut law, 1_000, 995), 10.0, "H is 0.45 %");
        assert!(!law.starting);
    }

    /// A worked example: one packet in ten lost makes H = 0.09, so I grows by 8 %. Then H = 0.009 lies between.
    #[test]
    fn the_interval_follows_the_loss_in_proportion() {
        let mut law = settled(100.0);
        assert!((syn(&mut law, 1_000, 900) - 108.0).abs() < 1e-9);
        assert!((syn(&mut law, 1_000, 1_000) - 108.0).abs() < 1e-9);
        let shrunk = syn(&mut law, 1_000, 1_000);
        assert!((shrunk - 108.0 * (1.0 - 0.0001)).abs() < 1e-9, "{shrunk}: H is 0.09 %");
    }

    #[test]
    fn more_arrivals_than_departures_are_no_negative_loss() {
        assert!((syn(&mut settled(100.0), 1_000, 2_000) - 99.9).abs() < 1e-9);
    }

    #[test]
    fn fifty_reports_in_a_row_add_two_microseconds() {
        let mut law = settled(100.0);
        for _ in 0..49 {
            law.on_report(REPORT);
        }
        law.on_ack();
        for _ in 0..49 {
            law.on_report(REPORT);
        }
        assert_eq!(law.interval(), 100.0);
        law.on_report(REPORT);
        assert_eq!(law.interval(), 102.0);
    }

    #[test]
    fn three_quarters_of_the_window_unacknowledged_halve_the_rate_once() {
        let mut law = settled(50.0);
        [19_199, 19_200, 25_600].into_iter().for_each(|packets| law.on_unacknowledged(packets));
        assert_eq!(law.interval(), 100.0);
        [0, 19_200].into_iter().for_each(|packets| law.on_unacknowledged(packets));
        assert_eq!(law.interval(), 200.0);
    }
}
