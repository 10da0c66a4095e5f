//! TCP Hybla (paper:hybla): a flow over a satellite grows as fast as one with an RTT of 25 ms would.
//!
//! ```text
//! ρ = max(RTT/RTT0, 1),  RTT0 = 25 ms                                        (§3)
//! Slow start, per packet:  cwnd ← cwnd + 2^ρ − 1                             (8)
//! Avoidance, per packet:   cwnd ← cwnd + ρ²/cwnd                             (8)
//! Loss, once a window:     ssthresh ← FlightSize/2
//! ```
//!
//! | paper | here | unit |
//! | --- | --- | --- |
//! | cwnd, ssthresh | `Window` | packets |
//! | RTT | `Path::rtt`, smoothed | s |
//!
//! Departures (docs/papers/departures.md): D424 ρ is at most 16, so that one acknowledgement at a wrong RTT does not fill a path, and an
//! RTT of avoidance adds at most half of the window.

use super::law::{Window, WindowLaw};
use super::reno::Reno;
use crate::controller::Path;

/// RTT0, s. Source: the paper, §3.
const REFERENCE_RTT: f64 = 25e-3;
/// Largest ρ: 400 ms, of two satellites in a row.
const MOST: f64 = 16.0;
/// Largest growth in avoidance, as a share of the window per RTT (D424): that of CUBIC, RFC 9438 §4.2. Of 1, ¾ and ½ it is also the only one
/// with which a path of 60 packets and 600 ms confirms something every five seconds.
const MOST_GROWTH: f64 = 0.5;

/// `hybla`.
#[derive(Clone, Debug)]
pub(crate) struct Hybla;

/// ρ.
fn ratio(path: &Path) -> f64 {
    (path.rtt.as_secs_f64() / REFERENCE_RTT).clamp(1.0, MOST)
}

impl WindowLaw for Hybla {
    fn start_growth(&self, _window: &Window, path: &Path) -> f64 {
        libm::exp2(ratio(path)) - 1.0
    }

    fn avoid(&mut self, acked: f64, window: &mut Window, path: &Path) {
        window.cwnd += (ratio(path) * ratio(path) / window.cwnd).min(MOST_GROWTH) * acked;
    }

    fn threshold(&mut self, window: &Window, path: &Path) -> f64 {
        Reno.threshold(window, path)
    }
}
