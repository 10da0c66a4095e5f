//! LEDBAT++ (paper:ledbat-plus-plus, on paper:rfc6817): a scavenger. It takes what others leave, and yields as a queue begins to grow.
//!
//! ```text
//! delay        d = min of the last 4 RTTs − base,   base = min of the RTTs of 10 minutes        (RFC 6817 §3.4.2, §4.2)
//! gain         G = 1/min(16, ⌈2·60 ms/base⌉)                                                    (draft §4.2)
//! Start        per packet:  W ← W + G                     while d ≤ ¾·T and W < ssthresh        (draft §4.3)
//! Growth       per packet:  W ← W + G/W + κ·(1 − d/T)     while d ≤ T,  κ = min(T/(4·base), 5 %)
//! Yield        per 1.5 RTT: W ← W·(1 − min(2·d/(base + d), ¼))           if d > T
//! Loss         per RTT:     W ← W/2                                                             (RFC 6817 §2.4.2)
//! Slowdown     ssthresh ← W, W ← 2 for 2 RTTs, then Start from ssthresh/2: first 2 RTTs after   (draft §4.4)
//!              the first Start, then 19 times as long after its end as it took
//! Pace         W/(base + d)
//! ```
//!
//! | draft | here | unit |
//! | --- | --- | --- |
//! | CWND | W, `window` | packets |
//! | TARGET | T, `target` | s |
//! | base delay | `Base` | s |
//! | current delay | `recent` | s |
//!
//! The draft yields to flows that fill queues. Those of `union` and BBR keep them empty, so this law yields at a queue that they still
//! tolerate. Departures (docs/papers/departures.md): D410 T. D411 κ. D412 slowdowns are rarer and shorter. D413 the cut.
//!
//! | 100 Mbit/s, 50 ms, queue of one BDP | its share |
//! | --- | --- |
//! | alone | 92 % |
//! | beside `cubic`, `union` | 0.3 %, 3 % |
//!
//! What falls short: on a path of less than 20 packets its two packets per RTT are more than 5 %. Jitter of more than T looks like a queue.

use farhaul_units::{Duration, Instant};

use super::law::{LOSS_WINDOW, bounded};
use super::loss_epoch::LossEpoch;
use crate::controller::{AckEvent, Control, Controller, DeliveryEvent, LossEvent, Path, TimeoutEvent};
use crate::rate::period::{bounded as period, longer};
use crate::rate::syn::SYN_INTERVAL;

/// T, s. The draft has 60 ms, at which flows that keep queues shorter give way to it (D410).
pub(crate) const TARGET: Duration = Duration::from_millis(2);
/// The draft's T in the gain, s. Its start then overshoots a third of the path at 50 ms, where T would let it double (D410).
const GAIN_TARGET: f64 = 60e-3;
/// Queue that an RTT of growth adds at most, as a share of T (D411).
const STEP: f64 = 0.25;
/// Largest growth per RTT, as a share of the window.
const MOST_GROWTH: f64 = 0.05;
/// k: cut as a multiple of the share of the queue in the RTT. One would drain what this flow has in the queue (D413).
const YIELD: f64 = 2.0;
/// Largest cut. The draft has a half, from which a path of a dozen packets does not recover between two queues (D413).
const MOST_CUT: f64 = 0.25;
/// Largest divisor of the gain. Source: draft §4.2.
const MOST_DIVISOR: f64 = 16.0;
/// Share of T at which the start ends. Source: draft §4.3.
const START_ENDS: f64 = 0.75;
/// W during a slowdown, packets, and its length in RTTs. Source: draft §4.4.
const SLOW_WINDOW: f64 = 2.0;
const SLOW_TIME: u32 = 2;
/// Time between slowdowns, as a multiple of one: a twentieth of the time. The draft has 9 (D412).
const BETWEEN: u32 = 19;
/// RTTs in the filter of the current delay. Source: RFC 6817 §4.2 (CURRENT_FILTER).
const FILTER: usize = 4;
/// Minutes in the history of the base delay. Source: RFC 6817 §4.2 (BASE_HISTORY).
const HISTORY: usize = 10;
const MINUTE: Duration = Duration::from_secs(60);
/// Window beyond W, since a quarter of an RTT passes before a receipt, and acknowledgements come every 10 ms. W is kept by the pace.
const RECEIPTS: f64 = 1.25;
const HEADROOM: f64 = 4.0;

/// `ledbat`.
#[derive(Clone, Debug)]
pub(crate) struct Ledbat {
    name: String,
    target: f64,
    base: Base,
    /// The last RTTs, s.
    recent: [f64; FILTER],
    samples: usize,
    window: f64,
    threshold: f64,
    stage: Stage,
    /// When the next slowdown begins; `None` before the first start is over.
    slows_at: Option<Instant>,
    /// When W may yield again: one RTT after it did.
    yields_at: Instant,
    losses: LossEpoch,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Before the first queue.
    Start,
    /// W is tiny until then. The slowdown began before.
    Slow {
        since: Instant,
        until: Instant,
    },
    /// W returns to where it was when the slowdown began.
    Return {
        since: Instant,
    },
    Avoidance,
}

/// The base delay: the least RTT of each of the last minutes.
#[derive(Clone, Debug)]
struct Base {
    minutes: [f64; HISTORY],
    began: Instant,
}

impl Base {
    const fn new() -> Self {
        Self { minutes: [f64::INFINITY; HISTORY], began: Instant::ZERO }
    }

    fn note(&mut self, now: Instant, rtt: f64) {
        if now.saturating_since(self.began) >= MINUTE {
            self.began = now;
            self.minutes.rotate_right(1);
            self.minutes[0] = rtt;
        }
        self.minutes[0] = self.minutes[0].min(rtt);
    }

    fn delay(&self) -> f64 {
        self.minutes.iter().copied().fold(f64::INFINITY, f64::min)
    }
}

impl Ledbat {
    pub(crate) fn new(target: Duration, name: String) -> Self {
        Self {
            name,
            target: target.as_secs_f64(),
            base: Base::new(),
            recent: [f64::INFINITY; FILTER],
            samples: 0,
            window: Control::INITIAL_CWND,
            threshold: f64::INFINITY,
            stage: Stage::Start,
            slows_at: None,
            yields_at: Instant::ZERO,
            losses: LossEpoch::new(),
        }
    }

    /// G.
    fn gain(&self) -> f64 {
        let divisor = libm::ceil(2.0 * GAIN_TARGET / self.base.delay());
        1.0 / divisor.clamp(1.0, MOST_DIVISOR)
    }

    /// d, s; zero before the first sample.
    fn delay(&self) -> f64 {
        let current = self.recent.iter().copied().fold(f64::INFINITY, f64::min);
        if current.is_finite() { current - self.base.delay() } else { 0.0 }
    }

    fn grow(&mut self, path: &Path, packets: f64, gain: f64) {
        if !path.application_limited {
            self.window = bounded(self.window + packets * gain, path);
        }
    }

    fn on_packets(&mut self, path: &Path, packets: f64) {
        let (delay, now, gain) = (self.delay(), path.now, self.gain());
        match self.stage {
            Stage::Start if delay > START_ENDS * self.target => {
                self.slows_at = Some(now + path.rtt * SLOW_TIME);
                self.stage = Stage::Avoidance;
            }
            Stage::Start => self.grow(path, packets, gain),
            Stage::Slow { since, until } if now >= until => {
                self.window = (self.threshold / 2.0).max(SLOW_WINDOW);
                self.stage = Stage::Return { since };
            }
            Stage::Slow { .. } => {}
            Stage::Return { since } => {
                self.grow(path, packets, gain);
                if self.window >= self.threshold || delay > self.target {
                    self.window = self.window.min(self.threshold);
                    self.slows_at = Some(now + (now - since) * BETWEEN);
                    self.stage = Stage::Avoidance;
                }
            }
            Stage::Avoidance if self.slows_at.is_some_and(|at| now >= at) => {
                (self.threshold, self.window) = (self.window, SLOW_WINDOW);
                self.stage = Stage::Slow { since: now, until: now + path.rtt * SLOW_TIME };
            }
            Stage::Avoidance if delay <= self.target => {
                let share = (STEP * self.target / self.base.delay()).min(MOST_GROWTH) * (1.0 - delay / self.target);
                self.grow(path, packets, gain / self.window + share);
            }
            Stage::Avoidance if now >= self.yields_at => {
                let cut = (YIELD * delay / (self.base.delay() + delay)).min(MOST_CUT);
                self.window = (self.window * (1.0 - cut)).max(SLOW_WINDOW);
                self.yields_at = now + path.rtt + path.rtt / 2;
            }
            Stage::Avoidance => {}
        }
    }

    fn apply(&self, path: &Path, control: &mut Control) {
        let rtt = match self.samples {
            0 => (path.rtt + SYN_INTERVAL).as_secs_f64(),
            _ => self.base.delay() + self.delay(),
        };
        control.cwnd = Some(self.window * RECEIPTS + HEADROOM);
        control.send_period = period(rtt * 1e6 / self.window);
    }

    /// The same after a loss, which speeds nothing up.
    fn apply_slower(&self, path: &Path, control: &mut Control) {
        let before = *control;
        self.apply(path, control);
        control.send_period = longer(control.send_period, before.send_period);
        control.cwnd = control.cwnd.zip(before.cwnd).map(|(cwnd, before)| cwnd.min(before)).or(control.cwnd);
    }
}

impl Controller for Ledbat {
    fn name(&self) -> &str {
        &self.name
    }

    fn on_connect(&mut self, path: &Path, control: &mut Control) {
        control.window_of_outstanding = true;
        self.apply(path, control);
    }

    /// The window goes on, and the next slowdown shows the base delay.
    fn on_take_over(&mut self, path: &Path, control: &mut Control) {
        self.window = control.cwnd.unwrap_or(self.window).max(SLOW_WINDOW);
        self.threshold = self.window;
        if let Some(least) = path.min_rtt {
            self.base.note(path.now, least.as_secs_f64());
        }
        self.slows_at = Some(path.now + path.rtt * SLOW_TIME);
        self.stage = Stage::Avoidance;
        self.on_connect(path, control);
    }

    fn wants_deliveries(&self) -> bool {
        true
    }

    fn on_delivery(&mut self, path: &Path, delivery: &DeliveryEvent, control: &mut Control) {
        if let Some(rtt) = delivery.rtt {
            let rtt = rtt.as_secs_f64();
            self.base.note(path.now, rtt);
            self.recent[self.samples % FILTER] = rtt;
            self.samples += 1;
        }
        self.on_packets(path, delivery.newly_delivered.min(self.window));
        self.apply(path, control);
    }

    fn on_ack(&mut self, _path: &Path, ack: &AckEvent, _control: &mut Control) {
        self.losses.on_ack(ack.seq);
    }

    fn on_loss(&mut self, path: &Path, loss: &LossEvent<'_>, control: &mut Control) {
        if !self.losses.begins(loss) {
            return;
        }
        self.window = (self.window / 2.0).max(SLOW_WINDOW);
        self.threshold = self.threshold.min(self.window);
        if self.stage == Stage::Start {
            self.slows_at = Some(path.now + path.rtt * SLOW_TIME);
            self.stage = Stage::Avoidance;
        }
        self.apply_slower(path, control);
    }

    fn on_timeout(&mut self, path: &Path, timeout: &TimeoutEvent, control: &mut Control) {
        self.losses.restart(timeout.largest_sent);
        self.threshold = (self.window / 2.0).max(SLOW_WINDOW);
        self.window = LOSS_WINDOW;
        self.stage = Stage::Return { since: path.now };
        self.apply_slower(path, control);
    }
}

#[cfg(test)]
mod tests;
