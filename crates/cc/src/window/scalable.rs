//! Scalable TCP (paper:kelly-2003): the time to return after a loss does not depend on the window.
//!
//! ```text
//! Avoidance, per packet:   cwnd ← cwnd + a                    a = 0.01        (§3)
//! Loss, once a window:     ssthresh ← cwnd − b·cwnd           b = 0.125       (§3)
//! Up to lwnd packets:      as Reno                            lwnd = 16       (§3.1)
//! ```
//!
//! | paper | here | unit |
//! | --- | --- | --- |
//! | cwnd | `Window` | packets |
//! | a, b | `INCREASE`, `DECREASE` | packets per ACK; share |
//! | lwnd | `LEGACY_WINDOW`, where both laws have the same window at the same loss rate | packets |
//!
//! Departures: none. Linux grows by the larger of a and Reno's 1/cwnd, and decreases by b at any window, so it is faster below 100 packets.

use super::law::{Window, WindowLaw};
use super::reno::Reno;
use crate::controller::Path;

/// a: growth for each acknowledged packet, packets. Source: the paper, §3.
const INCREASE: f64 = 0.01;
/// b. Source: the paper, §3.
const DECREASE: f64 = 0.125;
/// lwnd, packets. Source: the paper, §3.1.
const LEGACY_WINDOW: f64 = 16.0;

/// `scalable`.
#[derive(Clone, Debug)]
pub(crate) struct Scalable;

impl WindowLaw for Scalable {
    fn avoid(&mut self, acked: f64, window: &mut Window, path: &Path) {
        if window.cwnd <= LEGACY_WINDOW {
            return Reno.avoid(acked, window, path);
        }
        window.cwnd += INCREASE * acked;
    }

    fn threshold(&mut self, window: &Window, path: &Path) -> f64 {
        if window.cwnd <= LEGACY_WINDOW {
            return Reno.threshold(window, path);
        }
        window.cwnd * (1.0 - DECREASE)
    }
}

#[cfg(test)]
mod tests {
    use super::super::windowed::tests::Connection;
    use super::*;

    #[test]
    fn a_window_returns_in_the_same_number_of_round_trips_whatever_it_is() {
        // ln(1/0.875)/ln(1.01): paper §3.
        for cwnd in [1_000.0, 10_000.0] {
            let mut tcp = Connection::with_window(Scalable, cwnd);
            assert_eq!(tcp.lose_one(), cwnd * 0.875);
            let rounds = (1..).find(|_| tcp.round() >= cwnd).unwrap();
            assert!((13..=14).contains(&rounds), "{rounds}");
        }
    }
}
