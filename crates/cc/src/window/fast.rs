//! FAST TCP (paper:fast-tcp): each flow keeps the same number of packets in the queue, and moves there without oscillation.
//!
//! ```text
//! w ← min(2·w, (1 − γ)·w + γ·(baseRTT/RTT·w + α))       every other RTT or 20 ms, whichever is longer       (§III)
//! Slow start:            until α/2 packets of this flow are in the queue
//! Loss, once a window:   ssthresh ← FlightSize/2
//! ```
//!
//! | paper | here | unit |
//! | --- | --- | --- |
//! | w | `Window` | packets |
//! | baseRTT, RTT | `base`; the mean of the rounds since the last update | s |
//! | α | option `alpha`, packets that this flow keeps in the queue | packets |
//! | γ | `GAIN` | |
//!
//! Departures: the paper's α depends on the capacity (8, 20, 200 at 10, 100, 1000 Mbit/s). Here it is 200 unless it is set, because flows
//! share by α, and a flow does not know the capacity that others know.

use farhaul_units::{Duration, Instant};

use super::law::{Round, Window, WindowLaw};
use super::reno::Reno;
use crate::controller::Path;

/// γ. Source: the paper, §III.
const GAIN: f64 = 0.5;
/// The shortest time between updates. Source: the paper, §III.
const LEAST_INTERVAL: Duration = Duration::from_millis(20);
/// RTTs between updates. Source: the paper, §III.
const ROUNDS: u32 = 2;

/// `fast`.
#[derive(Clone, Debug)]
pub(crate) struct Fast {
    alpha: f64,
    /// baseRTT.
    base: f64,
    /// Since the last update.
    rtts: Round,
    rounds: u32,
    updated: Instant,
}

impl Fast {
    /// α, packets. Source: the paper, for 1 Gbit/s.
    pub(crate) const ALPHA: f64 = 200.0;

    pub(crate) const fn new(alpha: f64) -> Self {
        Self { alpha, base: f64::INFINITY, rtts: Round::EMPTY, rounds: 0, updated: Instant::ZERO }
    }
}

impl WindowLaw for Fast {
    fn on_rtt(&mut self, rtt: f64, _path: &Path) {
        self.base = self.base.min(rtt);
        self.rtts.note(rtt);
    }

    fn avoid(&mut self, _acked: f64, _window: &mut Window, _path: &Path) {}

    fn on_round(&mut self, round: &Round, window: &mut Window, path: &Path) {
        if window.is_in_slow_start() {
            let queued = window.cwnd * (1.0 - self.base / round.least);
            if round.samples > 0 && queued > self.alpha / 2.0 {
                window.lower_to(window.cwnd);
            }
            return;
        }
        self.rounds += 1;
        if self.rounds < ROUNDS || path.now.saturating_since(self.updated) < LEAST_INTERVAL {
            return;
        }
        let Some(rtt) = self.rtts.mean() else { return };
        (self.rounds, self.updated, self.rtts) = (0, path.now, Round::EMPTY);
        let w = window.cwnd;
        //= paper:fast-tcp §III
        window.cwnd = (2.0 * w).min((1.0 - GAIN) * w + GAIN * (self.base / rtt * w + self.alpha));
        window.threshold = window.threshold.min(window.cwnd);
    }

    fn threshold(&mut self, window: &Window, path: &Path) -> f64 {
        Reno.threshold(window, path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_rests_where_alpha_packets_are_in_the_queue() {
        // 1000 packets fill the path in 100 ms; what is beyond waits.
        let mut law = Fast::new(Fast::ALPHA);
        let mut window = Window { cwnd: 1_500.0, threshold: 2.0 };
        let mut path = Path::default();
        law.on_rtt(0.1, &path);
        for _ in 0..200 {
            path.now += Duration::from_millis(120);
            let rtt = 0.1 * (window.cwnd / 1_000.0).max(1.0);
            law.on_rtt(rtt, &path);
            law.on_round(&Round::EMPTY, &mut window, &path);
        }
        assert!((window.cwnd - 1_200.0).abs() < 1.0, "{}", window.cwnd);
    }
}
