//! TCP Westwood+ (paper:westwood-plus): a loss leaves what the path has carried, so a random one costs little.
//!
//! ```text
//! b_k = packets acknowledged in an RTT / its length                            (§II)
//! BWE ← 7/8·BWE + 1/8·b_k                                                      (§II)
//! Growth:                as Reno's (reno.rs)
//! Loss, once a window:   ssthresh ← max(BWE·RTT_min, FlightSize/2),  cwnd ← ssthresh     (§II)
//! All repaired:          the same, where BWE·RTT_min is larger by now
//! Time-out:              ssthresh as at a loss,  cwnd ← 1
//! ```
//!
//! | paper | here | unit |
//! | --- | --- | --- |
//! | cwnd, ssthresh | `Window` | packets |
//! | BWE | `bandwidth` | packets/s |
//! | RTT_min | `least` | s |
//!
//! Departures, all as in Linux: the filter has two stages, a sample covers at least 50 ms, and half of the window is left at least. The
//! filter has a tenth of the rate when a slow start ends.

use farhaul_units::{Duration, Instant, SeqNo};

use super::law::{Window, WindowLaw};
use super::reno::Reno;
use crate::controller::Path;

/// Weight of the old value in each stage of the filter. Source: the paper, §II; Linux.
const FILTER: f64 = 7.0 / 8.0;
/// The shortest time of a sample. Source: Linux (`TCP_WESTWOOD_RTT_MIN`).
const LEAST_SAMPLE: Duration = Duration::from_millis(50);

/// `westwood`.
#[derive(Clone, Debug)]
pub(crate) struct Westwood {
    /// The first stage of the filter, and BWE, the second one; `None` before the first sample.
    bandwidth: Option<[f64; 2]>,
    /// When the current sample began, and everything before which packet was acknowledged then.
    began: Option<(Instant, SeqNo)>,
    least: f64,
}

impl Westwood {
    pub(crate) const fn new() -> Self {
        Self { bandwidth: None, began: None, least: f64::INFINITY }
    }

    /// BWE·RTT_min, packets.
    fn carried(&self) -> Option<f64> {
        self.bandwidth.filter(|_| self.least.is_finite()).map(|[_, bandwidth]| bandwidth * self.least)
    }

    /// Ends the sample if it is as long as an RTT.
    ///
    /// A transport may report no acknowledgements while it repairs, so they are counted by what is in flight.
    fn sample(&mut self, path: &Path) {
        let acked = path.next_seq.minus(path.in_flight);
        let (began, first) = *self.began.get_or_insert((path.now, acked));
        let time = path.now - began;
        if time < path.rtt.max(LEAST_SAMPLE) {
            return;
        }
        let sample = f64::from(acked.distance_from(first).max(0)) / time.as_secs_f64();
        self.began = Some((path.now, acked));
        self.bandwidth = Some(match self.bandwidth {
            None => [sample; 2],
            Some([first, second]) => {
                let first = FILTER * first + (1.0 - FILTER) * sample;
                [first, FILTER * second + (1.0 - FILTER) * first]
            }
        });
    }
}

impl WindowLaw for Westwood {
    fn on_rtt(&mut self, rtt: f64, _path: &Path) {
        self.least = self.least.min(rtt);
    }

    fn on_ack(&mut self, acked: f64, window: &mut Window, path: &Path) {
        self.sample(path);
        let beyond = window.slow_start(acked, 1.0);
        if beyond > 0.0 {
            self.avoid(beyond, window, path);
        }
    }

    fn avoid(&mut self, acked: f64, window: &mut Window, path: &Path) {
        Reno.avoid(acked, window, path);
    }

    fn threshold(&mut self, window: &Window, path: &Path) -> f64 {
        Reno.threshold(window, path).max(self.carried().unwrap_or(0.0))
    }

    fn on_recovered(&mut self, window: &mut Window, path: &Path) {
        self.sample(path);
        if let Some(carried) = self.carried().filter(|carried| *carried > window.cwnd) {
            (window.cwnd, window.threshold) = (carried, carried);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::windowed::tests::Connection;
    use super::*;

    #[test]
    fn a_loss_leaves_what_the_path_has_carried_without_its_queue() {
        // 100 packets in 100 ms, of which 80 ms are the path.
        let mut tcp = Connection::with_window(Westwood::new(), 100.0).over_ms(100);
        tcp.lose_one();
        tcp.law().on_rtt(0.080, &Path::default());
        (0..60).for_each(|_| _ = tcp.round());
        let rate = tcp.cwnd() / 0.1;
        tcp.lose_one();
        let left = tcp.recover();
        assert!((left / (rate * 0.080) - 1.0).abs() < 0.15, "{left} of {rate} packets/s");
    }
}
