//! The states of C4, and what is judged at the end of an era: of an RTT, from the departure of a packet to the news of its arrival.

use farhaul_units::Instant;

use super::{C4, LEAST_RTT};
use crate::controller::{Path, RateSample};

/// Eras without growth after which Initial is over.
const FULL_ERAS: u32 = 3;
/// Growth that counts in Initial, after a probe (D418), and in a push.
const INITIAL_GROWTH: f64 = 17.0 / 16.0;
const PROBE_GROWTH: f64 = 65.0 / 64.0;
const PUSH_GROWTH: f64 = 19.0 / 16.0;
/// Eras of Cruising, and of Pushing after which Initial is faster.
const CRUISING_ERAS: u32 = 2;
const PUSHING_ERAS: u32 = 3;
/// Longest delay that is taken for jitter, s.
const MAX_JITTER: f64 = 250e-3;
/// Share of the longest RTT below which the shortest one shows jitter.
const JITTERY: f64 = 2.0 / 5.0;
/// Pace of a Recovery that drains a queue.
const DRAINING: f64 = 7.0 / 8.0;
/// A T below this part of that of the cycle before leaves a queue.
const FALLEN: f64 = 15.0 / 16.0;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum C4State {
    #[default]
    Initial,
    Recovery,
    Cruising,
    Probing,
    Pushing,
}

impl C4State {
    pub(super) const fn alpha(self) -> f64 {
        match self {
            Self::Initial => 2.0,
            Self::Recovery => 15.0 / 16.0,
            Self::Cruising => 1.0,
            Self::Probing => 17.0 / 16.0,
            Self::Pushing => 5.0 / 4.0,
        }
    }
}

/// An era.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Era {
    /// Those of this state that are over.
    over: u32,
    /// α of the one before, whose packets arrive in this one.
    alpha_before: f64,
    /// N when it began, what had been delivered, and the time.
    rate: f64,
    delivered: f64,
    began: Instant,
    /// Its shortest and longest RTT, s.
    rtts: Option<(f64, f64)>,
}

impl Era {
    pub(super) fn note(&mut self, rtt: f64) {
        let (shortest, longest) = self.rtts.unwrap_or((rtt, rtt));
        self.rtts = Some((shortest.min(rtt), longest.max(rtt)));
    }

    pub(super) fn is_ended_by(&self, sample: &RateSample) -> bool {
        sample.prior_delivered >= self.delivered
    }
}

impl C4 {
    pub(super) fn begin_era(&mut self, alpha_before: f64, path: &Path) {
        let (over, rate, delivered) = (self.era.over, self.rate, self.delivered);
        self.era = Era { over, alpha_before, rate, delivered, began: path.now, rtts: None };
        if let Some(acks) = &mut self.acks {
            acks.begin(path);
        }
    }

    pub(super) fn end_era(&mut self, path: &Path) {
        self.learn_rtts();
        let limited = path.application_limited || path.sampling_application;
        let (seconds, alpha) = ((path.now - self.era.began).as_secs_f64(), self.alpha);
        if !limited && seconds > 0.0 {
            self.recent = self.recent.max((self.delivered - self.era.delivered) / seconds);
        }
        self.era.over += 1;
        let grew = |by: f64| self.rate >= self.era.rate * by;
        match self.state {
            C4State::Initial if grew(INITIAL_GROWTH) => self.still_eras = 0,
            C4State::Initial if !limited => {
                self.still_eras += 1;
                if self.still_eras >= FULL_ERAS {
                    self.leave_initial();
                    self.enter(C4State::Recovery);
                }
            }
            C4State::Recovery => self.end_recovery(),
            C4State::Cruising if self.era.over >= CRUISING_ERAS && !limited => self.enter(C4State::Probing),
            C4State::Probing => {
                self.probed = true;
                self.enter(C4State::Recovery);
            }
            C4State::Pushing if self.era.over > 1 && !grew(PUSH_GROWTH) => {
                self.drains = true;
                self.enter(C4State::Recovery);
            }
            C4State::Pushing if self.era.over > PUSHING_ERAS => self.enter_initial(),
            C4State::Initial | C4State::Cruising | C4State::Pushing => {}
        }
        self.begin_era(alpha, path);
    }

    /// Packets that left below the nominal rate made no queue.
    fn learn_rtts(&mut self) {
        let Some((shortest, longest)) = self.era.rtts.filter(|_| self.era.alpha_before <= 1.0) else { return };
        let smoothed = |old: f64, new: f64| (7.0 * old + new) / 8.0;
        self.shortest = shortest.min(smoothed(self.shortest, shortest));
        let longest = longest.min(self.shortest + MAX_JITTER);
        self.longest = longest.max(smoothed(self.longest, longest)).max(LEAST_RTT);
    }

    fn end_recovery(&mut self) {
        let grew = self.rate >= self.cycle_rate * PROBE_GROWTH;
        self.congestions = if self.congested { self.congestions + 1 } else { 0 };
        if self.recent > 0.0 && self.congestions > 1 {
            self.set_rate(self.recent);
        } else if self.recent > 0.0 && !self.congested && !grew {
            self.set_rate(self.rate.midpoint(self.recent));
        }
        if self.probed && grew && !self.congested {
            self.enter(C4State::Pushing);
        } else if !self.has_restarted && self.shortest < self.longest * JITTERY {
            self.has_restarted = true;
            self.enter_initial();
        } else {
            self.enter(C4State::Cruising);
        }
        (self.congested, self.probed, self.recent) = (false, false, 0.0);
        (self.cycle_rate, self.cycle_longest) = (self.rate, self.longest);
    }

    pub(super) fn enter(&mut self, state: C4State) {
        (self.state, self.alpha, self.era.over) = (state, state.alpha(), 0);
        if state == C4State::Recovery {
            let has_fallen = self.longest < self.cycle_longest * FALLEN;
            if std::mem::take(&mut self.drains) || has_fallen {
                self.alpha = DRAINING;
            }
        }
    }

    fn enter_initial(&mut self) {
        self.enter(C4State::Initial);
        (self.still_eras, self.start_window) = (0, self.rate * self.longest);
    }

    pub(super) fn leave_initial(&mut self) {
        self.drains = true;
        if self.rate > 0.0 && self.longest > 0.0 {
            let window = self.start_window.max(self.alpha * self.rate * self.longest);
            let longest = (window / (2.0 * self.rate)).min(self.shortest + MAX_JITTER);
            self.longest = longest.max(self.shortest).max(LEAST_RTT);
        }
    }
}
