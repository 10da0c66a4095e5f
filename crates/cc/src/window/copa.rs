//! Copa (paper:copa): a rate in inverse proportion to the queueing delay, which competes where others fill the queue.
//!
//! ```text
//! d_q = RTTstanding − RTTmin,   λ_t = 1/(δ·d_q),   λ = cwnd/RTTstanding                                   (§2.1)
//! per packet:     cwnd ← cwnd + v/(δ·cwnd)  if λ ≤ λ_t,   cwnd − v/(δ·cwnd)  otherwise                     (§2.1)
//! per RTT:        v ← 2·v  if cwnd has moved in one direction for three RTTs,   1  once the direction is new  (§2.1)
//! Slow start:     cwnd doubles per RTT until λ > λ_t                                                        (§2.1)
//! Competitive     if the queue was nearly empty in none of the last five RTTs: d_q ≥ (RTTmax − RTTmin)/10;  (§2.2)
//!                 1/δ ← 1/δ + 1 per RTT, halved on loss, at least 2
//! Pace:           RTTstanding/(2·cwnd)                                                                      (§2.1)
//! Time-out:       as Reno's
//! ```
//!
//! | paper | here | unit |
//! | --- | --- | --- |
//! | cwnd | `Window` | packets |
//! | RTTstanding | `standing`, least RTT of the last quarter to half of a smoothed RTT | s |
//! | RTTmin | `Path::min_rtt`, of the last 10 to 20 s | s |
//! | RTTmax | longest RTT of the last four rounds | s |
//! | 1/δ | `weight` | packets |
//! | v | `velocity` | |
//!
//! Departures (docs/papers/departures.md): D416, the window no more than doubles in an RTT, and takes no more than half of its queue back.
//! v is one as soon as the direction turns, where the paper looks once per RTT. By default a loss is no signal, as in the paper.

use farhaul_units::Instant;

use super::law::{Round, Window, WindowLaw};
use super::reno::Reno;
use crate::controller::Path;

/// 1/δ while nobody else fills the queue. Source: the paper, §2.2 (δ = 0.5).
const LEAST_WEIGHT: f64 = 2.0;
/// Share of the longest queue at which one is nearly empty. Source: the paper, §2.2.
const NEARLY_EMPTY: f64 = 0.1;
/// Rounds without an empty queue that show others. Source: the paper, §2.2.
const PATIENCE: u32 = 5;
/// Rounds whose longest RTT counts. Source: the paper, §2.2.
const LONGEST_ROUNDS: usize = 4;
/// Rounds in one direction before it gets faster. Source: the paper, §2.1.
const PERSISTENCE: u32 = 3;
/// The smallest window, packets: less is no rate.
const LEAST: f64 = 2.0;

/// `copa`.
#[derive(Clone, Debug)]
pub(crate) struct Copa {
    /// The least RTT of this quarter of an RTT and of the one before, and the start of this one.
    standing: [f64; 2],
    standing_since: Instant,
    /// The longest RTT of this round and of those before.
    longest: [f64; LONGEST_ROUNDS],
    weight: f64,
    velocity: f64,
    /// Rounds that the window has moved in this direction, and whether that is up.
    persists: u32,
    is_rising: bool,
    last_cwnd: f64,
    /// Rounds since the queue was nearly empty.
    full_rounds: u32,
    has_lost: bool,
}

impl Copa {
    pub(crate) const fn new() -> Self {
        Self {
            standing: [f64::INFINITY; 2],
            standing_since: Instant::ZERO,
            longest: [0.0; LONGEST_ROUNDS],
            weight: LEAST_WEIGHT,
            velocity: 1.0,
            persists: 0,
            is_rising: true,
            last_cwnd: 0.0,
            full_rounds: 0,
            has_lost: false,
        }
    }

    /// The window moves the other way from now on.
    fn turn(&mut self, is_rising: bool) {
        (self.is_rising, self.persists, self.velocity) = (is_rising, 0, 1.0);
    }

    fn standing(&self) -> f64 {
        self.standing[0].min(self.standing[1])
    }

    /// d_q, s.
    fn queueing(&self, path: &Path) -> f64 {
        let least = path.min_rtt.map_or(f64::INFINITY, |rtt| rtt.as_secs_f64());
        (self.standing() - least).max(0.0)
    }

    /// The most packets by which the window falls in an RTT (D416): half of those in the queue beyond 1/δ, or 1/δ.
    fn drainable(&self, cwnd: f64, path: &Path) -> f64 {
        let beyond = cwnd * self.queueing(path) / self.standing() - self.weight;
        (beyond / 2.0).max(self.weight)
    }

    /// λ ≤ λ_t, without a division by an empty queue.
    //= paper:copa §2.1
    fn is_below_target(&self, cwnd: f64, path: &Path) -> bool {
        cwnd * self.queueing(path) <= self.weight * self.standing()
    }
}

impl WindowLaw for Copa {
    const PACE: f64 = 2.0;

    fn on_rtt(&mut self, rtt: f64, path: &Path) {
        if path.now.saturating_since(self.standing_since) >= path.rtt / 4 {
            self.standing = [f64::INFINITY, self.standing[0]];
            self.standing_since = path.now;
        }
        self.standing[0] = self.standing[0].min(rtt);
        self.longest[0] = self.longest[0].max(rtt);
        let least = path.min_rtt.map_or(rtt, |least| least.as_secs_f64());
        let longest = self.longest.iter().copied().fold(rtt, f64::max);
        if self.queueing(path) <= NEARLY_EMPTY * (longest - least) {
            self.full_rounds = 0;
        }
    }

    fn on_ack(&mut self, acked: f64, window: &mut Window, path: &Path) {
        let is_below = self.is_below_target(window.cwnd, path);
        if window.is_in_slow_start() {
            if is_below {
                window.slow_start(acked, 1.0);
                return;
            }
            window.lower_to(window.cwnd);
        }
        if is_below != self.is_rising && self.velocity > 1.0 {
            self.turn(is_below);
        }
        let most = if is_below { window.cwnd } else { self.drainable(window.cwnd, path) };
        let step = (self.velocity * self.weight).min(most) * acked / window.cwnd;
        window.cwnd = if is_below { window.cwnd + step } else { (window.cwnd - step).max(LEAST) };
        window.threshold = window.threshold.min(window.cwnd);
    }

    fn avoid(&mut self, _acked: f64, _window: &mut Window, _path: &Path) {}

    fn on_round(&mut self, _round: &Round, window: &mut Window, _path: &Path) {
        let is_rising = window.cwnd > std::mem::replace(&mut self.last_cwnd, window.cwnd);
        if is_rising == self.is_rising {
            self.persists += 1;
            if self.persists >= PERSISTENCE {
                self.velocity = (self.velocity * 2.0).min(window.cwnd);
            }
        } else {
            self.turn(is_rising);
        }
        self.longest.rotate_right(1);
        self.longest[0] = 0.0;
        self.full_rounds += 1;
        //= paper:copa §2.2
        let has_lost = std::mem::take(&mut self.has_lost);
        self.weight = match self.full_rounds > PATIENCE {
            false => LEAST_WEIGHT,
            true if has_lost => (self.weight / 2.0).max(LEAST_WEIGHT),
            true => self.weight + 1.0,
        };
    }

    fn threshold(&mut self, window: &Window, path: &Path) -> f64 {
        Reno.threshold(window, path)
    }

    /// Before the first RTT a loss is the only signal there is.
    fn on_loss(&mut self, window: &mut Window, path: &Path) {
        self.has_lost = true;
        if path.min_rtt.is_none() {
            window.lower_to(Reno.threshold(window, path));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use farhaul_units::Duration;

    use super::*;

    /// A path that 1000 packets fill in 100 ms, beside `others` packets of other flows in its queue. An RTT shows the window of an RTT ago.
    fn run((law, window, path): (&mut Copa, &mut Window, &mut Path), rounds: u32, others: f64) {
        path.min_rtt = Some(Duration::from_millis(100));
        let mut before = VecDeque::from([window.cwnd; 20]);
        for _ in 0..rounds {
            for _ in 0..20 {
                before.push_back(window.cwnd);
                let rtt = 0.1 * ((before.pop_front().unwrap() + others) / 1_000.0).max(1.0);
                path.rtt = Duration::from_micros((rtt * 1e6) as u64);
                path.now += path.rtt / 20;
                law.on_rtt(rtt, path);
                law.on_ack(window.cwnd / 20.0, window, path);
            }
            law.on_round(&Round::EMPTY, window, path);
        }
    }

    #[test]
    fn alone_it_keeps_a_few_packets_in_the_queue() {
        let (mut law, mut window, mut path) = (Copa::new(), Window { cwnd: 100.0, threshold: 100.0 }, Path::default());
        run((&mut law, &mut window, &mut path), 200, 0.0);
        assert!((990.0..1_060.0).contains(&window.cwnd), "{}", window.cwnd);
    }

    #[test]
    fn it_competes_where_others_fill_the_queue_and_stops_when_they_have_gone() {
        let (mut law, mut window, mut path) = (Copa::new(), Window { cwnd: 500.0, threshold: 500.0 }, Path::default());
        run((&mut law, &mut window, &mut path), 50, 1_000.0);
        assert!(law.weight > 10.0, "{}", law.weight);
        run((&mut law, &mut window, &mut path), 30, 0.0);
        assert_eq!(law.weight, LEAST_WEIGHT);
    }
}
