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
//! | cwnd, ssthresh | `Window` | packets |
//!
//! Departures: the threshold is that of RFC 5681 eq. (4), half of the packets in flight.

use super::law::{LOSS_WINDOW, Window, WindowLaw};
use super::reno::Reno;
use crate::controller::Path;

/// `tahoe`.
#[derive(Clone, Debug)]
pub(crate) struct Tahoe;

impl WindowLaw for Tahoe {
    /// It sends again from the first loss on, so all behind a gap counts.
    const OF_OUTSTANDING: bool = false;

    fn avoid(&mut self, acked: f64, window: &mut Window, path: &Path) {
        Reno.avoid(acked, window, path);
    }

    fn threshold(&mut self, window: &Window, path: &Path) -> f64 {
        Reno.threshold(window, path)
    }

    fn on_loss(&mut self, window: &mut Window, path: &Path) {
        window.lower_to(Reno.threshold(window, path));
        window.cwnd = LOSS_WINDOW;
    }
}
