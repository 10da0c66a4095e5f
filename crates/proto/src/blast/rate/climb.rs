//! Stochastic approximation of the best rate (Kiefer and Wolfowitz 1952, paper:kiefer-1952).
//!
//! ```text
//! J(r)      = arrived − λ·lost                     the worth of a rate, bit/s                       (1)
//! g         = (J(r·(1+c)) − J(r·(1−c))) / (2·c·r)  its slope, from two trials                       (2)
//! ln r      ← ln r + aₙ·g,   aₙ = max(A/n^α, A∞)   the step                                         (3)
//! n         ← n + 1 when g changes its sign        (Kesten 1958, paper:kesten-1958)                 (4)
//! ```
//!
//! | symbol | here | unit |
//! | --- | --- | --- |
//! | r | `rate` | bit/s |
//! | n | `turns` | |
//! | c | [`SPREAD`] | share of r |
//! | λ | [`COST`] | |
//!
//! Below the capacity the slope is 1, above it is −λ: goodput stays and loss grows. Random loss lowers J everywhere and
//! moves nothing. The theorem asks for trials that come closer and closer. Ours keep their distance (departure D330),
//! so that the rate follows a path that changes.

use farhaul_units::{Duration, Instant};

use super::counts::{Comparison, Counts};

/// c: the distance of a trial from the rate. Larger ones see the slope better and lose more goodput.
const SPREAD: f64 = 0.02;
/// λ: a lost datagram costs as much as a delivered one brings.
const COST: f64 = 1.0;
/// A and α: the first step, and how fast steps shrink. 0.5 < α ≤ 1 is the condition of the theorem. A step leads no
/// further than the trials saw, since the slope is known only there (departure D331).
const FIRST_STEP: f64 = SPREAD;
const SHRINKING: f64 = 0.8;
/// A∞: steps never become smaller, so that the rate follows the path. Half of the first one.
const LEAST_STEP: f64 = SPREAD / 2.0;
/// A trial lasts at least so many packets, so that one packet more or less does not decide.
const PACKETS: f64 = 400.0;
/// And at least so long, which is some feedbacks.
const SHORTEST: Duration = Duration::from_millis(60);
/// A trial counts after this share of it: what arrives first still belongs to the one before.
const SKIPPED: u32 = 4;
/// A trial counts only if this share of its rate left. Otherwise the application or the credit limited the sender.
const TESTED: f64 = 0.9;
/// If less than this share arrives, the path has changed and the search begins anew at what arrives.
const COLLAPSED: f64 = 0.8;
/// The slope of a path that is not full is 1. After so many steps in a row with more than half of it, the path carries
/// much more. Then the search begins anew from here, because a step is 1 % and the start grows fourfold per RTT. Around
/// the best rate the slope turns within two or three steps.
const MOST_RISES: u32 = 8;

/// The search around a rate.
#[derive(Clone, Debug)]
pub(super) struct Climb {
    rate: f64,
    /// n of (3) and (4).
    turns: f64,
    /// The slope of the last step.
    slope: f64,
    /// Steps in a row that found the path not full.
    rises: u32,
    phase: Phase,
    /// When the phase began.
    since: Option<Instant>,
    upper: Option<f64>,
    /// Whether the upper trial comes first. It changes, so that a slow drift of the path cancels out.
    upper_first: bool,
}

/// The answer of a climb, bit/s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Next {
    /// Send at this rate.
    Rate(f64),
    /// Begin the search anew at this rate.
    Anew(f64),
}

/// Trials run one after the other. Each is judged an RTT after its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    First,
    Second,
}

impl Climb {
    /// A search that begins at `rate`.
    pub(super) const fn new(rate: f64) -> Self {
        Self {
            rate,
            turns: 1.0,
            slope: 0.0,
            rises: 0,
            phase: Phase::First,
            since: None,
            upper: None,
            upper_first: false,
        }
    }

    /// The next rate.
    pub(super) fn next(&mut self, now: Instant, round_trip: Duration, counts: &Counts) -> Next {
        let since = *self.since.get_or_insert(now);
        let packets = Duration::from_secs_f64(PACKETS * 12_000.0 / self.rate.max(1.0));
        let trial = SHORTEST.max(packets).max(round_trip);
        // The trial is judged by what arrives from an RTT after its beginning on.
        let from = since + round_trip + trial / SKIPPED;
        if counts.latest().is_none_or(|latest| latest < since + round_trip + trial) {
            return Next::Rate(self.trial());
        }
        self.since = Some(now);
        let compared = counts.compare(from, trial / 2, round_trip);
        let Some(compared) = compared.filter(|compared| compared.sent >= TESTED * self.trial()) else {
            return Next::Rate(self.trial());
        };
        if compared.arrived < COLLAPSED * compared.sent {
            return Next::Anew(compared.arrived);
        }
        self.judge(compared);
        if self.rises >= MOST_RISES { Next::Anew(self.rate) } else { Next::Rate(self.trial()) }
    }

    /// The rate of the present trial.
    fn trial(&self) -> f64 {
        let upper = (self.phase == Phase::First) == self.upper_first;
        self.rate * if upper { 1.0 + SPREAD } else { 1.0 - SPREAD }
    }

    fn judge(&mut self, compared: Comparison) {
        let worth = worth(compared);
        match self.phase {
            Phase::First => {
                self.upper = Some(worth);
                self.phase = Phase::Second;
            }
            Phase::Second => {
                let first = self.upper.take().unwrap_or(worth);
                let difference = if self.upper_first { first - worth } else { worth - first };
                self.step(difference / (2.0 * SPREAD * self.rate));
                self.phase = Phase::First;
                self.upper_first = !self.upper_first;
            }
        }
    }

    //= paper:kiefer-1952 §1
    //= paper:kesten-1958 §1
    fn step(&mut self, slope: f64) {
        let slope = slope.clamp(-COST, 1.0);
        if slope * self.slope < 0.0 {
            self.turns += 1.0;
        }
        self.slope = slope;
        self.rises = if slope > 0.5 { self.rises + 1 } else { 0 };
        let gain = (FIRST_STEP / libm::pow(self.turns, SHRINKING)).max(LEAST_STEP);
        self.rate *= libm::exp(gain * slope);
    }
}

/// (1)
fn worth(compared: Comparison) -> f64 {
    compared.arrived - COST * (compared.sent - compared.arrived).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_worth_what_arrives_less_what_is_lost() {
        assert_eq!(worth(Comparison { sent: 100.0, arrived: 100.0 }), 100.0);
        assert_eq!(worth(Comparison { sent: 100.0, arrived: 90.0 }), 80.0);
        // More may arrive than is sent, from a queue that empties.
        assert_eq!(worth(Comparison { sent: 100.0, arrived: 101.0 }), 101.0);
    }

    #[test]
    fn steps_follow_the_slope_and_shrink_when_it_turns() {
        let mut climb = Climb::new(100.0);
        climb.step(1.0);
        climb.step(1.0);
        assert!((climb.rate - 100.0 * libm::exp(0.04)).abs() < 1e-9);
        climb.step(-1.0);
        let second = 0.02 / libm::pow(2.0, 0.8);
        assert!((climb.rate - 100.0 * libm::exp(0.04 - second)).abs() < 1e-9);
        for turn in 0..100 {
            climb.step(if turn % 2 == 0 { 0.001 } else { -0.001 });
        }
        let before = climb.rate;
        climb.step(5.0);
        assert!((climb.rate / before - libm::exp(0.01)).abs() < 1e-9, "the least step, and the steepest slope");
    }
}
