//! TCP-Illinois (paper:illinois): losses say when to decrease, and delay says by how much, and how fast to grow.
//!
//! ```text
//! d_a = mean RTT of a round − base,   d_m = longest mean − base                                       (§III)
//! α = α_max  if d_a ≤ d_1 = d_m/100, once for θ rounds after it was beyond;   κ1/(κ2 + d_a) otherwise       (5)
//! β = β_min  if d_a ≤ d_2 = d_m/10;   κ3 + κ4·d_a  in between;   β_max  if d_a ≥ d_3 = 0.8·d_m              (6)
//! α = 1, β = 1/2  while cwnd < W_thresh
//! Avoidance, per packet:   cwnd ← cwnd + α/cwnd
//! Loss, once a window:     ssthresh ← (1 − β)·cwnd
//! ```
//!
//! | paper | here | value |
//! | --- | --- | --- |
//! | α_max, α_min | `MOST_ALPHA`, `LEAST_ALPHA` | 10, 0.3 packets per RTT |
//! | β_max, β_min | `MOST_BETA`, `LEAST_BETA` | 1/2, 1/8 |
//! | W_thresh, θ | `SMALL_WINDOW`, `PATIENCE` | 15 packets, 5 RTTs |
//! | κ1 … κ4 | follow from the ends of the curves: α(d_1) = α_max, α(d_m) = α_min, β(d_2) = β_min, β(d_3) = β_max | |
//!
//! Departures: none. Linux before 2.6.24 left β of the window in place of 1 − β.

use super::law::{Round, Window, WindowLaw};
use crate::controller::Path;

/// Bounds of α, packets per RTT. Source: the paper, §III; Linux has the same.
const MOST_ALPHA: f64 = 10.0;
const LEAST_ALPHA: f64 = 0.3;
/// Bounds of β. Source: as above.
const MOST_BETA: f64 = 0.5;
const LEAST_BETA: f64 = 0.125;
/// Ends of the flat parts, as shares of d_m. Source: as above.
const FIRST: f64 = 0.01;
const SECOND: f64 = 0.1;
const THIRD: f64 = 0.8;
/// W_thresh, packets. Source: as above.
const SMALL_WINDOW: f64 = 15.0;
/// θ, rounds. Source: as above.
const PATIENCE: u32 = 5;

/// `illinois`.
#[derive(Clone, Debug)]
pub(crate) struct Illinois {
    alpha: f64,
    beta: f64,
    base: f64,
    longest: f64,
    /// Rounds of short delay since one with a longer delay; `None` if there was none.
    short: Option<u32>,
}

impl Illinois {
    pub(crate) const fn new() -> Self {
        Self { alpha: 1.0, beta: MOST_BETA, base: f64::INFINITY, longest: 0.0, short: None }
    }

    /// α(d_a), eq. (5).
    //= paper:illinois §III
    fn alpha(&mut self, delay: f64, most: f64) -> f64 {
        let first = FIRST * most;
        if delay > first {
            self.short = Some(0);
            let ratio = (MOST_ALPHA - LEAST_ALPHA) / LEAST_ALPHA;
            return MOST_ALPHA * (most - first) / ((most - first) + (delay - first) * ratio);
        }
        if let Some(rounds) = &mut self.short {
            *rounds += 1;
            if *rounds < PATIENCE {
                return self.alpha;
            }
            self.short = None;
        }
        MOST_ALPHA
    }
}

/// β(d_a), eq. (6).
//= paper:illinois §III
fn beta(delay: f64, most: f64) -> f64 {
    let (second, third) = (SECOND * most, THIRD * most);
    if delay <= second {
        return LEAST_BETA;
    }
    let position = (delay - second) / (third - second);
    LEAST_BETA + (MOST_BETA - LEAST_BETA) * position.min(1.0)
}

impl WindowLaw for Illinois {
    fn on_rtt(&mut self, rtt: f64, _path: &Path) {
        self.base = self.base.min(rtt);
        self.longest = self.longest.max(rtt);
    }

    fn on_round(&mut self, round: &Round, window: &mut Window, _path: &Path) {
        if window.cwnd < SMALL_WINDOW {
            (self.alpha, self.beta) = (1.0, MOST_BETA);
        } else if let Some(mean) = round.mean() {
            let (delay, most) = (mean - self.base, self.longest - self.base);
            self.alpha = self.alpha(delay, most);
            self.beta = beta(delay, most);
        }
    }

    fn avoid(&mut self, acked: f64, window: &mut Window, _path: &Path) {
        window.cwnd += self.alpha * acked / window.cwnd;
    }

    fn threshold(&mut self, window: &Window, _path: &Path) -> f64 {
        window.cwnd * (1.0 - self.beta)
    }

    fn on_timeout(&mut self, _window: &mut Window, _path: &Path) {
        (self.alpha, self.beta, self.short) = (1.0, MOST_BETA, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_curves_pass_through_their_ends() {
        let mut law = Illinois::new();
        assert!((law.alpha(0.1, 0.1) - LEAST_ALPHA).abs() < 1e-9);
        assert!((law.alpha(0.001_000_1, 0.1) - MOST_ALPHA).abs() < 0.01);
        let betas = [0.0, 0.01, 0.045, 0.08, 0.1].map(|delay| beta(delay, 0.1));
        assert!((betas[2] - (LEAST_BETA + MOST_BETA) / 2.0).abs() < 1e-9);
        assert_eq!((betas[0], betas[1], betas[3], betas[4]), (LEAST_BETA, LEAST_BETA, MOST_BETA, MOST_BETA));
    }

    #[test]
    fn growth_is_fast_again_only_after_five_rounds_of_short_delay() {
        let mut law = Illinois::new();
        assert_eq!(law.alpha(0.0, 0.1), MOST_ALPHA, "before any queue");
        law.alpha = law.alpha(0.05, 0.1);
        let slow = law.alpha;
        let rounds = [(); 5].map(|()| law.alpha(0.0, 0.1));
        assert_eq!(rounds, [slow, slow, slow, slow, MOST_ALPHA]);
    }
}
