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
//! | cwnd, ssthresh | `Window` | packets |
//! | FlightSize | `Window::flight` | packets |
//! | acked (N) | `AckEvent::newly_acked`; the transport decides for how many packets an ACK counts | packets |
//!
//! Departures: none. Retransmission, and inflation during fast recovery, are the transport's.

use super::law::{Window, WindowLaw};
use crate::controller::Path;

/// The share of the flight that a loss leaves. Source: RFC 5681 eq. (4), FlightSize/2.
const HALF: f64 = 0.5;

/// `reno`.
#[derive(Clone, Debug)]
pub(crate) struct Reno;

impl WindowLaw for Reno {
    //= paper:rfc5681 §3.1 eq. (3)
    fn avoid(&mut self, acked: f64, window: &mut Window, _path: &Path) {
        window.cwnd += acked / window.cwnd;
    }

    //= paper:rfc5681 §3.1 eq. (4)
    fn threshold(&mut self, window: &Window, path: &Path) -> f64 {
        window.flight(path) * HALF
    }
}
