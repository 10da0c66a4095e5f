//! TCP Vegas (paper:vegas): keeps two to four packets in the queue, told by the RTT.
//!
//! ```text
//! Diff = (cwnd/BaseRTT − cwnd/RTT)·BaseRTT                packets of this flow in the queue        (§3.2)
//! Avoidance, per RTT:    cwnd ← cwnd + 1 if Diff < α,  cwnd − 1 if Diff > β                         (§3.2)
//! Slow start:            cwnd doubles every other RTT, until Diff > γ; then cwnd ← cwnd − cwnd/8    (§3.3)
//! Loss, once a window:   ssthresh ← FlightSize/2
//! ```
//!
//! | paper | here | unit |
//! | --- | --- | --- |
//! | WindowSize | `Window` | packets |
//! | BaseRTT | `base`, the least of the connection | s |
//! | RTT | the least of the last round, so that delayed acknowledgements do not look like a queue | s |
//! | α, β, γ | options `alpha`, `beta`; `GAMMA` | packets |
//!
//! Departures: a loss halves the window, as in Linux; the paper keeps three quarters where its fine clock found the loss early. Linux adds a
//! packet every other RTT only.

use super::law::{Round, Window, WindowLaw};
use super::reno::Reno;
use crate::controller::Path;

/// γ, packets. Source: the paper, §3.3.
const GAMMA: f64 = 1.0;
/// Share of the window that the end of slow start takes back. Source: the paper, §3.3.
const OVERSHOOT: f64 = 1.0 / 8.0;
/// Fewest RTTs of a round that tell a queue from chance. Source: Linux.
const LEAST_SAMPLES: u32 = 3;
/// The smallest window, packets. Source: Linux.
const LEAST: f64 = 2.0;

/// `vegas`.
#[derive(Clone, Debug)]
pub(crate) struct Vegas {
    alpha: f64,
    beta: f64,
    /// BaseRTT.
    base: f64,
    /// Slow start keeps its window in this round, and compares.
    keeps: bool,
}

impl Vegas {
    /// α and β, packets. Source: Linux; the paper has 1 to 2 and 3 to 4.
    pub(crate) const ALPHA: f64 = 2.0;
    pub(crate) const BETA: f64 = 4.0;

    pub(crate) const fn new(alpha: f64, beta: f64) -> Self {
        Self { alpha, beta, base: f64::INFINITY, keeps: false }
    }
}

impl WindowLaw for Vegas {
    fn on_rtt(&mut self, rtt: f64, _path: &Path) {
        self.base = self.base.min(rtt);
    }

    fn on_ack(&mut self, acked: f64, window: &mut Window, _path: &Path) {
        if !self.keeps {
            window.slow_start(acked, 1.0);
        }
    }

    fn avoid(&mut self, _acked: f64, _window: &mut Window, _path: &Path) {}

    //= paper:vegas §3.2
    fn on_round(&mut self, round: &Round, window: &mut Window, _path: &Path) {
        self.keeps = window.is_in_slow_start() && !self.keeps;
        if round.samples < LEAST_SAMPLES {
            if !window.is_in_slow_start() {
                window.cwnd += 1.0;
            }
            return;
        }
        let diff = window.cwnd * (1.0 - self.base / round.least);
        if window.is_in_slow_start() {
            //= paper:vegas §3.3
            if diff > GAMMA {
                window.lower_to(window.cwnd * (1.0 - OVERSHOOT));
                self.keeps = false;
            }
        } else if diff > self.beta {
            window.cwnd = (window.cwnd - 1.0).max(LEAST);
            window.threshold = window.threshold.min(window.cwnd);
        } else if diff < self.alpha {
            window.cwnd += 1.0;
        }
    }

    fn threshold(&mut self, window: &Window, path: &Path) -> f64 {
        Reno.threshold(window, path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after_round(base: f64, least: f64, cwnd: f64) -> f64 {
        let mut law = Vegas { base, ..Vegas::new(Vegas::ALPHA, Vegas::BETA) };
        let mut window = Window { cwnd, threshold: 2.0 };
        let mut round = Round::EMPTY;
        (0..LEAST_SAMPLES).for_each(|_| round.note(least));
        law.on_round(&round, &mut window, &Path::default());
        window.cwnd
    }

    #[test]
    fn two_to_four_packets_in_the_queue_leave_the_window_alone() {
        // 100 packets in 100 ms of base: each packet in the queue is a millisecond.
        assert_eq!(after_round(0.100, 0.101, 100.0), 101.0, "Diff 0.99");
        assert_eq!(after_round(0.100, 0.103, 100.0), 100.0, "Diff 2.9");
        assert_eq!(after_round(0.100, 0.105, 100.0), 99.0, "Diff 4.8");
    }
}
