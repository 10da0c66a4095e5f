//! HighSpeed TCP (paper:rfc3649): the larger the window, the faster its growth and the smaller its decrease.
//!
//! ```text
//! p(w) = 0.078/w^1.2                                                                       (§5, from High_P at High_Window)
//! b(w) = (High_Decrease − 0.5)·(ln w − ln W)/(ln W1 − ln W) + 0.5                          (§5)
//! a(w) = w²·p(w)·2·b(w)/(2 − b(w))                                                         (§5)
//! Avoidance, per packet:   w ← w + a(w)/w
//! Loss, once a window:     ssthresh ← (1 − b(w))·w
//! ```
//!
//! | RFC 3649 | here | value |
//! | --- | --- | --- |
//! | W, Low_Window | `LOW_WINDOW`; up to it a = 1, b = 1/2, which is Reno | 38 packets |
//! | W1, High_Window | `HIGH_WINDOW`; beyond it b stays, and a grows on | 83 000 packets |
//! | B, High_Decrease | `HIGH_DECREASE` | 0.1 |
//!
//! Departures: a and b are computed, where the RFC's table (appendix B) has whole numbers for a. Linux takes those, rounded up.

use super::law::{Window, WindowLaw};
use crate::controller::Path;

/// Low_Window, packets. Source: RFC 3649 §5.
const LOW_WINDOW: f64 = 38.0;
/// High_Window, packets. Source: RFC 3649 §5.
const HIGH_WINDOW: f64 = 83_000.0;
/// High_Decrease. Source: RFC 3649 §5.
const HIGH_DECREASE: f64 = 0.1;
/// The decrease at Low_Window and below.
const LOW_DECREASE: f64 = 0.5;

/// `highspeed`.
#[derive(Clone, Debug)]
pub(crate) struct HighSpeed;

/// p(w): the loss rate at which the window is `w` on average.
fn loss_rate(w: f64) -> f64 {
    0.078 / libm::pow(w, 1.2)
}

/// b(w).
//= paper:rfc3649 §5
fn decrease(w: f64) -> f64 {
    let position = libm::log(w.clamp(LOW_WINDOW, HIGH_WINDOW) / LOW_WINDOW) / libm::log(HIGH_WINDOW / LOW_WINDOW);
    (HIGH_DECREASE - LOW_DECREASE) * position + LOW_DECREASE
}

/// a(w), packets per RTT.
//= paper:rfc3649 §5
fn increase(w: f64) -> f64 {
    if w <= LOW_WINDOW {
        return 1.0;
    }
    let b = decrease(w);
    w * w * loss_rate(w) * 2.0 * b / (2.0 - b)
}

impl WindowLaw for HighSpeed {
    fn avoid(&mut self, acked: f64, window: &mut Window, _path: &Path) {
        window.cwnd += increase(window.cwnd) * acked / window.cwnd;
    }

    fn threshold(&mut self, window: &Window, _path: &Path) -> f64 {
        window.cwnd * (1.0 - decrease(window.cwnd))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn increase_and_decrease_are_those_of_the_rfcs_table() {
        // Rows of appendix B: w, a(w), b(w).
        for (w, a, b) in
            [(38.0, 1.0, 0.50), (118.0, 2.0, 0.44), (221.0, 3.0, 0.41), (495.0, 5.0, 0.37), (1_058.0, 8.0, 0.33)]
        {
            assert!((increase(w) - a).abs() < 0.05 * a, "a({w}) = {}", increase(w));
            assert!((decrease(w) - b).abs() < 0.005, "b({w}) = {}", decrease(w));
        }
        assert!((decrease(83_000.0) - 0.1).abs() < 1e-9);
        assert!((increase(83_000.0) - 70.0).abs() < 3.0, "{}", increase(83_000.0));
    }

    #[test]
    fn the_window_at_one_loss_in_ten_million_is_high_window() {
        assert!((loss_rate(HIGH_WINDOW) / 1e-7 - 1.0).abs() < 0.03);
    }
}
