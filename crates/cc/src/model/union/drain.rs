//! Drains, (3): how deep, how queues answer them, and what else the delay may be, (9).
//!
//! ```text
//! expected    d·T of each loop but the first, no more than q;   fallen  by how much q fell, no more than expected
//! ρ           fallen/expected, after each drain halved
//! ```

use super::constants::*;
use super::senses::{COUNT, Extreme};
use super::state::{Answer, Drain, Union, UnionPhase};
use crate::controller::Path;

/// Evidence of how a queue answers, in multiples of q*.
const ENOUGH: f64 = 3.0;

impl Union {
    pub(super) fn drain(&self, base: f64, path: &Path) -> Drain {
        let grew = matches!(self.phase, UnionPhase::Grow);
        Drain {
            since: path.now,
            loops: 0,
            depth: self.depth(base, path),
            depth_before: 0.0,
            base,
            delay: self.queue.delay(),
            arrived: self.arrived.get(),
            delivered: self.delivered.rate(),
            grown: self.delivered.grown(path),
            cut_by_losses: false,
            delivered_before: self.delivered.total(),
            sent_before: path.packets_sent,
            came: 0.0,
            sent: 0.0,
            may_queue: false,
            ends_growth: grew && self.queue.stands(),
            fails: grew && path.now > self.growing.held_until && self.tried.get() > 0.0,
        }
    }

    pub(super) fn after_draining(&mut self, mut drain: Drain, lossy: Option<f64>, path: &Path) {
        if let Some(lost) = lossy {
            self.rate = self.after_loss(lost, path);
            drain.may_queue = true;
            self.phase = UnionPhase::Drain(drain);
        }
        let round = loop_time(path);
        let stood = (path.now - drain.since).as_secs_f64();
        if drain.loops == 0 && stood >= round && drain.fails {
            // What the rate that failed has brought is measured by now.
            let flat = drain.delay < PAIRS / self.link.get();
            let counted = drain.delivered.max(self.delivered.since(drain.delivered_before) / stood);
            let arrived = if flat { counted } else { self.arrived.get().max(drain.arrived) };
            let base = arrived.min(self.tried.get()).max(slowest(path));
            let agrees = self.belief.fail(base, self.link.get(), path.now);
            // What an earlier connection has found ends with what this one does.
            if self.link.is_recalled() {
                self.link.lower(base);
            }
            // (5) with what had not arrived yet as the losses were told.
            if drain.cut_by_losses {
                self.rate = self.rate.max(base * BETA);
            }
            if flat && self.share(base) > HALF && drain.grown.is_some_and(|grown| grown.was_in_vain(base)) {
                self.belief.trust();
            }
            if flat && agrees && self.link.get() > 2.0 * base {
                self.link.refute(base);
                self.carried = Extreme::most();
            }
        }
        if (drain.loops > 0 || stood >= round) && !self.queue.stands() {
            self.answer.add(drain.delay, drain.depth_before * stood.min(round), drain.delay);
            self.answer.age();
            self.resume(path);
            return;
        }
        if stood < round {
            return;
        }
        let delay = self.queue.delay();
        let came = self.delivered.since(drain.delivered_before) / stood;
        if drain.loops == 1 {
            drain.may_queue |= self.may_give_up(&drain, came, stood);
        }
        let stands_still = (delay / drain.delay - 1.0).abs() < AGREE && came * stood > COUNT;
        (drain.sent, drain.came) = (path.packets_sent.saturating_sub(drain.sent_before) as f64 / stood, came);
        (drain.sent_before, drain.delivered_before) = (path.packets_sent, self.delivered.total());
        if drain.loops > 0 {
            self.answer.add(drain.delay, drain.depth_before * round, drain.delay - delay);
        }
        (drain.since, drain.loops, drain.delay) = (path.now, drain.loops + 1, delay);
        if drain.loops == 1 {
            drain.base = self.rate.min(self.arrived.get());
        }
        (drain.depth_before, drain.depth) = (drain.depth, self.depth(drain.base, path));
        self.phase = UnionPhase::Drain(drain);
        // The first loop shows what went before the drain. Flows that start up do not drain.
        if drain.loops == 1 || path.now < self.settled_until {
            return;
        }
        // (9). A small flow sees no difference.
        let is_large = self.share(self.rate.min(drain.base)) > HALF && self.link.get() > 0.0;
        if stands_still && !drain.may_queue && is_large {
            self.queue.take_for_path(path.now);
            self.answer = Answer::default();
            self.resume(path);
            return;
        }
        if self.all_drain(drain.base) != Some(false) {
            return;
        }
        self.answer.age();
        self.compete(drain.base, path);
    }

    /// d of a drain from `base`, (3). None is deeper than the lowest rate permits.
    fn depth(&self, base: f64, path: &Path) -> f64 {
        let possible = (1.0 - slowest(path) / base).max(0.0);
        (self.queue.delay() / loop_time(path)).clamp(1.0 - BETA, HALF).min(possible)
    }

    /// Whether queues fall as if all flows drained, by flows that drain from `rate`. `None` without enough evidence.
    fn all_drain(&self, rate: f64) -> Option<bool> {
        let enough = self.answer.expected >= ENOUGH * self.threshold();
        let share = self.share(rate);
        // A flow that has the link to itself, as far as b and K tell, has nobody to compete with.
        enough.then(|| share > 1.0 - 2.0 * AGREE || self.answer.share() > (1.0 + share) / 2.0)
    }

    /// Whether a queue may have given up packets, (9). Then `came`, what arrived in the second loop, exceeds what left in the first by
    /// more than half of the share that this flow has of a queue. Too few packets leave it open.
    fn may_give_up(&self, drain: &Drain, came: f64, stood: f64) -> bool {
        let most = drain.came - drain.sent;
        let is_clear = most > drain.came * AGREE && most * stood > COUNT;
        !is_clear || came - drain.sent > most * self.share(drain.base) / 2.0
    }
}
