//! CUBIC (paper:rfc9438): the window returns along a cubic to its value before the loss, stays there, then grows
//! beyond.
//!
//! ```text
//! W_cubic(t) = C·(t − K)³ + W_max                                                         (1)
//! K          = ∛((W_max − cwnd_epoch)/C)                                                  (2)
//! target     = W_cubic(t + RTT), at least cwnd and at most 1.5·cwnd                       (§4.2)
//! Slow start, per packet:  cwnd ← cwnd + 1                 while cwnd < ssthresh
//! Avoidance, per packet:   W_est ← W_est + α/cwnd                                         (4)
//!                          cwnd ← W_est                    if W_cubic(t) < W_est          (§4.3)
//!                          cwnd ← cwnd + (target − cwnd)/cwnd  otherwise                  (§4.4, 4.5)
//! Loss, once a window:     W_max ← cwnd, or cwnd·(1 + β)/2 if cwnd < W_max                (§4.7)
//!                          ssthresh ← max(FlightSize·β, 2),  cwnd ← ssthresh              (§4.6)
//! Time-out:                as a loss, but cwnd ← 1; the next avoidance begins with K = 0  (§4.8)
//! ```
//!
//! | RFC 9438 | here | unit |
//! | --- | --- | --- |
//! | cwnd | `Control::cwnd` | packets |
//! | cwnd_epoch, W_max, W_est, K | `Epoch` | packets, s |
//! | t | time since the avoidance began, without application-limited time | s |
//! | cwnd_prior | `prior`, the window before the last cut | packets |
//! | α | 3·(1 − β)/(1 + β), and 1 once W_est has reached cwnd_prior | packets |
//!
//! Departures: a decrease that turns out spurious is not undone (§4.9). The first slow start ends by HyStart++ (`hystart.rs`), as §4.10
//! recommends.

use farhaul_units::Instant;

use super::hystart::HyStart;
use super::law::{Round, Window, WindowLaw};
use crate::controller::Path;

/// C, packets/s³: how fast the window departs from W_max. Source: RFC 9438 §5.
pub(crate) const C: f64 = 0.4;
/// β: the share of the window left by a decrease. Source: RFC 9438 §4.6.
pub(crate) const BETA: f64 = 0.7;
/// α: growth per RTT that is as fair to Reno as halving is, with decreases to β. Source: RFC 9438 §4.3.
pub(crate) const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// Largest growth per RTT, as a multiple of the window. Source: RFC 9438 §4.2.
pub(crate) const MOST: f64 = 1.5;

/// `cubic`.
#[derive(Clone, Debug)]
pub(crate) struct Cubic {
    start: HyStart,
    /// W_max; `None` before the first loss and after a time-out.
    origin: Option<f64>,
    /// W_max for the next comparison (§4.7). A time-out keeps it.
    last_origin: f64,
    /// cwnd_prior.
    prior: f64,
    /// The current avoidance; `None` in slow start.
    epoch: Option<Epoch>,
}

/// One stage of congestion avoidance.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    began: Instant,
    /// When the last acknowledgement arrived, to exclude application-limited time.
    seen: Instant,
    /// W_max, packets.
    origin: f64,
    /// K, seconds.
    reach: f64,
    /// W_est, packets: the window of Reno.
    reno: f64,
}

impl Cubic {
    pub(crate) const fn new() -> Self {
        Self { start: HyStart::new(), origin: None, last_origin: 0.0, prior: f64::INFINITY, epoch: None }
    }
}

impl Epoch {
    /// Congestion avoidance begins with `cwnd` at `now`. Without an origin, on the flat part of the curve.
    fn beginning(now: Instant, cwnd: f64, origin: Option<f64>) -> Self {
        let origin = origin.map_or(cwnd, |origin| origin.max(cwnd));
        //= paper:rfc9438 §4.2 eq. (2)
        let reach = libm::cbrt((origin - cwnd) / C);
        Self { began: now, seen: now, origin, reach, reno: cwnd }
    }

    /// `W_cubic(t)`.
    //= paper:rfc9438 §4.2 eq. (1)
    fn at(&self, t: f64) -> f64 {
        let beyond = t - self.reach;
        C * beyond * beyond * beyond + self.origin
    }
}

impl WindowLaw for Cubic {
    fn on_rtt(&mut self, rtt: f64, _path: &Path) {
        self.start.on_rtt(rtt);
    }

    fn on_round(&mut self, _round: &Round, window: &mut Window, _path: &Path) {
        if window.threshold.is_infinite() {
            self.start.on_round(window);
        }
    }

    fn start_growth(&self, window: &Window, _path: &Path) -> f64 {
        if window.threshold.is_infinite() { self.start.growth() } else { 1.0 }
    }

    fn avoid(&mut self, acked: f64, window: &mut Window, path: &Path) {
        let (cwnd, origin) = (window.cwnd, self.origin);
        let epoch = self.epoch.get_or_insert_with(|| Epoch::beginning(path.now, cwnd, origin));
        let idle = path.now - epoch.seen;
        epoch.seen = path.now;
        if path.application_limited {
            epoch.began += idle;
            return;
        }
        //= paper:rfc9438 §4.3 eq. (4)
        let alpha = if epoch.reno < self.prior { ALPHA } else { 1.0 };
        epoch.reno += alpha * acked / cwnd;
        let t = (path.now - epoch.began).as_secs_f64();
        if epoch.at(t) < epoch.reno {
            window.cwnd = epoch.reno.max(cwnd);
            return;
        }
        let target = epoch.at(t + path.rtt.as_secs_f64()).clamp(cwnd, cwnd * MOST);
        window.cwnd += (target - cwnd) * acked / cwnd;
    }

    fn threshold(&mut self, window: &Window, path: &Path) -> f64 {
        //= paper:rfc9438 §4.7
        let cwnd = window.cwnd;
        self.last_origin = if cwnd < self.last_origin { cwnd * (1.0 + BETA) / 2.0 } else { cwnd };
        (self.origin, self.prior, self.epoch) = (Some(self.last_origin), cwnd, None);
        window.flight(path) * BETA
    }

    //= paper:rfc9438 §4.8
    fn on_timeout(&mut self, _window: &mut Window, _path: &Path) {
        (self.origin, self.epoch) = (None, None);
    }
}

#[cfg(test)]
mod tests;
