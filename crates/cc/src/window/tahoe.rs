//! TCP before fast recovery (paper:jacobson-1988): every loss restarts slow start.
//!
//! ```text
//! Growth:                as Reno's (reno.rs)
//! Loss, once a window:   ssthresh ← max(FlightSize/2, 2)
//! or time-out            cwnd ← 1
//! ```
//!
//! | paper | here | unit |
//! | --- | --- | --- |
//! | cwnd | `Control::cwnd` | packets |
//! | ssthresh | `Reno`'s | packets |
//!
//! Departures: the threshold is that of RFC 5681 eq. (4), half of the packets in flight.

use super::reno::Reno;
use super::slow_start::LOSS_WINDOW;
use crate::controller::{AckEvent, Control, Controller, LossEvent, Path, TimeoutEvent};

/// `tahoe`.
#[derive(Clone, Debug)]
pub(crate) struct Tahoe(Reno);

impl Tahoe {
    pub(crate) const fn new() -> Self {
        Self(Reno::new())
    }
}

impl Controller for Tahoe {
    fn name(&self) -> &str {
        "tahoe"
    }

    fn on_take_over(&mut self, path: &Path, control: &mut Control) {
        self.0.on_take_over(path, control);
        control.window_of_outstanding = false;
    }

    fn on_ack(&mut self, path: &Path, ack: &AckEvent, control: &mut Control) {
        self.0.on_ack(path, ack, control);
    }

    fn on_loss(&mut self, path: &Path, loss: &LossEvent<'_>, control: &mut Control) {
        if self.0.cut(path, loss, control) {
            control.cwnd = Some(LOSS_WINDOW);
        }
    }

    fn on_timeout(&mut self, path: &Path, timeout: &TimeoutEvent, control: &mut Control) {
        self.0.on_timeout(path, timeout, control);
    }
}
