//! BIC (paper:bic): a binary search for the window at which the last loss came, then a search beyond it.
//!
//! ```text
//! Growth per RTT while cwnd < W_max,  d = (W_max − cwnd)/B:     S_max  if d > S_max,   S_min  if d ≤ 1,   d  otherwise
//!                beyond,  m = cwnd − W_max:                     S_min  if m < B,   m/(B − 1)  if m < S_max·(B − 1),   S_max  otherwise
//! Up to low_window packets:      one packet, as Reno
//! Before the first loss:         at least a twentieth of the window
//! Loss, once a window:           W_max ← cwnd, or cwnd·(1 + β)/2 if cwnd < W_max        (fast convergence)
//!                                ssthresh ← β·cwnd;  half of it up to low_window
//! ```
//!
//! | paper | here | unit |
//! | --- | --- | --- |
//! | cwnd | `Window` | packets |
//! | W_max | `origin`; `None` before the first loss | packets |
//! | S_max, S_min, B, 1 − β, low_window | the paper has 32, 0.01, 2, 0.125, 14; Linux has 16, 0.2, 4, 0.2, 14, as here | |
//!
//! Departures (docs/papers/departures.md): D414, the constants are those of Linux, with which BIC ran. Without delayed acknowledgements Linux
//! grows up to 31/16 times as fast, because it truncates their ratio.

use super::law::{Window, WindowLaw};
use super::reno::Reno;
use crate::controller::Path;

/// B: parts of the distance to W_max that an RTT covers. Source: Linux (`BICTCP_B`).
const PARTS: f64 = 4.0;
/// S_max, packets per RTT. Source: Linux (`max_increment`).
const MOST: f64 = 16.0;
/// S_min, packets per RTT: B over `smooth_part`, 20, of Linux.
const LEAST: f64 = PARTS / 20.0;
/// Least growth per RTT before the first loss, as a share of the window. Source: Linux.
const UNKNOWN: f64 = 1.0 / 20.0;
/// β: the share that a loss leaves. Source: Linux (`beta`, 819/1024).
const BETA: f64 = 819.0 / 1_024.0;
/// low_window, packets. Source: the paper, and Linux.
const LOW_WINDOW: f64 = 14.0;

/// `bic`.
#[derive(Clone, Debug)]
pub(crate) struct Bic {
    /// W_max.
    origin: Option<f64>,
}

impl Bic {
    pub(crate) const fn new() -> Self {
        Self { origin: None }
    }

    /// Growth per RTT, packets.
    fn growth(&self, cwnd: f64) -> f64 {
        if cwnd <= LOW_WINDOW {
            return 1.0;
        }
        let origin = self.origin.unwrap_or(0.0);
        let (below, beyond) = (origin - cwnd, cwnd - origin);
        let growth = if below > 0.0 {
            if below <= PARTS { LEAST } else { (below / PARTS).min(MOST) }
        } else if beyond < PARTS {
            LEAST
        } else {
            (beyond / (PARTS - 1.0)).min(MOST)
        };
        if self.origin.is_none() { growth.max(cwnd * UNKNOWN) } else { growth }
    }
}

impl WindowLaw for Bic {
    fn avoid(&mut self, acked: f64, window: &mut Window, _path: &Path) {
        window.cwnd += self.growth(window.cwnd) * acked / window.cwnd;
    }

    fn threshold(&mut self, window: &Window, path: &Path) -> f64 {
        let cwnd = window.cwnd;
        self.origin = Some(match self.origin {
            Some(origin) if cwnd < origin => cwnd * (1.0 + BETA) / 2.0,
            _ => cwnd,
        });
        if cwnd <= LOW_WINDOW { Reno.threshold(window, path) } else { cwnd * BETA }
    }

    fn on_timeout(&mut self, _window: &mut Window, _path: &Path) {
        self.origin = None;
    }
}

#[cfg(test)]
mod tests {
    use super::super::windowed::tests::Connection;
    use super::*;

    #[test]
    fn the_search_halts_near_the_window_of_the_loss_and_goes_on_beyond() {
        let mut tcp = Connection::with_window(Bic::new(), 1_000.0);
        assert!((tcp.lose_one() - 799.8).abs() < 0.1);
        let windows: Vec<f64> = (0..60).map(|_| tcp.round()).collect();
        let step = |at: usize| windows[at] - windows[at - 1];
        assert!((step(2) - 16.0).abs() < 0.5, "S_max far from W_max");
        let near = windows.iter().position(|w| *w > 1_000.0 - PARTS).unwrap();
        assert!((step(near + 1) - LEAST).abs() < 0.1, "S_min beside it");
        assert!(step(59) < 1.0 + MOST && windows[59] > 999.0);
    }

    #[test]
    fn a_loss_below_the_last_window_leaves_room_to_others() {
        let mut law = Bic { origin: Some(1_000.0) };
        let path = Path { in_flight: 800, ..Path::default() };
        law.threshold(&Window { cwnd: 800.0, threshold: 0.0 }, &path);
        assert!((law.origin.unwrap() - 800.0 * (1.0 + BETA) / 2.0).abs() < 1e-9);
    }
}
