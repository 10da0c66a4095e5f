//! H-TCP (paper:htcp): growth follows the time since the last loss, and the decrease follows the queue.
//!
//! ```text
//! Δ = time since the last decrease,  Δ_L = 1 s
//! α(Δ) = 1                                          for Δ ≤ Δ_L                 (draft §2.1)
//!      = 1 + 10·(Δ − Δ_L) + ((Δ − Δ_L)/2)²          otherwise
//! α ← max(α·clamp(RTT_min/100 ms, 0.1, 2), 1)                                   (draft §2.2: RTT scaling)
//! α ← 2·(1 − β)·α                                                               (draft §2.1)
//! β = RTT_min/RTT_max in [0.5, 0.8];  0.5 if the largest throughput of two epochs differs by more than a fifth    (draft §2.3)
//! Avoidance, per packet:  cwnd ← cwnd + α/cwnd
//! Loss, once a window:    ssthresh ← β·cwnd
//! ```
//!
//! | draft | here | unit |
//! | --- | --- | --- |
//! | cwnd, ssthresh | `Window` | packets |
//! | RTT_min, RTT_max | `least`, `longest`; the latter fades by a twentieth per loss | s |
//! | B(k), the largest throughput of an RTT before a loss | `throughput`, `most` | packets/s |
//!
//! Departures: none. As in Linux, α is at least one packet before the factor 2·(1 − β), RTT_max fades, and rises by 20 ms a sample at most.

use farhaul_units::{Instant, SeqNo};

use super::law::{Round, Window, WindowLaw};
use crate::controller::Path;

/// Δ_L, s. Source: draft-leith-tcp-htcp §2.1.
const LOW_SPEED: f64 = 1.0;
/// Bounds of β. Source: draft §2.3.
const LEAST_BETA: f64 = 0.5;
const MOST_BETA: f64 = 0.8;
/// The RTT for which α is as written, s, and the bounds of the factor. Source: draft §2.2 (RTT scaling), and Linux.
const REFERENCE_RTT: f64 = 0.1;
const LEAST_SCALE: f64 = 0.1;
const MOST_SCALE: f64 = 2.0;
/// A change of throughput by more than this share means another path or other flows. Source: draft §2.3.
const STEADY: f64 = 0.2;
/// Share of the queue that RTT_max keeps after a loss. Source: Linux.
const FADES: f64 = 0.95;
/// RTTs below this have too much noise for β, s. Source: Linux.
const LEAST_RTT: f64 = 10e-3;

/// The largest step of RTT_max, s, so that a single late packet is no queue. Source: Linux.
const MOST_STEP: f64 = 20e-3;

/// `htcp`.
#[derive(Clone, Debug)]
pub(crate) struct HTcp {
    /// When the window was decreased last.
    epoch: Option<Instant>,
    least: f64,
    longest: f64,
    beta: f64,
    /// B(k), of the epoch before the last loss, and that of this epoch so far, packets/s.
    throughput: Option<f64>,
    most: f64,
    /// When this round began, and everything before which packet was acknowledged then.
    round: Option<(Instant, SeqNo)>,
}

impl HTcp {
    pub(crate) const fn new() -> Self {
        let (least, longest) = (f64::INFINITY, 0.0);
        Self { epoch: None, least, longest, beta: LEAST_BETA, throughput: None, most: 0.0, round: None }
    }

    /// α, packets per RTT.
    //= paper:htcp §2.1
    fn alpha(&mut self, path: &Path) -> f64 {
        let beyond = (path.now - *self.epoch.get_or_insert(path.now)).as_secs_f64() - LOW_SPEED;
        let alpha = if beyond <= 0.0 { 1.0 } else { 1.0 + 10.0 * beyond + (beyond / 2.0) * (beyond / 2.0) };
        let scale = (self.least / REFERENCE_RTT).clamp(LEAST_SCALE, MOST_SCALE);
        2.0 * (1.0 - self.beta) * (alpha * scale).max(1.0)
    }

    /// Sets β at a loss, and begins the next epoch.
    //= paper:htcp §2.3
    fn end_epoch(&mut self, path: &Path) {
        self.epoch = Some(path.now);
        let throughput = std::mem::take(&mut self.most);
        let before = self.throughput.replace(throughput);
        let is_steady = before.is_some_and(|before| (throughput - before).abs() <= STEADY * before);
        let has_signal = self.least > LEAST_RTT && self.longest > 0.0;
        self.beta =
            if is_steady && has_signal { (self.least / self.longest).clamp(LEAST_BETA, MOST_BETA) } else { LEAST_BETA };
        if self.longest > self.least {
            self.longest = self.least + (self.longest - self.least) * FADES;
        }
    }
}

impl WindowLaw for HTcp {
    fn on_rtt(&mut self, rtt: f64, _path: &Path) {
        self.least = self.least.min(rtt);
        self.longest = self.longest.max(self.least);
        if rtt <= self.longest + MOST_STEP {
            self.longest = self.longest.max(rtt);
        }
    }

    /// Packets are counted by what is in flight, because a transport may report no acknowledgements while it repairs.
    fn on_round(&mut self, _round: &Round, _window: &mut Window, path: &Path) {
        let acked = path.next_seq.minus(path.in_flight);
        if let Some((began, first)) = self.round.replace((path.now, acked)) {
            let rate = f64::from(acked.distance_from(first).max(0)) / (path.now - began).as_secs_f64();
            // Two rounds that end at once have none.
            self.most = if rate.is_finite() { self.most.max(rate) } else { self.most };
        }
    }

    fn avoid(&mut self, acked: f64, window: &mut Window, path: &Path) {
        window.cwnd += self.alpha(path) * acked / window.cwnd;
    }

    fn threshold(&mut self, window: &Window, path: &Path) -> f64 {
        self.end_epoch(path);
        window.cwnd * self.beta
    }
}

#[cfg(test)]
mod tests {
    use super::super::windowed::tests::Connection;
    use super::*;

    #[test]
    fn growth_is_renos_for_a_second_and_quadratic_later() {
        let mut tcp = Connection::with_window(HTcp::new(), 1_000.0).over_ms(100);
        tcp.lose_one();
        let grown = |tcp: &mut Connection<HTcp>, rounds: u32| {
            let before = tcp.cwnd();
            (0..rounds).for_each(|_| _ = tcp.round());
            tcp.cwnd() - before
        };
        assert!((grown(&mut tcp, 10) - 10.0).abs() < 0.5, "β is 1/2, so the factor 2·(1 − β) is one");
        // From 1 s to 2 s: the mean of 1 + 10·x + (x/2)² is 6.08 packets for each of ten round trips.
        assert!((grown(&mut tcp, 10) - 60.8).abs() < 6.0);
    }

    #[test]
    fn the_decrease_empties_the_queue_once_the_throughput_is_steady() {
        let mut tcp = Connection::with_window(HTcp::new(), 1_000.0).over_ms(100);
        for _ in 0..3 {
            tcp.lose_one();
            (0..20).for_each(|_| _ = tcp.round());
        }
        tcp.law().on_rtt(0.140, &Path::default());
        let before = tcp.cwnd();
        let share = tcp.lose_one() / before;
        assert!((share - 0.5).abs() < 0.3 && share <= MOST_BETA, "{share}");
    }
}
