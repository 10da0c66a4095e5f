//! The highest rate of a bulk at which a control stream keeps its delay.
//!
//! A queue grows by what is sent beyond the capacity. So a rate that is a little too high shows in the delay after a
//! while. A rate that is too low shows as no queueing at all. The ceiling holds the queueing delay q at a small θ. A
//! proportional part drains what stands beyond it, and an integral part finds the capacity.
//!
//! ```text
//! q  = typical round trip of a round − least round trip                       queueing delay        (1)
//! θ  = the largest of 1 % of the least round trip, two datagrams at r,
//!      twice the q of a round that emptied the queue of the bulk              tolerated             (2)
//! e  = (q − θ)/T, in −1 ..= 1                                                 error                 (3)
//! r  ← r·(1 − κ·e)            κ = p²/4                                        integral part         (4)
//! r  ← r·(1 + s), s ← 2s      while q < θ/2, with κ·θ/T ≤ s ≤ θ/T             search                (5)
//! limit = r·(1 − p·e)                                                         proportional part     (6)
//! ```
//!
//! T is the time of a round: from a change of the limit until four control datagrams that left after it have been
//! acknowledged. With r = (1 + x)·C, the queue obeys q′ = x − p·e, and (4) makes x′ = −κ·e/T. That is a second-order
//! loop with the damping p/(2·√κ). κ = p²/4 makes it critical. p = 1/2 because q is seen up to one round late.
//!
//! Every five seconds one round has a lower limit, which empties the queue of the bulk by the time that a control datagram
//! leaves. So the least round trip stays known. Queueing delay that remains twice is due to hosts or to other traffic. The
//! bulk cannot empty it, and (2) bears it. A queue that half of the rate would not empty in time is drained by (6) first.
//!
//! A queue that is full no longer grows, however high the rate is. While q does not fall below nine tenths of the q of the
//! round before, the integral part doubles:
//!
//! ```text
//! r  ← r·(1 − f), f ← 2f      while q > θ stands, with κ·e ≤ f ≤ 1/8           full queue            (8)
//! ```
//!
//! At first nothing is known, and r grows to 5/4 of the rate ρ that left in a round, until q exceeds θ. A datagram that
//! left t after the beginning of that round then shows the capacity:
//!
//! ```text
//! r  ← ρ/(1 + q/t), at least the highest r that was used without a queue                            (7)
//! ```
//!
//! All of this is ours.

use farhaul_units::{Duration, Instant, Rate};

use super::shaper::Shaper;
use crate::estimate::Rtt;

/// The first rate: 64 packets of 1500 bytes in 10 ms, as a found rate of a blast protocol begins on short paths. At a
/// slower one, the trains of an endpoint would wait for longer than its estimates bear.
const FIRST: f64 = 64.0 * 1_500.0 * 8.0 / 0.01;
/// Growth beyond what left in a round, before the first queue. The queue that the last round of growth builds is at most a quarter of the
/// round, and lasts for one.
const GROWTH: f64 = 1.25;
/// Round trips of a round. A control stream sends datagrams in pairs, so that two pairs are seen.
const SAMPLES: usize = 4;
/// The typical one of them, by size from zero. The lower half is least disturbed by a host that wakes late.
const TYPICAL: usize = 1;
/// The share of the least round trip that may be queueing delay, (2). Half of the jitter that is promised: 2 %.
const TOLERATED: f64 = 0.01;
/// Datagrams in the queue that are none, (2): the one in service, and one that arrives together with the control
/// datagram.
const IN_SERVICE: f64 = 2.0;
/// Factor of the delay that the bulk does not cause, (2). The bulk may add as much again.
const QUIET: f64 = 2.0;
/// p of (6).
const PROPORTIONAL: f64 = 0.5;
/// κ of (4).
const INTEGRAL: f64 = PROPORTIONAL * PROPORTIONAL / 4.0;
/// A queue that keeps this share from one round to the next does not follow the loop of (4) and (6). It is full, so its
/// delay no longer tells by how much the rate is too high. The decrease of (8) doubles from round to round.
const STANDING: f64 = 0.9;
/// Largest decrease of a round.
const MOST_FALL: f64 = 0.125;
/// Time between two rounds that empty the queue, so that the least round trip stays known. Half of the time for which
/// [`Rtt`] remembers it.
const DRAIN_SPACING: Duration = Duration::from_secs(5);
/// Longest burst, as of UDT's pacer.
const LONGEST_BURST: Duration = crate::pacer::BURST_TIME;
/// The ceiling never falls below the target of the control stream. Nor does it fall below this share of the highest rate
/// that was tested without a queue in the last ten to twenty seconds. A queue that others fill is not the bulk's to empty. If it
/// lasts, the floor falls with what is remembered.
const FLOOR: f64 = 0.25;
/// For how long such a rate counts.
const REMEMBERED: Duration = Duration::from_secs(10);

/// The ceiling of one bulk.
#[derive(Debug)]
pub(super) struct Ceiling {
    /// The target of the control stream, bit/s.
    target: f64,
    /// r, bit/s.
    rate: f64,
    /// The limit of (6), bit/s.
    limit: f64,
    /// Least round trip of the last ten to twenty seconds.
    round_trip: Rtt,
    tolerated: Duration,
    queueing: Duration,
    /// q that the bulk does not cause: of the rounds that emptied its queue, and before them the least of the growth.
    quiet: Option<Duration>,
    /// q of the last round that emptied the queue.
    drained: Duration,
    phase: Phase,
    /// Share of the last decrease.
    fall: f64,
    round: Round,
    /// When to empty the queue.
    drain: Instant,
    carried: Carried,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    /// The rate grows until there is a queue.
    Growing,
    /// The rate holds the queue at θ. The last s of (5), zero if (4) was last.
    Holding { step: f64 },
    /// As holding, after a round that was to empty the queue. Its round trips say nothing about the rate.
    Drained,
}

/// The round trips since the last change of the limit.
#[derive(Clone, Copy, Debug)]
struct Round {
    begun: Instant,
    /// Bits that had left then.
    sent: f64,
    /// Round trips, and when their datagrams left.
    samples: [(Duration, Instant); SAMPLES],
    count: usize,
}

/// The highest rate without a queue, of this period and of the one before.
#[derive(Clone, Copy, Debug, Default)]
struct Carried {
    now: f64,
    before: f64,
    end: Instant,
}

impl Ceiling {
    /// The ceiling of a bulk beside a control stream with this target, which begins now.
    pub(super) fn new(now: Instant, target: Rate) -> Self {
        let target = target.bits_per_second() as f64;
        let rate = FIRST.max(target);
        Self {
            target,
            rate,
            limit: rate,
            round_trip: Rtt::default(),
            tolerated: LONGEST_BURST,
            queueing: Duration::ZERO,
            quiet: None,
            drained: Duration::ZERO,
            phase: Phase::Growing,
            fall: 0.0,
            round: Round::begin(now, 0.0),
            drain: now + DRAIN_SPACING,
            carried: Carried { end: now + REMEMBERED, ..Carried::default() },
        }
    }

    /// The limit of the bulk, bit/s.
    pub(super) const fn limit(&self) -> f64 {
        self.limit
    }

    /// The last queueing delay.
    pub(super) const fn queueing(&self) -> Duration {
        self.queueing
    }

    /// The longest burst of the bulk: half of θ, so that bursts alone are no queue.
    pub(super) fn burst(&self) -> Duration {
        (self.tolerated / 2).min(LONGEST_BURST)
    }

    /// A control datagram that left at `sent` was acknowledged. `shaper` tells what the bulk sent.
    pub(super) fn on_round_trip(&mut self, now: Instant, sent: Instant, round_trip: Duration, shaper: &mut Shaper) {
        self.round_trip.sample(round_trip, now);
        if sent < self.round.begun {
            return;
        }
        self.round.samples[self.round.count] = (round_trip, sent);
        self.round.count += 1;
        if self.round.count == SAMPLES {
            self.judge(now, shaper);
            self.round = Round::begin(now, shaper.sent());
        }
    }

    fn judge(&mut self, now: Instant, shaper: &Shaper) {
        let Some(least) = self.round_trip.min() else { return };
        let time = (now - self.round.begun).as_secs_f64().max(f64::MIN_POSITIVE);
        let (typical, sent) = self.round.typical();
        let before = self.queueing.as_secs_f64();
        self.queueing = typical.saturating_sub(least);
        self.note_tolerated(least, shaper.datagram());
        let (q, tolerated) = (self.queueing.as_secs_f64(), self.tolerated.as_secs_f64());
        // From the beginning of the round to the departure of the typical datagram.
        let lead = (sent - self.round.begun).as_secs_f64();
        // A bulk that pauses for longer than θ says nothing about the ceiling: what fits into the pause would be a queue.
        let left = (shaper.sent() - self.round.sent) / time;
        let steady = time * (1.0 - left / self.limit) <= tolerated;
        // Nor does a datagram that left before the queue of a rate that is too high had grown to θ.
        let tested = steady && lead * (GROWTH - 1.0) >= tolerated;
        let error = ((q - tolerated) / time).clamp(-1.0, 1.0);
        if tested && error <= 0.0 {
            self.carried.note(now, self.rate);
        }
        self.phase = match self.phase {
            Phase::Growing if error > 0.0 => {
                let excess = 1.0 + q / lead.max(f64::MIN_POSITIVE);
                let known = self.carried.most();
                self.rate = (left.min(self.rate) / excess).max(known);
                // Without a rate that was used before, this is a guess, and growth goes on from there.
                if known > 0.0 { Phase::Holding { step: 0.0 } } else { Phase::Growing }
            }
            Phase::Growing => {
                self.rate = self.rate.max(GROWTH * left);
                Phase::Growing
            }
            Phase::Drained => Phase::Holding { step: 0.0 },
            Phase::Holding { step } if error < 0.0 && !steady => Phase::Holding { step },
            Phase::Holding { step } if q < tolerated / 2.0 => {
                let step = (2.0 * step).clamp(INTEGRAL * tolerated / time, tolerated / time);
                self.rate *= 1.0 + step;
                Phase::Holding { step }
            }
            Phase::Holding { .. } => {
                if error > 0.0 {
                    // Nothing is known of a rate that the bulk never used.
                    self.rate = self.rate.min(left.max(self.carried.most()));
                }
                let stands = error > 0.0 && q >= STANDING * before;
                self.fall =
                    if stands { (2.0 * self.fall).clamp(INTEGRAL * error, MOST_FALL) } else { INTEGRAL * error };
                self.rate *= 1.0 - self.fall;
                Phase::Holding { step: 0.0 }
            }
        };
        self.rate = self.rate.max(FLOOR * self.carried.most()).max(self.target);
        let mut part = 1.0 - PROPORTIONAL * error;
        let drained = part - (q + tolerated) / lead.max(time / 8.0);
        if now >= self.drain && self.phase != Phase::Growing && drained >= PROPORTIONAL {
            (self.drain, self.phase) = (now + DRAIN_SPACING, Phase::Drained);
            part = drained;
        }
        self.limit = self.rate * part.clamp(PROPORTIONAL, 1.0 + PROPORTIONAL);
    }

    /// θ of (2).
    fn note_tolerated(&mut self, least: Duration, datagram: f64) {
        let known = self.quiet.unwrap_or(self.queueing);
        match self.phase {
            Phase::Growing => self.quiet = Some(known.min(self.queueing)),
            Phase::Drained => {
                self.quiet = Some(self.drained.min(self.queueing));
                self.drained = self.queueing;
            }
            Phase::Holding { .. } => {}
        }
        let quiet = self.quiet.unwrap_or_default();
        let in_service = Duration::from_secs_f64(IN_SERVICE * datagram / self.rate);
        self.tolerated = least.mul_f64(TOLERATED).max(in_service).max(quiet.mul_f64(QUIET));
    }
}

impl Round {
    const fn begin(now: Instant, sent: f64) -> Self {
        Self { begun: now, sent, samples: [(Duration::ZERO, now); SAMPLES], count: 0 }
    }

    fn typical(&self) -> (Duration, Instant) {
        let mut sorted = self.samples;
        sorted.sort_unstable();
        sorted[TYPICAL]
    }
}

impl Carried {
    fn note(&mut self, now: Instant, rate: f64) {
        if now >= self.end {
            (self.before, self.now, self.end) = (self.now, 0.0, now + REMEMBERED);
        }
        self.now = self.now.max(rate);
    }

    fn most(&self) -> f64 {
        self.now.max(self.before)
    }
}
