//! The standard law of TCP (paper:rfc5681): slow start, congestion avoidance, half the window on a loss.
//!
//! ```text
//! Slow start, per ACK:   cwnd ← cwnd + acked           while cwnd < ssthresh       (2)
//! Avoidance, per ACK:    cwnd ← cwnd + acked/cwnd                                  (3)
//! Loss, once a window:   ssthresh ← max(FlightSize/2, 2)                           (4)
//!                        cwnd ← ssthresh
//! Time-out:              ssthresh by (4), unless it is another of the same packet
//!                        cwnd ← 1
//! ```
//!
//! | RFC 5681 | here | unit |
//! | --- | --- | --- |
//! | cwnd | `Control::cwnd` | packets |
//! | ssthresh | `SlowStart` | packets |
//! | FlightSize | `Path::in_flight`, at most cwnd | packets |
//! | acked (N) | `AckEvent::newly_acked`; the transport decides for how many packets an ACK counts | packets |
//!
//! Reno, NewReno and SACK differ in retransmission, and inflate the window during fast recovery. Both are parts of the
//! transport, not of this law. Departures: none.

use farhaul_units::SendPeriod;

use super::loss_epoch::LossEpoch;
use super::slow_start::{LOSS_WINDOW, SlowStart, bounded};
use crate::controller::{AckEvent, Control, Controller, LossEvent, Path, TimeoutEvent};

/// `reno`.
#[derive(Clone, Debug)]
pub(crate) struct Reno {
    slow_start: SlowStart,
    epoch: LossEpoch,
}

impl Reno {
    pub(crate) const fn new() -> Self {
        Self { slow_start: SlowStart::new(), epoch: LossEpoch::new() }
    }

    /// Halves the window if `loss` is the first of its window. Returns whether it did.
    pub(super) fn cut(&mut self, path: &Path, loss: &LossEvent<'_>, control: &mut Control) -> bool {
        let Some(cwnd) = control.cwnd else { return false };
        let cuts = self.epoch.begins(loss);
        if cuts {
            control.cwnd = Some(self.slow_start.lower(cwnd, path).min(cwnd));
        }
        cuts
    }
}

impl Controller for Reno {
    fn name(&self) -> &str {
        "reno"
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
        self.epoch.on_ack(ack.seq);
        let Some(cwnd) = control.cwnd else { return };
        let (cwnd, left) = self.slow_start.grow(cwnd, ack);
        //= paper:rfc5681 §3.1 eq. (3)
        control.cwnd = Some(bounded(cwnd + left / cwnd, path));
    }

    fn on_loss(&mut self, path: &Path, loss: &LossEvent<'_>, control: &mut Control) {
        self.cut(path, loss, control);
    }

    fn on_timeout(&mut self, path: &Path, timeout: &TimeoutEvent, control: &mut Control) {
        let Some(cwnd) = control.cwnd else { return };
        if timeout.count <= 1 {
            self.slow_start.lower(cwnd, path);
        }
        self.epoch.restart(timeout.largest_sent);
        control.cwnd = Some(LOSS_WINDOW);
    }
}

#[cfg(test)]
mod tests;
