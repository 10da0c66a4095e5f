//! Growth, (1) and (2): of the root of the rate where flows share, and in geometric steps where nothing holds it back.

use super::constants::*;
use super::state::Union;
use crate::controller::Path;

/// x as a multiple of D̂ at most: what left a loop ago has arrived, and has doubled since.
const LEAD: f64 = 2.0;
/// The same where x doubles per loop. D̂ is of the loop before the last one.
const LEAD_WHERE_FREE: f64 = 4.0;

impl Union {
    pub(super) fn grow(&mut self, elapsed: f64, path: &Path) {
        let (round, arrived) = (loop_time(path), self.arrived.get());
        let hint = self.link.get() * FULL;
        // Nothing has failed, and the hint is not reached, or is of an earlier connection and proven wrong.
        let is_wrong = self.link.is_recalled() && arrived > self.link.get() * (1.0 + BEYOND);
        let is_free = self.belief.limit().is_none() && (self.rate < hint || is_wrong);
        let searched = if is_free { self.rate * libm::exp2(elapsed / round) } else { self.search(elapsed, path) };
        // A search stops once at the hint, and goes on from its first step.
        let stops = self.rate < hint && searched >= hint;
        if stops {
            // What an earlier connection has found is known to a tenth.
            self.belief.slow_down(if self.link.is_recalled() { AGREE } else { TOLERATED });
        }
        let searched = if stops { hint } else { searched };
        let grown = (self.rate + self.growth(path) * elapsed).max(searched);
        let lead = if is_free { LEAD_WHERE_FREE } else { LEAD };
        let most = self.most(path).max(slowest(path));
        self.rate = grown.min((lead * arrived).max(self.rate)).min(most);
    }

    /// dx/dt by (1), packets/s².
    fn growth(&self, path: &Path) -> f64 {
        let (round, link) = (loop_time(path), self.link.get());
        let shared = GROWTH * libm::sqrt(self.scale() * self.rate);
        // Beyond what a failure or a hint tells, a loop costs a queue of the first step at most.
        let is_beyond_hint = link > 0.0
            && !self.link.is_recalled()
            && self.rate >= link * FULL
            && self.arrived.get() < link * (1.0 + AGREE);
        let is_beyond = is_beyond_hint || self.is_alone() && self.belief.is_certain_below(self.rate);
        if is_beyond { shared.min(TOLERATED * self.rate / round) } else { shared }
    }

    /// The rate after a step of the search beyond the limit.
    fn search(&mut self, elapsed: f64, path: &Path) -> f64 {
        // A small part of the link is no sign of a path that carries more: others have the rest, unless nobody shows for long.
        let shares = self.belief.limit().is_some_and(|limit| self.share(limit) < HALF);
        let patience = if shares { PATIENCE } else { 0.0 };
        let grown = (path.now - self.growing.since).as_secs_f64() - patience;
        let sole = |limit: f64| libm::log((limit * (1.0 + BEYOND) / self.growing.from).max(1.0)) / GROWTH;
        let is_due = self.belief.limit().is_none_or(|limit| grown > sole(limit));
        self.rate * self.belief.gallop(self.rate, self.arrived.get(), elapsed, loop_time(path), is_due)
    }

    /// The most that x may be: a certain limit of a sole flow, and W after a competition.
    fn most(&self, path: &Path) -> f64 {
        let wall = if self.is_alone() { self.belief.wall(path.now, round(path)) } else { f64::INFINITY };
        let rtt = self.round_trip(path);
        wall.min(self.others.window(path.now).map_or(f64::INFINITY, |cubic| cubic.at(path.now, rtt) / rtt))
    }

    /// Whether this flow has the link to itself, as far as hi and K tell. If hi is below L, others have the rest.
    fn is_alone(&self) -> bool {
        let is_alone = |limit| self.share(limit) > 1.0 - 2.0 * AGREE && limit > self.link.get() * (1.0 - BEYOND);
        self.belief.is_sole() || self.belief.limit().is_some_and(is_alone)
    }
}
