//! Stochastic approximation of the best rate (Kiefer and Wolfowitz 1952, paper:kiefer-1952).
//!
//! ```text
//! J(r)      = arrived − λ·(sent − arrived)         the worth of a rate, bit/s                       (1)
//! g         = (J(r·(1+c)) − J(r·(1−c))) / (2·c·r)  its slope, from two trials                       (2)
//! ln r      ← ln r + c·g/2                         the step                                         (3)
//! c         ← c/2 when g changes its sign          (Kesten 1958, paper:kesten-1958)                 (4)
//! c         ← 2·c from the second rise in a row on                                                  (5)
//! ```
//!
//! | symbol | here | unit |
//! | --- | --- | --- |
//! | r | `rate` | bit/s |
//! | c | `spread` | share of r |
//! | λ | [`COST`] | |
//!
//! Below the capacity the slope is 1, above it is −λ: goodput stays and loss grows. Random loss lowers J everywhere and
//! moves nothing. Duplicates raise it everywhere. The theorem asks for trials that come closer and closer. Ours keep a
//! distance (departure D330), so that the rate follows a path that changes.
//!
//! Trials have a bounded time, and few packets in that time tell little. So c is as large as the packets of a trial and
//! the unsteadiness of the path require. A search at a low rate is therefore coarse and fast, and never slow and exact.

use farhaul_units::{Duration, Instant};

use super::counts::{Comparison, Counts, PACKET_BITS, time_of};
use crate::blast::engine::RoundTrips;

/// The least and the largest c. Larger ones see the slope better and lose more goodput. The first one is the least: what
/// was found before is about as exact as a trial is, and rises in a row reach further.
const LEAST_SPREAD: f64 = 0.02;
const LARGEST_SPREAD: f64 = 0.5;
/// λ: a lost datagram costs as much as a delivered one brings.
const COST: f64 = 1.0;
/// A slope above this shows a path that is not full, where it is 1.
const RISE: f64 = 0.5;
/// A trial needs this many packets over c, so that one packet more or less does not decide.
const PACKETS: f64 = 8.0;
/// And so many times the unsteadiness of the path over c, because its ends are not known more exactly.
const DEVIATIONS: f64 = 3.0;
/// Largest c for the sake of unsteadiness. A search that is too coarse fills and empties the queue.
const LARGEST_FOR_JITTER: f64 = 0.08;
/// Shortest and longest time of a trial on a short path. The shortest is that of some feedbacks. On a long path a trial
/// lasts an RTT.
const SHORTEST: Duration = Duration::from_millis(60);
const LONGEST: Duration = Duration::from_millis(250);
/// A trial counts after this share of it: what arrives first still belongs to the one before.
const SKIPPED: u32 = 4;
/// A trial counts only if this share of its rate left. Otherwise the application or the credit limited the sender.
const TESTED: f64 = 0.9;

/// The search around a rate.
#[derive(Clone, Debug)]
pub(super) struct Climb {
    rate: f64,
    /// c of (4) and (5).
    spread: f64,
    /// The slope of the last step.
    slope: f64,
    /// Steps in a row that found the path not full.
    rises: u32,
    trial: Option<Trial>,
    /// c of the first trial of a step, and what it was worth.
    first: Option<(f64, f64)>,
    /// Whether the upper trial comes first. It changes, so that a slow drift of the path cancels out.
    upper_first: bool,
    /// The unsteadiness of the path in the trials so far, smoothed.
    jitter: Option<Duration>,
    /// The last trial showed overload. A second one in a row is the path, a single one may be the pause of a host.
    overloaded: bool,
}

/// A trial under way.
#[derive(Clone, Copy, Debug)]
struct Trial {
    since: Instant,
    time: Duration,
    /// c, and the rate that is tried.
    spread: f64,
    rate: f64,
}

/// The answer of a climb, bit/s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Next {
    /// Send at this rate.
    Rate(f64),
    /// The path is far from full. Begin the search anew at this rate.
    Grow(f64),
    /// The path carries only this rate.
    Fall(f64),
}

impl Climb {
    /// A search that begins at `rate`.
    pub(super) const fn new(rate: f64) -> Self {
        Self {
            rate,
            spread: LEAST_SPREAD,
            slope: 0.0,
            rises: 0,
            trial: None,
            first: None,
            upper_first: false,
            jitter: None,
            overloaded: false,
        }
    }

    /// The next rate. Trials run one after the other. Each is judged an RTT after its end.
    pub(super) fn next(&mut self, now: Instant, path: &RoundTrips, counts: &Counts) -> Next {
        let Some(trial) = self.trial else { return self.begin_trial(now, path) };
        // The trial is judged by what arrives from an RTT after its beginning on.
        let from = trial.since + path.smoothed + (trial.time / SKIPPED).max(self.jitter.unwrap_or_default());
        let measured = trial.time / SKIPPED * (SKIPPED - 1);
        if counts.latest().is_none_or(|latest| latest < from + measured) {
            return Next::Rate(trial.rate);
        }
        let Some(compared) = counts.compare(from, trial.time / 2, path) else { return self.begin_trial(now, path) };
        if compared.shows_overload() {
            let again = std::mem::replace(&mut self.overloaded, true);
            return if again { Next::Fall(compared.arrived) } else { self.begin_trial(now, path) };
        }
        self.overloaded = false;
        if compared.tests(trial.rate, TESTED) {
            if let Some(latest) = counts.unsteadiness(from, path) {
                self.jitter = Some(self.jitter.map_or(latest, |jitter| (jitter * 3 + latest) / 4));
            }
            if self.judge(trial.spread, worth(&compared)) {
                return Next::Grow(self.rate);
            }
        }
        self.begin_trial(now, path)
    }

    fn begin_trial(&mut self, now: Instant, path: &RoundTrips) -> Next {
        let (time, spread) = extent(self.rate, self.spread, path.smoothed, self.jitter.unwrap_or_default());
        // Both trials of a step are equally far from the rate.
        let spread = self.first.map_or(spread, |(first, _)| first);
        let upper = self.first.is_none() == self.upper_first;
        let rate = self.rate * if upper { 1.0 + spread } else { 1.0 - spread };
        self.trial = Some(Trial { since: now, time, spread, rate });
        Next::Rate(rate)
    }

    /// A trial was worth so much. Returns whether the path is so far from full that steps are too slow.
    fn judge(&mut self, spread: f64, worth: f64) -> bool {
        let Some((spread, first)) = self.first.take() else {
            self.first = Some((spread, worth));
            return false;
        };
        let difference = if self.upper_first { first - worth } else { worth - first };
        self.upper_first = !self.upper_first;
        self.spread = spread;
        self.step(difference / (2.0 * spread * self.rate))
    }

    /// Returns whether the path is so far from full that steps are too slow.
    //= paper:kiefer-1952 §1
    //= paper:kesten-1958 §1
    fn step(&mut self, slope: f64) -> bool {
        let slope = slope.clamp(-COST, 1.0);
        self.rate *= libm::exp(self.spread * slope / 2.0);
        let turned = slope * self.slope < 0.0;
        self.slope = slope;
        self.rises = if slope > RISE { self.rises + 1 } else { 0 };
        let is_far = slope > RISE && self.spread >= LARGEST_SPREAD;
        if self.rises > 1 || is_far {
            self.spread = (2.0 * self.spread).min(LARGEST_SPREAD);
            return is_far;
        }
        if turned {
            self.spread = (self.spread / 2.0).max(LEAST_SPREAD);
        }
        false
    }
}

/// The time of a trial at `rate`, and its c, which is at least `spread`.
fn extent(rate: f64, spread: f64, round_trip: Duration, jitter: Duration) -> (Duration, f64) {
    let longest = LONGEST.max(round_trip);
    let exact = time_of(PACKETS / spread, rate).max(jitter.mul_f64(DEVIATIONS / spread));
    let time = exact.max(SHORTEST).max(round_trip).min(longest);
    let packets = rate * time.as_secs_f64() / PACKET_BITS;
    let jitter = DEVIATIONS * jitter.as_secs_f64() / time.as_secs_f64();
    let spread = (PACKETS / packets).max(jitter.min(LARGEST_FOR_JITTER)).max(spread).min(LARGEST_SPREAD);
    // Even the coarsest trial needs some packets.
    (time.max(time_of(PACKETS / spread, rate)), spread)
}

/// (1)
fn worth(compared: &Comparison) -> f64 {
    compared.arrived - COST * (compared.sent - compared.arrived)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(sent: f64, arrived: f64) -> Comparison {
        Comparison { sent, least: sent, arrived, time: Duration::from_secs(1) }
    }

    #[test]
    fn a_rate_is_worth_what_arrives_less_what_is_lost() {
        assert_eq!(worth(&compared(100.0, 100.0)), 100.0);
        assert_eq!(worth(&compared(100.0, 90.0)), 80.0);
        // Duplicates of a path that is not full must not hide the losses of one that is.
        assert_eq!(worth(&compared(100.0, 105.0)) - worth(&compared(105.0, 105.0)), 5.0);
    }

    #[test]
    fn steps_follow_the_slope_and_trials_come_closer_when_it_turns() {
        let mut climb = Climb { spread: 0.08, ..Climb::new(100.0) };
        climb.step(1.0);
        assert!((climb.rate - 100.0 * libm::exp(0.04)).abs() < 1e-9);
        climb.step(-1.0);
        assert!((climb.rate - 100.0).abs() < 1e-9 && climb.spread == 0.04);
        for turn in 0..100 {
            climb.step(if turn % 2 == 0 { 0.001 } else { -0.001 });
        }
        let before = climb.rate;
        climb.step(5.0);
        assert!((climb.rate / before - libm::exp(0.01)).abs() < 1e-9, "the least step, and the steepest slope");
    }

    #[test]
    fn rises_in_a_row_reach_further_and_end_the_climb() {
        let mut climb = Climb::new(100.0);
        climb.spread = LEAST_SPREAD;
        let steps = (1..20).find(|_| climb.step(1.0));
        assert_eq!(steps, Some(7));
        assert!(climb.rate > 170.0, "{}", climb.rate);
    }

    #[test]
    fn trials_are_exact_at_high_rates_and_coarse_at_low_ones_and_with_jitter() {
        let trial = |rate, millis, jitter| {
            let (round_trip, jitter) = (Duration::from_millis(millis), Duration::from_millis(jitter));
            let (time, spread) = extent(rate, LEAST_SPREAD, round_trip, jitter);
            (time, libm::round(spread * 100.0))
        };
        assert_eq!(trial(1e9, 10, 0), (Duration::from_millis(60), 2.0));
        assert_eq!(trial(1e9, 200, 0), (Duration::from_millis(200), 2.0));
        assert_eq!(trial(1e9, 10, 5), (Duration::from_millis(250), 6.0));
        assert_eq!(trial(4.8e6, 10, 0), (Duration::from_millis(250), 8.0));
        assert_eq!(trial(4.8e5, 10, 0), (Duration::from_millis(400), 50.0));
    }
}
