//! C4, Christian's congestion control code (paper:c4-draft, after revision 04).
//!
//! Two estimates decide: the nominal rate, and the longest RTT of the path without a queue. Most packets leave at the nominal rate. A
//! probe of one RTT shows whether the path carries more.
//!
//! ```text
//! Rate:         N ← max(N, sample), unless congested                                                   (§nominal-rate)
//! RTT:          per era whose packets left at α ≤ 1, with its shortest and longest RTT m and M, M at most r + 250 ms:
//!               r ← m or (7·r + m)/8,  T ← M or (7·T + M)/8,  the first at once, if r falls or T rises  (§nominal-max-rtt)
//! Pace:         α·N,  at least 128 kB/s in Initial                                                     (§set_pace)
//! Window:       α·N·(T + min(T/4, 15 ms));  Initial: max(α·N·T, w),  w ← w + acked/8^k                 (§set_pace)
//! End of Initial:  T ← w/(2·N)                                                                         (§c4-initial)
//! Delay:        RTT > T + d,  d = min(25 ms, T·(1/16 + (1 − s)·3/16)):    β = min(1/4, (RTT − T − d)/d)  (§sensitivity)
//! Loss:         p > 0.02 + (1 − s)/2,  p ← (15·p + lost)/16 per packet:   β = 1/4
//! Congestion:   N ← (1 − β)·N in Cruising,  N elsewhere;  then Recovery                                (§rate-reduction)
//! Persistent:   N ← R after two congested recoveries in a row                                          (§persistent-congestion)
//! Trimming:     N ← (N + R)/2 after a cycle without growth and congestion                              (§trimming)
//! ```
//!
//! | state | α | to | when |
//! | --- | --- | --- | --- |
//! | Initial | 2 | Recovery | N did not grow in three eras, or congestion |
//! | Recovery | 15/16; 7/8 to drain a queue | Pushing | after an era, if the probe before made N grow |
//! | Recovery | | Initial | after an era, once a connection, if r < 2·T/5 |
//! | Recovery | | Cruising | after an era, otherwise |
//! | Cruising | 1 | Probing | after two eras |
//! | Cruising | | Recovery | congestion |
//! | Probing | 17/16 | Recovery | after an era, or congestion |
//! | Pushing | 5/4 | Recovery | N grew by less than 3/16 in the second era or a later one, or congestion |
//! | Pushing | | Initial | after four eras |
//!
//! | draft | here | unit |
//! | --- | --- | --- |
//! | nominal rate N, recent maximum rate R | `rate`, `recent` | packets/s |
//! | nominal max RTT T, running min RTT r | `longest`, `shortest` | s |
//! | alpha, initial CWND w, eras without increase k | `alpha`, `start_window`, `still_eras` | 1, packets, 1 |
//! | smoothed loss rate p, sensitivity s | `loss_rate`, `sensitivity()` | |
//! | era, an RTT | `era`, with the states in `c4/eras.rs`; of acknowledgements alone in `c4/samples.rs` | |
//!
//! s is 0 up to 50 kB/s, 0.92 at 1 MB/s, and 1 from 10 MB/s on. In the window, the draft adds the margin to the rate, whose unit it does
//! not have, and in β it misplaces a bracket. A time-out is no congestion (§no-pto).
//!
//! Departures (docs/papers/departures.md): D417 ECN and remembered paths are not used. D418 what growth is. D419 one return to Initial.
//! D420 the window covers what acknowledgements hold back. D421 samples. D422 the least rate. D423 losses of Initial.

mod eras;
mod samples;
#[cfg(test)]
mod tests;

use self::eras::{C4State, Era};
use self::samples::AckSamples;
use crate::controller::{AckEvent, Control, Controller, DeliveryEvent, LossEvent, Path};
use crate::rate::flow_control::{cwnd, set_cwnd};
use crate::rate::period::{bounded, longer};

/// Largest rate, packets/s: beyond any host, and far from infinity.
const MOST: f64 = 1e9;
/// Smallest window, packets.
const MIN_WINDOW: f64 = 2.0;
/// Pace of Initial at the least, bytes/s.
const INITIAL_PACE: f64 = 131_072.0;
/// Packets that must have arrived before losses end Initial, and the largest loss that it tolerates (D423).
const INITIAL_PACKETS: f64 = 20.0;
const INITIAL_LOSS: f64 = 0.25;
/// Eras without growth after which a delay ends Initial.
const DELAY_ERAS: u32 = 2;
/// Shortest T, s: lateness of hosts is longer than the RTT of a short path. And an addition to the pace of Cruising there.
const LEAST_RTT: f64 = 1e-3;
const SHORT_PATH_PACE: f64 = 3.0 / 64.0;
/// Largest cut.
const BETA: f64 = 0.25;
/// What a packet leaves of the loss rate before it.
const KEPT: f64 = 15.0 / 16.0;
/// Packets that acknowledgements of UDT hold back: those of a light one, or of one by timer if they are fewer (D420).
const ACK_INTERVAL: f64 = 64.0;
const ACK_PERIOD: f64 = 10e-3;
/// Speed at which a host makes up for waking late.
const CATCH_UP_PACE: f64 = 1.1;

/// `c4`.
#[derive(Clone, Debug, Default)]
pub(crate) struct C4 {
    state: C4State,
    alpha: f64,
    era: Era,
    /// N, R, T and r. Zero before the first sample.
    rate: f64,
    recent: f64,
    longest: f64,
    shortest: f64,
    /// N and T at the end of the last Recovery, and whether there was a probe since then.
    cycle_rate: f64,
    cycle_longest: f64,
    probed: bool,
    start_window: f64,
    still_eras: u32,
    loss_rate: f64,
    delivered: f64,
    /// A congestion led to this Recovery, or came in it; and how many such there were in a row.
    congested: bool,
    congestions: u32,
    drains: bool,
    has_restarted: bool,
    /// Rates and eras by acknowledgements; `None` once deliveries are told.
    acks: Option<AckSamples>,
}

impl C4 {
    pub(crate) fn new() -> Self {
        Self { alpha: C4State::Initial.alpha(), acks: Some(AckSamples::default()), ..Self::default() }
    }

    fn take_rtt(&mut self, rtt: f64, path: &Path) {
        if rtt <= 0.0 {
            return;
        }
        if self.longest == 0.0 {
            (self.shortest, self.longest) = (rtt, rtt.max(LEAST_RTT));
        }
        self.era.note(rtt);
        let threshold = (self.longest * (1.0 + 3.0 * (1.0 - self.sensitivity(path))) / 16.0).min(25e-3);
        let excess = rtt - self.longest - threshold;
        if excess > 0.0 && (self.state != C4State::Initial || self.still_eras >= DELAY_ERAS) {
            self.congest((excess / threshold).min(BETA), path);
        }
    }

    fn take_delivered(&mut self, packets: f64) {
        self.loss_rate *= libm::pow(KEPT, packets);
        if self.state == C4State::Initial {
            self.start_window += packets / f64::from(1_u32 << (3 * self.still_eras));
        }
    }

    /// Samples of the application may raise N only.
    fn take_rate(&mut self, rate: f64, of_application: bool) {
        let rate = rate.min(MOST);
        if !of_application {
            self.recent = self.recent.max(rate);
        }
        if !self.congested {
            self.rate = self.rate.max(rate);
        }
    }

    fn sensitivity(&self, path: &Path) -> f64 {
        let bytes = self.rate * f64::from(path.mss);
        0.92 * ((bytes - 50e3) / 950e3).clamp(0.0, 1.0) + 0.08 * ((bytes - 1e6) / 9e6).clamp(0.0, 1.0)
    }

    fn congest(&mut self, beta: f64, path: &Path) {
        match self.state {
            C4State::Initial => self.leave_initial(),
            C4State::Cruising => self.set_rate(self.rate * (1.0 - beta)),
            C4State::Pushing => self.drains = true,
            C4State::Probing | C4State::Recovery => {}
        }
        self.congested = true;
        if self.state != C4State::Recovery {
            let alpha = self.alpha;
            self.enter(C4State::Recovery);
            self.begin_era(alpha, path);
        }
    }

    /// N, so that the smallest window leaves in an RTT and the time of an acknowledgement at the least (D422).
    fn set_rate(&mut self, rate: f64) {
        self.rate = rate.max(MIN_WINDOW / (self.longest + ACK_PERIOD));
    }

    fn apply(&self, path: &Path, control: &mut Control) {
        if self.rate == 0.0 || self.longest == 0.0 {
            return;
        }
        let mut pace = self.alpha * self.rate;
        let mut window = pace * (self.longest + (self.longest / 4.0).min(15e-3));
        if self.state == C4State::Initial {
            window = self.start_window.max(pace * self.longest);
            pace = pace.max(initial_pace(path));
        } else if self.state == C4State::Cruising && self.shortest < LEAST_RTT {
            pace *= 1.0 + SHORT_PATH_PACE;
        }
        set_cwnd(path, control, window + ACK_INTERVAL.min(ACK_PERIOD * self.rate));
        control.send_period = bounded(1e6 / pace);
    }
}

/// Packets/s.
fn initial_pace(path: &Path) -> f64 {
    INITIAL_PACE / f64::from(path.mss.max(1))
}

impl Controller for C4 {
    fn name(&self) -> &str {
        "c4"
    }

    fn on_connect(&mut self, path: &Path, control: &mut Control) {
        control.window_of_outstanding = true;
        control.catch_up_pace = Some(CATCH_UP_PACE);
        self.start_window = cwnd(control);
        self.begin_era(self.alpha, path);
    }

    fn wants_deliveries(&self) -> bool {
        true
    }

    fn on_delivery(&mut self, path: &Path, delivery: &DeliveryEvent, control: &mut Control) {
        self.acks = None;
        self.delivered = delivery.delivered;
        self.take_delivered(delivery.newly_delivered);
        if let Some(rtt) = delivery.rtt {
            self.take_rtt(rtt.as_secs_f64(), path);
        }
        if let Some(sample) = &delivery.sample {
            if let Some(rate) = sample.rate {
                self.take_rate(rate.packets_per_second(), sample.application_limited);
            }
            if self.era.is_ended_by(sample) {
                self.end_era(path);
            }
        }
        self.apply(path, control);
    }

    /// Counts where the transport does not tell deliveries.
    fn on_ack(&mut self, path: &Path, ack: &AckEvent, control: &mut Control) {
        let Some(acks) = &mut self.acks else { return };
        let ended = acks.on_ack(ack, path);
        self.delivered += f64::from(ack.newly_acked);
        self.take_delivered(ack.newly_acked.into());
        let first = Some(path.rtt).filter(|_| self.longest == 0.0);
        if let Some(rtt) = ack.rtt_sample.or(first) {
            self.take_rtt(rtt.as_secs_f64(), path);
        }
        if let Some(rate) = ended {
            self.take_rate(rate, path.application_limited);
            self.end_era(path);
        }
        self.apply(path, control);
    }

    fn on_loss(&mut self, path: &Path, loss: &LossEvent<'_>, control: &mut Control) {
        let before = *control;
        self.loss_rate = 1.0 - (1.0 - self.loss_rate) * libm::pow(KEPT, loss.newly_lost.into());
        let mut threshold = 0.02 + (1.0 - self.sensitivity(path)) / 2.0;
        if self.state == C4State::Initial {
            threshold = if self.delivered > INITIAL_PACKETS { threshold.min(INITIAL_LOSS) } else { 1.0 };
        }
        if loss.newly_lost > 0 && self.loss_rate > threshold {
            self.congest(BETA, path);
        }
        self.apply(path, control);
        if self.rate == 0.0 {
            control.send_period = bounded(1e6 / initial_pace(path));
        }
        // A report may lower rate and window, never raise them (attack B6).
        control.send_period = longer(control.send_period, before.send_period);
        set_cwnd(path, control, cwnd(control).min(cwnd(&before)));
    }
}
