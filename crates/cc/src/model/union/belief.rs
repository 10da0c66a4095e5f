//! What is believed of the path's limit: the rate that was delivered when a rate last failed, for a while.
//!
//! ```text
//! fail    after a loop of a drain, if its rate was tried for longer than a cut:
//!         hi ← D_f = min(x̂, max(D̂ when the drain began, D̂ now)); without a queue of 4 packets at L, by count:
//!              the more of what was delivered in the loop before the drain and in its first loop
//!         |D_f/anchor − 1| < ε ?  m ← m + 1 : (m ← 0, anchor ← D_f);   m ← max(m, 4) if L agrees within ε
//!         credit ← max(excess, credit/2 if m grew);  excess, γ ← 0
//! sole    D_f by count is above K/2, and less than half of what growth sent in addition arrived in addition:  m ← max(m, 2)
//! wall    x ≤ F·hi  while m ≥ 2 and now − t_fail < min(10 s, T·2^m), for a sole flow or one with hi > 0.8·K and hi > (1 − ε)·L
//! end     a lossy round without a queue of a sole flow beyond (1 + ε)·hi:  x ≤ F·hi,  m ← m + 1
//! search  x > (1 + ε)·hi, excess > 2·credit, and growth of a sole flow would be there as well:
//!         x ← x·e^(γ·dt/T),  γ ← 0.02, doubling per loop to ln 2, while x ≤ D̂·e^(2·γ).  excess = ∫(x − hi) dt, packets
//! ```
//!
//! A failure that repeats itself is the path's limit, and is tried again less and less often. Two measurements that agree, a failure and
//! a hint, count as four. Whoever exceeds the limit without a sign searches upwards in geometric steps, each of which must arrive before
//! the next. The first one costs a queue of 2 % of the path. A bucket or buffer that let a search pass for a while has lent `credit`, so
//! the next search begins beyond twice of that.

use std::f64::consts::LN_2;

use farhaul_units::{Duration, Instant};

use super::constants::{AGREE, BEYOND, FULL, MEMORY, TOLERATED};

/// Failures in a row that make a belief.
const CERTAIN: u32 = 2;

/// The belief.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Belief {
    /// hi and its anchor, packets/s; `None` before a failure.
    limit: Option<f64>,
    anchor: f64,
    /// m
    repeated: u32,
    failed: Instant,
    /// Packets above hi since the failure, and those that deceived a search.
    excess: f64,
    credit: f64,
    /// γ
    step: f64,
    /// More did not arrive as more was sent, so no other flow shares the limit.
    sole: bool,
}

impl Belief {
    /// A rate has failed, and this was `delivered`. Whether about as much was delivered at the failure before.
    pub(super) fn fail(&mut self, delivered: f64, hint: f64, now: Instant) -> bool {
        let agrees = self.limit.is_some_and(|limit| (delivered / limit - 1.0).abs() < AGREE);
        let same = self.limit.is_some() && (delivered / self.anchor - 1.0).abs() < BEYOND;
        if same {
            self.repeated += 1;
        } else {
            (self.repeated, self.anchor) = (0, delivered);
        }
        if (delivered / hint - 1.0).abs() < BEYOND {
            self.repeated = self.repeated.max(2 * CERTAIN);
        }
        self.credit = self.excess.max(if same { self.credit / 2.0 } else { 0.0 });
        (self.limit, self.failed, self.excess, self.step, self.sole) = (Some(delivered), now, 0.0, 0.0, false);
        agrees
    }

    /// A search of a sole flow has failed at `rate`. What the flow goes back to, packets/s.
    pub(super) fn end_search(&mut self, rate: f64, now: Instant) -> Option<f64> {
        let limit = self.limit.filter(|limit| self.sole && rate > limit * (1.0 + BEYOND))?;
        self.repeated += 1;
        (self.credit, self.failed, self.excess, self.step) = (self.excess.max(self.credit / 2.0), now, 0.0, 0.0);
        Some(limit * FULL)
    }

    /// More did not arrive as more was sent, without a queue.
    pub(super) fn trust(&mut self) {
        (self.repeated, self.sole) = (self.repeated.max(CERTAIN), true);
    }

    /// hi, packets/s; `None` before a failure.
    pub(super) const fn limit(&self) -> Option<f64> {
        self.limit
    }

    /// Whether no other flow shares the limit.
    pub(super) const fn is_sole(&self) -> bool {
        self.sole
    }

    /// The most that may leave, packets/s.
    pub(super) fn wall(&self, now: Instant, round: Duration) -> f64 {
        let wait = MEMORY.min(round.saturating_mul(1 << self.repeated.min(16)));
        let believed = self.repeated >= CERTAIN && now - self.failed < wait;
        self.limit.filter(|_| believed).map_or(f64::INFINITY, |limit| limit * FULL)
    }

    /// A search begins anew with this step.
    pub(super) const fn slow_down(&mut self, step: f64) {
        self.step = step;
    }

    /// Whether the limit is certain, and `rate` beyond it.
    pub(super) fn is_certain_below(&self, rate: f64) -> bool {
        self.repeated >= CERTAIN && self.limit.is_some_and(|limit| rate >= limit * FULL)
    }

    /// The factor of a search in `elapsed` seconds at `rate`, of which `arrived` came. `is_due` is whether a sole flow would have reached
    /// (1 + ε)·hi by now.
    pub(super) fn gallop(&mut self, rate: f64, arrived: f64, elapsed: f64, round: f64, is_due: bool) -> f64 {
        if let Some(limit) = self.limit {
            self.excess = (self.excess + (rate - limit) * elapsed).max(0.0);
            if rate <= limit * (1.0 + BEYOND) || self.excess <= 2.0 * self.credit || !is_due {
                self.step = 0.0;
                return 1.0;
            }
        }
        // What left a loop ago must have arrived before more is tried.
        if rate > arrived * libm::exp(2.0 * self.step.max(TOLERATED)) {
            return 1.0;
        }
        // Doubles per loop.
        self.step = (self.step.max(TOLERATED) * libm::exp2(elapsed / round)).min(LN_2);
        libm::exp(self.step * elapsed / round)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_that_agree_are_believed_for_twice_as_long_each() {
        let (mut belief, round) = (Belief::default(), Duration::from_millis(100));
        let mut now = Instant::ZERO + Duration::from_secs(1);
        let walls: Vec<_> = [1_000.0, 1_010.0, 990.0, 1_000.0, 700.0]
            .map(|delivered| {
                now += Duration::from_secs(1);
                belief.fail(delivered, 0.0, now);
                let held = |millis| belief.wall(now + Duration::from_millis(millis), round).is_finite();
                (held(0), held(500), held(900))
            })
            .to_vec();
        let expected = [
            (false, false, false),
            (false, false, false),
            (true, false, false),
            (true, true, false),
            (false, false, false),
        ];
        assert_eq!(walls, expected, "a failure of another rate begins anew");
        belief.fail(700.0, 710.0, now);
        assert!(
            belief.wall(now + Duration::from_millis(1_500), round).is_finite(),
            "two measurements that agree are four"
        );
    }

    #[test]
    fn a_search_of_a_sole_flow_ends_where_it_began() {
        let mut belief = Belief::default();
        belief.fail(1_000.0, 0.0, Instant::ZERO);
        assert_eq!(belief.end_search(1_200.0, Instant::ZERO), None, "others may share the limit");
        belief.trust();
        let round = Duration::from_millis(100);
        assert_eq!(belief.wall(Instant::ZERO, round), 990.0);
        assert_eq!(belief.end_search(1_040.0, Instant::ZERO), None, "it is no search");
        assert_eq!(belief.end_search(1_200.0, Instant::ZERO), Some(990.0));
        assert_eq!(belief.limit(), Some(1_000.0), "a bucket lent the rest");
        belief.fail(700.0, 0.0, Instant::ZERO);
        assert!(!belief.is_sole());
    }

    #[test]
    fn a_step_of_a_search_waits_until_the_one_before_has_arrived() {
        let mut belief = Belief::default();
        let factor = |belief: &mut Belief, arrived| belief.gallop(1_000.0, arrived, 0.01, 0.05, true);
        assert_eq!(factor(&mut belief, 900.0), 1.0);
        assert!(factor(&mut belief, 990.0) > 1.0);
        belief.fail(2_000.0, 0.0, Instant::ZERO);
        assert_eq!(factor(&mut belief, 1_000.0), 1.0, "it is below the limit");
    }
}
