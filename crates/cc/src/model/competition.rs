//! The window beside flows that fill the queue: CUBIC's (paper:rfc9438), as a function of time.
//!
//! ```text
//! W(t) = max(C·(t − K)³ + W_max,  W_0 + min(α/RTT, W_0/s)·t),   K = ∛((W_max − W_0)/C),  at most W_0·1.5^(t/RTT)
//! cut    W_max ← W, or W·(1 + β)/2 if W < W_max;   W_0 ← W·β
//! ```

use farhaul_units::Instant;

use crate::window::cubic::{ALPHA, BETA, C, MOST};

/// Reno's growth per second is at most this share of W_0: a window of few packets would grow faster than its losses can tell.
const FASTEST: f64 = 1.0;
/// One stage of congestion avoidance.
#[derive(Clone, Copy, Debug)]
pub(super) struct CubicWindow {
    pub(super) began: Instant,
    /// W_max, packets.
    pub(super) origin: f64,
    /// W_0, packets.
    pub(super) base: f64,
}

impl CubicWindow {
    /// The stage after a cut in a loss or in the drop of a queue.
    pub(super) fn cut(&self, now: Instant, rtt: f64) -> Self {
        let window = self.at(now, rtt);
        let origin = if window < self.origin { window * (1.0 + BETA) / 2.0 } else { window };
        Self { began: now, origin, base: window * BETA }
    }

    /// The window at `now` over `rtt` seconds, packets.
    pub(super) fn at(&self, now: Instant, rtt: f64) -> f64 {
        let t = (now - self.began).as_secs_f64();
        let offset = t - libm::cbrt((self.origin - self.base).max(0.0) / C);
        let reno = self.base + (ALPHA / rtt).min(FASTEST * self.base) * t;
        let grown = (self.origin + C * offset * offset * offset).max(reno);
        //= paper:rfc9438 §4.2
        grown.min(self.base * libm::pow(MOST, t / rtt))
    }
}

#[cfg(test)]
mod tests {
    use farhaul_units::Duration;

    use super::*;

    #[test]
    fn the_window_returns_to_its_origin_along_a_cubic() {
        let start = CubicWindow { began: Instant::ZERO, origin: 1_000.0, base: 1_000.0 };
        let cut = start.cut(Instant::ZERO, 10.0);
        assert!((cut.at(Instant::ZERO, 10.0) - 700.0).abs() < 1e-6);
        // K = ∛(300/0.4) = 9.086 s.
        assert!((cut.at(Instant::ZERO + Duration::from_micros(9_085_603), 10.0) - 1_000.0).abs() < 1e-3);
        let again = cut.cut(Instant::ZERO, 10.0);
        assert!((again.origin - 595.0).abs() < 1e-6 && (again.base - 490.0).abs() < 1e-6, "it leaves room to others");
    }

    /// On a slow link a loss shows after seconds, in which a cubic alone would grow to many times the window.
    #[test]
    fn no_window_grows_by_more_than_half_per_round_trip() {
        let cut = CubicWindow { began: Instant::ZERO, origin: 100.0, base: 70.0 };
        assert!((cut.at(Instant::ZERO + Duration::from_secs(12), 6.0) - 70.0 * 2.25).abs() < 1e-6);
    }

    #[test]
    fn a_small_window_grows_as_renos_but_not_faster_than_its_losses_tell() {
        let cut = CubicWindow { began: Instant::ZERO, origin: 10.0, base: 7.0 };
        let after = |rtt| cut.at(Instant::ZERO + Duration::from_secs(1), rtt);
        assert!((after(0.1) - (7.0 + 10.0 * 0.9 / 1.7)).abs() < 1e-6);
        assert!((after(0.01) - 14.0).abs() < 1e-6, "it doubles in a second");
    }
}
