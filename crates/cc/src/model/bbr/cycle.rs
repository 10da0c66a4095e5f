//! The cycle of probes for bandwidth: Down, Cruise, Refill and Up, and what their samples say of the long-term bound.

use farhaul_units::{Duration, Instant};

use super::bounds::{is_too_much, lost_too_much};
use super::law::Bbr;
use super::state::{AckPhase, BbrState, PROBE_WAIT, ProbePhase};
use crate::controller::{DeliveryEvent, LostFlight, Path, RateSample};

/// Length of the random time between probes beyond [`PROBE_WAIT`], s.
const PROBE_WAIT_RANDOM: f64 = 1.0;
/// Most rounds between probes, for shares beside Reno.
const MOST_PROBE_ROUNDS: f64 = 63.0;

impl Bbr {
    /// Where the samples of a probe are. Returns whether a precautionary one ended well, so that a full one begins.
    pub(super) fn ends_probe(&mut self, sample: &RateSample) -> bool {
        if !self.rounds.began {
            return false;
        }
        match self.cycle.acks {
            AckPhase::Starting => self.cycle.acks = AckPhase::Feedback,
            AckPhase::Stopping => {
                (self.cycle.is_sample, self.cycle.acks) = (false, AckPhase::Init);
                if self.state.is_probe() && !sample.application_limited {
                    self.max_bandwidth.advance();
                }
                if self.state == BbrState::Probe(ProbePhase::Down) && self.cycle.precautionary && !self.cycle.too_high {
                    self.enter_refill();
                    return true;
                }
            }
            _ => {}
        }
        false
    }

    /// What the samples of a probe say of the long-term bound.
    pub(super) fn adapt_long_term(&mut self, delivery: &DeliveryEvent, sample: &RateSample) {
        if lost_too_much(sample) {
            return;
        }
        let up = self.state == BbrState::Probe(ProbePhase::Up);
        if up && self.rounds.began {
            self.bounds.double_growth(self.cwnd);
        }
        let grows = up && delivery.window_limited && self.cwnd >= self.bounds.long_term;
        self.bounds.raise_long_term(sample, grows, delivery.newly_delivered);
    }

    pub(super) fn cycle_on(&mut self, path: &Path, delivery: &DeliveryEvent, sample: &RateSample) {
        let BbrState::Probe(phase) = self.state else { return };
        match phase {
            ProbePhase::Down | ProbePhase::Cruise if self.is_time_to_probe(path.now) => self.enter_refill(),
            ProbePhase::Down if self.is_time_to_cruise(path) => self.state = BbrState::Probe(ProbePhase::Cruise),
            ProbePhase::Down | ProbePhase::Cruise => {}
            ProbePhase::Refill if self.rounds.began => self.enter_up(sample),
            ProbePhase::Refill => {}
            ProbePhase::Up => self.check_up(path, delivery, sample),
        }
    }

    fn is_time_to_probe(&self, now: Instant) -> bool {
        let rounds = self.target_in_flight().min(MOST_PROBE_ROUNDS);
        now > self.cycle.began + self.cycle.wait || f64::from(self.cycle.rounds) >= rounds
    }

    fn is_time_to_cruise(&self, path: &Path) -> bool {
        let full = self.quantized(self.product(1.0, self.max_bandwidth.get()));
        path.outstanding <= self.bounds.with_headroom().min(full)
    }

    fn check_up(&mut self, path: &Path, delivery: &DeliveryEvent, sample: &RateSample) {
        if self.cycle.too_high && path.outstanding >= self.bounds.long_term {
            (self.cycle.precautionary, self.cycle.too_high) = (true, false);
            self.enter_down(path);
        } else if delivery.window_limited && self.cwnd >= self.bounds.long_term {
            // The bound and not the path limits the rate.
            self.full_pipe.restart(sample.rate.map_or(0.0, |rate| rate.packets_per_second()));
        } else if self.full_pipe.now {
            self.cycle.too_high = false;
            self.enter_down(path);
        }
    }

    pub(super) fn enter_down(&mut self, path: &Path) {
        self.bounds.forget_round();
        self.bounds.begin_growth();
        self.cycle.rounds = self.rng.below(2) as u32;
        self.cycle.wait = PROBE_WAIT + Duration::from_secs_f64(PROBE_WAIT_RANDOM * self.rng.unit());
        self.cycle.began = path.now;
        self.cycle.acks = AckPhase::Stopping;
        self.rounds.restart(self.delivered);
        self.state = BbrState::Probe(ProbePhase::Down);
    }

    pub(super) fn enter_refill(&mut self) {
        self.bounds.lift_short_term();
        self.bounds.begin_growth();
        self.cycle.precautionary = false;
        self.cycle.acks = AckPhase::Refilling;
        self.rounds.restart(self.delivered);
        self.state = BbrState::Probe(ProbePhase::Refill);
    }

    fn enter_up(&mut self, sample: &RateSample) {
        self.cycle.is_sample = true;
        self.cycle.acks = AckPhase::Starting;
        self.rounds.restart(self.delivered);
        self.full_pipe.restart(sample.rate.map_or(0.0, |rate| rate.packets_per_second()));
        self.bounds.double_growth(self.cwnd);
        self.state = BbrState::Probe(ProbePhase::Up);
    }

    pub(super) fn on_lost_flight(&mut self, flight: &LostFlight, path: &Path) {
        if !self.cycle.is_sample || !is_too_much(flight) {
            return;
        }
        (self.cycle.too_high, self.cycle.is_sample) = (true, false);
        let target = self.target_in_flight();
        self.bounds.lower_long_term(flight, target);
        if self.state == BbrState::Probe(ProbePhase::Up) {
            self.note_undo(self.state);
            self.enter_down(path);
        }
    }
}
