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
//! Departures: slow start ends with a loss, without HyStart++ (RFC 9406, which §4.10 recommends). A decrease that turns
//! out spurious is not undone (§4.9).

use farhaul_units::{Instant, SendPeriod};

use super::loss_epoch::LossEpoch;
use super::slow_start::{LOSS_WINDOW, SlowStart, bounded};
use crate::controller::{AckEvent, Control, Controller, LossEvent, Path, TimeoutEvent};

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
    slow_start: SlowStart,
    losses: LossEpoch,
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
        Self {
            slow_start: SlowStart::new(),
            losses: LossEpoch::new(),
            origin: None,
            last_origin: 0.0,
            prior: f64::INFINITY,
            epoch: None,
        }
    }

    /// The window after `acked` packets of congestion avoidance.
    fn avoid(&mut self, cwnd: f64, acked: f64, path: &Path) -> f64 {
        let origin = self.origin;
        let epoch = self.epoch.get_or_insert_with(|| Epoch::beginning(path.now, cwnd, origin));
        let idle = path.now - epoch.seen;
        epoch.seen = path.now;
        if path.application_limited {
            epoch.began += idle;
            return cwnd;
        }
        //= paper:rfc9438 §4.3 eq. (4)
        let alpha = if epoch.reno < self.prior { ALPHA } else { 1.0 };
        epoch.reno += alpha * acked / cwnd;
        let t = (path.now - epoch.began).as_secs_f64();
        if epoch.at(t) < epoch.reno {
            return epoch.reno.max(cwnd);
        }
        let target = epoch.at(t + path.rtt.as_secs_f64()).clamp(cwnd, cwnd * MOST);
        cwnd + (target - cwnd) * acked / cwnd
    }

    /// Decreases the window, and sets the threshold and W_max. Returns the new window.
    fn cut(&mut self, cwnd: f64, path: &Path) -> f64 {
        //= paper:rfc9438 §4.7
        self.last_origin = if cwnd < self.last_origin { cwnd * (1.0 + BETA) / 2.0 } else { cwnd };
        self.prior = cwnd;
        self.epoch = None;
        self.slow_start.lower_to(BETA, cwnd, path).min(cwnd)
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

impl Controller for Cubic {
    fn name(&self) -> &str {
        "cubic"
    }

    fn on_connect(&mut self, _path: &Path, control: &mut Control) {
        control.window_of_outstanding = true;
    }

    fn on_take_over(&mut self, path: &Path, control: &mut Control) {
        self.on_connect(path, control);
        control.send_period = SendPeriod::UNPACED;
        self.slow_start = SlowStart::to(control.cwnd.unwrap_or(f64::INFINITY));
    }

    fn wants_deliveries(&self) -> bool {
        true
    }

    fn on_ack(&mut self, path: &Path, ack: &AckEvent, control: &mut Control) {
        self.losses.on_ack(ack.seq);
        let Some(cwnd) = control.cwnd else { return };
        let (cwnd, left) = self.slow_start.grow(cwnd, ack);
        let cwnd = if left > 0.0 { self.avoid(cwnd, left, path) } else { cwnd };
        control.cwnd = Some(bounded(cwnd, path));
    }

    fn on_loss(&mut self, path: &Path, loss: &LossEvent<'_>, control: &mut Control) {
        let Some(cwnd) = control.cwnd else { return };
        if self.losses.begins(loss) {
            control.cwnd = Some(self.cut(cwnd, path));
            self.origin = Some(self.last_origin);
        }
    }

    fn on_timeout(&mut self, path: &Path, timeout: &TimeoutEvent, control: &mut Control) {
        let Some(cwnd) = control.cwnd else { return };
        if timeout.count <= 1 {
            self.cut(cwnd, path);
        }
        //= paper:rfc9438 §4.8
        self.origin = None;
        self.epoch = None;
        self.losses.restart(timeout.largest_sent);
        control.cwnd = Some(LOSS_WINDOW);
    }
}

#[cfg(test)]
mod tests;
