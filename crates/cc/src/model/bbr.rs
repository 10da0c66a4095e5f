//! BBR, version 3 (paper:bbr-draft, after revision 06).
//!
//! A model of the path decides: the largest delivery rate of two cycles of probes, and the least RTT of ten seconds. Their product
//! fills the path without a queue.
//!
//! ```text
//! pace      gain · bandwidth · 0.99                                           bandwidth = min(max, short-term bound)      (1)
//! window    gain · bandwidth · RTT + what acknowledgements aggregate          within long-term and short-term bounds      (2)
//! ```
//!
//! | from | to | when |
//! | --- | --- | --- |
//! | Startup | Drain | the rate grew by less than a quarter in three rounds, or a round lost more than 2 % in six places |
//! | Drain | Down | the path is not overfull any more, or after three rounds |
//! | Down | Cruise | the path is not overfull, and leaves room for others |
//! | Down, Cruise | Refill | two to three seconds since the last probe, or as many rounds as Reno would need |
//! | Refill | Up | after a round |
//! | Up | Down | the rate does not grow, or too much was lost |
//! | any | ProbeRtt | five seconds without a lower RTT |
//! | ProbeRtt | Cruise, or Startup | after a round and 200 ms with half a window |
//!
//! | part | open |
//! | --- | --- |
//! | states and gains | `bbr/state.rs` |
//! | the state of the law, and its model | `bbr/law.rs` |
//! | bandwidth, RTT, rounds, full pipe, aggregation | `bbr/signals.rs` |
//! | the cycle of probes for bandwidth | `bbr/cycle.rs` |
//! | bounds by losses | `bbr/bounds.rs` |
//!
//! Units are packets. What the transport adds to the draft: departures are bursts, and deliveries are told by receipts or derived from
//! UDT's acknowledgements and loss reports ([`DeliveryEvent`]).

mod bounds;
mod cycle;
mod law;
mod signals;
mod state;
#[cfg(test)]
mod tests;

use farhaul_units::Duration;

use self::bounds::{MIN_WINDOW, lost_too_much};
pub(crate) use self::law::Bbr;
use self::law::{INITIAL_WINDOW, Undo};
use self::signals::MinRtt;
use self::state::{AckPhase, BbrState, PROBE_RTT_CWND_GAIN, ProbePhase, UP_PACING_GAIN};
use crate::controller::{AckEvent, Control, Controller, DeliveryEvent, LossEvent, Path, RateSample, TimeoutEvent};
use crate::rate::flow_control::{cwnd, set_cwnd};
use crate::rate::period::{bounded, longer};

/// Share of the bandwidth that is sent (`BBR.PacingMarginPercent` is 1).
const PACING_MARGIN: f64 = 0.99;
/// RTT before the first sample, for the first pace. Source: the draft's `BBRInitPacingRate`.
const UNKNOWN_RTT: Duration = Duration::from_millis(1);
/// Separate ranges that a round must have lost to end start-up (`BBR.StartupFullLossCnt`).
const STARTUP_LOSS_RANGES: u32 = 6;
/// Rounds after which Drain ends in any case.
const DRAIN_ROUNDS: u64 = 3;
/// Time with half a window (`BBR.ProbeRTTDuration`).
const PROBE_RTT_TIME: Duration = Duration::from_millis(200);
/// Speed at which a host makes up for waking late. The draft's pacer does not, and has a kernel's timers.
const CATCH_UP_PACE: f64 = 1.1;

impl Bbr {
    // ---- acknowledgements ----

    /// The draft's steps in their order.
    fn take(&mut self, path: &Path, delivery: &DeliveryEvent, sample: &RateSample) {
        self.bounds.take_sample(sample, self.delivered);
        self.rounds.update(sample, self.delivered);
        if self.rounds.began {
            self.cycle.rounds += 1;
        }
        self.max_bandwidth.update(sample);
        self.bounds.adapt_short_term(self.state, self.max_bandwidth.get(), self.cwnd);
        self.count_extra_acked(path, delivery);
        self.full_pipe.check(self.rounds.began, sample);
        self.check_startup(sample);
        self.check_drain(path);
        if self.full_pipe.reached && !self.ends_probe(sample) {
            self.adapt_long_term(delivery, sample);
            self.cycle_on(path, delivery, sample);
        }
    }

    fn count_extra_acked(&mut self, path: &Path, delivery: &DeliveryEvent) {
        let bandwidth = self.bandwidth();
        self.extra_acked.update(delivery.newly_delivered, bandwidth, self.cwnd, path.now, self.rounds.began);
    }

    fn check_startup(&mut self, sample: &RateSample) {
        if self.state != BbrState::Startup {
            return;
        }
        let recovering = self.recovery.is_some_and(|(_, round)| self.rounds.count > round);
        let lossy = self.bounds.round_began && lost_too_much(sample) && self.bounds.ranges >= STARTUP_LOSS_RANGES;
        if !self.full_pipe.reached && recovering && lossy {
            self.note_undo(BbrState::Startup);
            (self.full_pipe.reached, self.full_pipe.now) = (true, true);
            self.bounds.long_term = self.product(1.0, self.bandwidth()).max(self.bounds.latest_in_flight());
        }
        if self.full_pipe.reached {
            (self.state, self.drain_round) = (BbrState::Drain, self.rounds.count);
        }
    }

    fn check_drain(&mut self, path: &Path) {
        let is_over = path.outstanding <= self.in_flight(1.0) || self.rounds.count > self.drain_round + DRAIN_ROUNDS;
        if self.state == BbrState::Drain && is_over {
            self.enter_down(path);
        }
    }

    // ---- the RTT ----

    fn check_probe_rtt(&mut self, path: &Path) {
        if self.state != BbrState::ProbeRtt && self.min_rtt.expired && !self.idle_restart {
            self.state = BbrState::ProbeRtt;
            self.save_cwnd();
            self.probe_rtt_ends = None;
            self.cycle.acks = AckPhase::Stopping;
            self.rounds.restart(self.delivered);
        }
        if self.state != BbrState::ProbeRtt {
            return;
        }
        match self.probe_rtt_ends {
            None if path.outstanding <= self.probe_rtt_window() => {
                self.probe_rtt_ends = Some(path.now + PROBE_RTT_TIME);
                self.rounds.restart(self.delivered);
                self.rounds.began = false;
            }
            None => {}
            Some(_) if self.rounds.began => self.leave_probe_rtt(path),
            Some(_) => {}
        }
    }

    fn leave_probe_rtt(&mut self, path: &Path) {
        if self.probe_rtt_ends.is_none_or(|ends| path.now <= ends) {
            return;
        }
        self.min_rtt.probe_stamp = path.now;
        self.cwnd = self.cwnd.max(self.prior_cwnd);
        self.bounds.lift_short_term();
        if self.full_pipe.reached {
            self.enter_down(path);
            self.state = BbrState::Probe(ProbePhase::Cruise);
        } else {
            self.state = BbrState::Startup;
        }
    }

    fn probe_rtt_window(&self) -> f64 {
        self.product(PROBE_RTT_CWND_GAIN, self.bandwidth()).max(MIN_WINDOW)
    }

    // ---- losses ----

    fn note_undo(&mut self, state: BbrState) {
        if let Some(undo) = &mut self.undo {
            undo.state = Some(state);
        }
    }

    fn save_cwnd(&mut self) {
        let saved = self.recovery.is_none() && self.state != BbrState::ProbeRtt;
        self.prior_cwnd = if saved { self.cwnd } else { self.prior_cwnd.max(self.cwnd) };
    }

    fn restore(&mut self, undo: Undo) {
        self.cwnd = self.cwnd.max(self.prior_cwnd);
        self.bounds.is_lossy = false;
        self.full_pipe.restart(0.0);
        self.bounds.long_term = self.bounds.long_term.max(undo.bounds.long_term);
        let (short, before) = (&mut self.bounds.short_term, undo.bounds.short_term);
        short.bandwidth = short.bandwidth.max(before.bandwidth);
        short.in_flight = short.in_flight.max(before.in_flight);
        match undo.state {
            Some(BbrState::Startup) if self.state != BbrState::Startup => {
                self.full_pipe.reached = false;
                if self.state != BbrState::ProbeRtt {
                    self.state = BbrState::Startup;
                }
            }
            Some(BbrState::Probe(ProbePhase::Up))
                if !matches!(self.state, BbrState::Probe(ProbePhase::Up) | BbrState::ProbeRtt) =>
            {
                self.enter_refill();
            }
            _ => {}
        }
    }

    // ---- control ----

    fn update_cwnd(&mut self, newly: f64) {
        let extra = self.extra_acked.get(self.full_pipe.reached);
        let most = self.quantized(self.product(self.state.cwnd_gain(), self.bandwidth()) + extra);
        if self.full_pipe.reached {
            self.cwnd = (self.cwnd + newly).min(most);
        } else if self.cwnd < most || self.delivered < INITIAL_WINDOW {
            self.cwnd += newly;
        }
        self.cwnd = self.cwnd.max(MIN_WINDOW);
        self.bound_cwnd();
    }

    fn bound_cwnd(&mut self) {
        if self.state == BbrState::ProbeRtt {
            self.cwnd = self.cwnd.min(self.probe_rtt_window());
        }
        let long_term = match self.state {
            BbrState::Probe(ProbePhase::Cruise) | BbrState::ProbeRtt => self.bounds.with_headroom(),
            BbrState::Probe(_) => self.bounds.long_term,
            BbrState::Startup | BbrState::Drain => f64::INFINITY,
        };
        self.cwnd = self.cwnd.min(long_term.min(self.bounds.short_term.in_flight).max(MIN_WINDOW));
    }

    fn update_pace(&mut self) {
        let pace = self.state.pacing_gain() * self.bandwidth() * PACING_MARGIN;
        if pace > 0.0 && (self.full_pipe.reached || pace > self.pace) {
            self.pace = pace;
        }
    }

    fn apply(&self, path: &Path, control: &mut Control) {
        control.window_of_outstanding = true;
        control.catch_up_pace = Some(CATCH_UP_PACE);
        set_cwnd(path, control, self.cwnd);
        control.send_period = bounded(1e6 / self.pace);
    }
}

impl Controller for Bbr {
    fn name(&self) -> &str {
        "bbr"
    }

    fn on_connect(&mut self, path: &Path, control: &mut Control) {
        self.min_rtt = MinRtt::new(path.latest_rtt, path.now);
        let rtt = path.latest_rtt.unwrap_or(UNKNOWN_RTT).as_secs_f64().max(1e-6);
        self.pace = state::STARTUP_PACING_GAIN * INITIAL_WINDOW / rtt;
        self.extra_acked.restart(path.now);
        self.apply(path, control);
    }

    /// Start-up begins with the window of before. Behind a queue it has nothing to find and would fill that: the law before has filled the path,
    /// so its queue drains first, as after start-up.
    fn on_take_over(&mut self, path: &Path, control: &mut Control) {
        self.cwnd = cwnd(control).max(INITIAL_WINDOW);
        self.on_connect(path, control);
        self.min_rtt = MinRtt::new(path.min_rtt.or(path.latest_rtt), path.now);
        self.pace *= self.cwnd / INITIAL_WINDOW;
        if let Some(rate) = path.delivery_rate
            && path.outstanding > self.product(UP_PACING_GAIN, rate.packets_per_second())
        {
            self.max_bandwidth.begin(rate);
            (self.full_pipe.reached, self.state) = (true, BbrState::Drain);
            self.update_pace();
        }
        self.apply(path, control);
    }

    fn wants_deliveries(&self) -> bool {
        true
    }

    fn on_delivery(&mut self, path: &Path, delivery: &DeliveryEvent, control: &mut Control) {
        self.delivered = delivery.delivered;
        if let Some(sample) = &delivery.sample {
            self.take(path, delivery, sample);
        } else {
            self.rounds.began = false;
            self.bounds.round_began = false;
            self.count_extra_acked(path, delivery);
        }
        self.min_rtt.update(delivery, path.now);
        self.check_probe_rtt(path);
        if let Some(sample) = &delivery.sample {
            self.bounds.end_sample(sample);
            self.idle_restart = false;
        }
        self.update_pace();
        self.update_cwnd(delivery.newly_delivered);
        self.apply(path, control);
    }

    fn on_ack(&mut self, path: &Path, ack: &AckEvent, control: &mut Control) {
        if self.recovery.is_some_and(|(last, _)| ack.seq.is_after(last)) {
            (self.recovery, self.undo) = (None, None);
            self.cwnd = self.cwnd.max(self.prior_cwnd);
            self.bound_cwnd();
            self.apply(path, control);
        }
    }

    fn on_loss(&mut self, path: &Path, loss: &LossEvent<'_>, control: &mut Control) {
        if loss.newly_lost == 0 {
            return;
        }
        let before = *control;
        if self.recovery.is_none() {
            self.save_cwnd();
            self.recovery = Some((loss.largest_sent, self.rounds.count));
            self.undo = Some(Undo { state: None, bounds: self.bounds });
        }
        self.bounds.on_loss(self.delivered, u32::try_from(loss.ranges.len()).unwrap_or(u32::MAX));
        for flight in loss.flights {
            self.on_lost_flight(flight, path);
        }
        self.update_pace();
        self.bound_cwnd();
        self.apply(path, control);
        // A report may lower rate and window, never raise them (attack B6).
        control.send_period = longer(control.send_period, before.send_period);
        set_cwnd(path, control, cwnd(control).min(cwnd(&before)));
    }

    fn on_recovered(&mut self, path: &Path, spurious: bool, control: &mut Control) {
        let undo = self.undo.take().filter(|_| spurious);
        if self.recovery.take().is_some() {
            self.cwnd = self.cwnd.max(self.prior_cwnd);
        }
        if let Some(undo) = undo {
            self.restore(undo);
            self.update_pace();
        }
        self.bound_cwnd();
        self.apply(path, control);
    }

    fn on_timeout(&mut self, path: &Path, timeout: &TimeoutEvent, control: &mut Control) {
        self.save_cwnd();
        self.recovery.get_or_insert((timeout.largest_sent, self.rounds.count));
        self.cwnd = (path.outstanding + 1.0).max(MIN_WINDOW);
        self.apply(path, control);
    }

    fn on_restart(&mut self, path: &Path, control: &mut Control) {
        self.idle_restart = true;
        self.extra_acked.restart(path.now);
        if self.state.is_probe() {
            let pace = self.bandwidth() * PACING_MARGIN;
            self.pace = if pace > 0.0 { pace } else { self.pace };
        } else if self.state == BbrState::ProbeRtt {
            self.leave_probe_rtt(path);
        }
        self.apply(path, control);
    }
}
