//! NewReno (paper:rfc6582): Reno, whose recovery lasts until all losses of a window are repaired, and ends without a burst.
//!
//! ```text
//! Growth, loss, time-out:   as Reno's (reno.rs)
//! All repaired:             cwnd ← min(ssthresh, max(FlightSize, 1) + 1)           (§3.2 step 3, full acknowledgement)
//! ```
//!
//! | RFC 6582 | here |
//! | --- | --- |
//! | recover | `LossEpoch`, in every law of windows: losses of packets sent before a decrease belong to it |
//! | partial acknowledgement | the transport's: `Recovery::NewReno` of simulated TCP; UDT repairs what its receiver reports |
//!
//! Departures: none.

use super::law::{Window, WindowLaw};
use super::reno::Reno;
use crate::controller::Path;

/// `newreno`.
#[derive(Clone, Debug)]
pub(crate) struct NewReno;

impl WindowLaw for NewReno {
    fn avoid(&mut self, acked: f64, window: &mut Window, path: &Path) {
        Reno.avoid(acked, window, path);
    }

    fn threshold(&mut self, window: &Window, path: &Path) -> f64 {
        Reno.threshold(window, path)
    }

    //= paper:rfc6582 §3.2 step 3
    fn on_recovered(&mut self, window: &mut Window, path: &Path) {
        let flight = f64::from(path.in_flight).max(1.0) + 1.0;
        window.cwnd = window.cwnd.min(window.threshold).min(flight);
    }
}
