//! `union`, the default law: what failures delivered bounds the rate, and flows share it by common cuts.
//!
//! Flows of one link see the same queue. The root of each rate grows alike, whatever the RTT. When a queue shows, all drain it and cut
//! by the same factor. Equal growth and proportional cuts make shares equal. A sole flow whose failures agree holds 99 % of the link
//! and makes no queue. If a queue does not answer the drains, others fill it, and CUBIC competes with them.
//!
//! # Signals
//!
//! | signal | meaning | from |
//! | --- | --- | --- |
//! | x | the rate, packets/s | the law |
//! | q, P | queueing delay and its peak, s | RTTs of receipts, `union/senses.rs` |
//! | D, D̂ | delivery rate: the last sample, and the most of the last one to two loops | [`RateSample`](crate::RateSample), before a failure also counts of 16 packets |
//! | L | a hint of the link of a sole flow, by trains, probe pairs or an earlier connection | lowered to min(x, D̂) where a flow that fills it meets a queue or a lossy round |
//! | K | the larger of L and the most of D in 10 to 20 s | |
//! | hi, m | what was delivered when a rate failed, and how often alike | `union/belief.rs` |
//! | lossy | a round lost more than 2 % and chance | `union/losses.rs` |
//! | ρ | how far queues fell of late, of what they would have if all flows drained | `union/drain.rs` |
//!
//! # Equations
//!
//! ```text
//! grow      dx/dt = g·√(K·x);  2 % of x per loop at most beyond F·hi or F·L that nothing contradicts      (1)
//!           ×2 per loop up to F·L before anything has failed;  a search and a wall by `belief.rs`;
//!           x ≤ 2·D̂;  none for 3 loops after a lossy round                                            (2)
//! drain     send (1 − d)·b,  b = min(x, D) at its beginning, min(x, D̂) after a loop;  behind a queue, b falls with D in the first loop,
//!           d = q/loop, anew in each loop, within 1 − β .. 1/2, as far as the lowest rate permits     (3)
//! price     q falls below q*/2:   x ← min(β·x/(1 + (P − q*)/τ),  D̂/(1 − d))                         (4)
//! loss      a lossy round:        x ← β·max(min(x, s)·(1 − lost),  min(x, D̂)), s is the rate that was sent,
//!           without the first of a recalled rate that has not failed;  x ≥ β·hi once hi is known, if not halved:
//!           ½ in place of β if it lost a tenth without a queue, x is small beside L, and a third above that of the last halving  (5)
//!           lost is at most 1/2. The round after a cut does not count, nor does the tail of start-up.
//! bursts    a lossy round without a queue halves bursts, to 4 packets.                                 (6)
//!           A late host catches up at L/x at most. (5) applies as well if a tenth was lost, or x has not arrived before.
//! compete   W of RFC 9438 (`competition.rs`), paced at 1.2·W/RTT                                       (7)
//! recall    L ← R, the rate of an earlier connection, x ← R/2, W = x·RTT and trains as in start-up for 2·loop;
//!           L ← hi at the first failure                                                                (8)
//! delays    c₁ − s₀ < (s/2)·(c₀ − s₀),  s > ½,  and q stands: the path delays by q for 10 to 20 s, and q ← 0  (9)
//!           c₀, c₁ came in the first and in the second loop of a drain, s₀ was sent in the first
//! q* = max(2 ms, 4 packets/K, 4·j),   loop = RTT + SYN,   s = b/K
//! ```
//!
//! # States
//!
//! | state | condition | to |
//! | --- | --- | --- |
//! | START | the first RTT is that of an earlier connection, R/2·RTT > 4·W | GROW by (8) |
//! | START | `union/start.rs`; or too many losses; or a time-out | DRAIN, x = C |
//! | GROW | q > q* | DRAIN; L ← min(x, D̂) if x is near L, a loop and τ after GROW began |
//! | GROW | lossy | DRAIN by (5); L as above |
//! | DRAIN | q < q*/2, after one loop | GROW by (4). CUBIC's window bounds x for 10 s after a competition |
//! | DRAIN | (9), 1 s since START | GROW |
//! | DRAIN | ρ < (1 + s)/2 after two loops, s ≤ 0.8, 1 s since START | COMPETE from b |
//! | COMPETE | a loss after one loop | W ← 0.7·W; DRAIN once a second, to find flows of this law |
//! | COMPETE | q < q*/2 | GROW; x ← 0.7·x if anything was lost; ρ is unknown |
//!
//! # What falls short
//!
//! Crowds of hundreds that begin together take the queue that stands for the path. By (5) some of them see it empty after seconds.
//! While all that leaves are repairs, no receipt has a sample, so q and D stand still: after a fall of capacity more is lost than needed.

mod belief;
mod compete;
mod constants;
mod drain;
mod events;
mod growth;
mod losses;
mod senses;
mod start;
mod state;

use farhaul_units::PacketRate;

use self::constants::*;
pub(crate) use self::state::Union;
use self::state::{Drain, UnionPhase};
use crate::control::{BURST_TIME, MAX_BURST};
use crate::controller::{Control, Path};
use crate::rate::flow_control::set_cwnd;
use crate::rate::period::bounded;

impl Union {
    // ---- signals ----

    /// K: the link as far as it is known, packets/s.
    fn scale(&self) -> f64 {
        self.link.get().max(self.carried.get())
    }

    /// q*, s.
    fn threshold(&self) -> f64 {
        VISIBLE.max(PAIRS / self.scale().max(1.0)).max(self.queue.jitter() * SPREAD)
    }

    /// The RTT with the queue, s.
    fn round_trip(&self, path: &Path) -> f64 {
        self.queue.base().unwrap_or(path.rtt.as_secs_f64()) + self.queue.delay()
    }

    // ---- the law ----

    fn step(&mut self, path: &Path, control: &mut Control) {
        let elapsed = (path.now - self.last).as_secs_f64().min(TAU);
        self.last = path.now;
        self.link.take_pairs(path, self.arrived.get());
        let lost = self.losses.lost() > 0.0;
        let grows_since = matches!(self.phase, UnionPhase::Grow).then_some(self.growing.since);
        self.delivered.step(path, round(path), grows_since);
        let lossy = self.losses.end_of_round(path, self.delivered.total());
        let threshold = self.threshold();
        if self.queue.watch(threshold) {
            self.price(threshold, path);
        }
        let competes = matches!(self.phase, UnionPhase::Compete(_));
        if !competes && !self.queue.stands() && path.now >= self.losses.hold_until && !path.application_limited {
            self.grow(elapsed, path);
        }
        match self.phase {
            UnionPhase::Start(_) => {}
            UnionPhase::Grow => self.after_growth(lossy, path, control),
            UnionPhase::Drain(drain) => self.after_draining(drain, lossy, path),
            UnionPhase::Compete(cubic) => self.after_competing(cubic, lost, path),
        }
        if matches!(self.phase, UnionPhase::Grow) {
            self.tried.take(path.now, round(path).saturating_mul(2), self.rate);
        }
        self.apply(path, control);
    }

    /// The queue has gone, (4). The first one is that of start-up's trains and costs nothing.
    fn price(&mut self, threshold: f64, path: &Path) {
        if std::mem::replace(&mut self.priced, true) && !matches!(self.phase, UnionPhase::Compete(_)) {
            let depth = if let UnionPhase::Drain(Drain { depth, .. }) = self.phase { depth } else { HALF };
            let overload = (self.queue.peak() - threshold).max(0.0) / TAU;
            let left = self.rate * BETA / (1.0 + overload);
            self.rate = left.min(self.arrived.get() / (1.0 - depth)).max(slowest(path));
        }
    }

    fn after_growth(&mut self, lossy: Option<f64>, path: &Path, control: &mut Control) {
        let stands = self.queue.stands();
        self.growing.held_until = self.losses.hold_until;
        // Bursts do not excuse a rate that this connection has not tried before.
        let lossy = if stands { lossy } else { self.halve_bursts(lossy, control) };
        if let Some(lost) = lossy {
            // A search that a bucket let pass for a while ends where it began, and what the bucket lent is no news of the path.
            let before = if stands { None } else { self.belief.end_search(self.rate, path.now) };
            self.rate = self.after_loss(lost, path).min(before.unwrap_or(f64::INFINITY));
            self.growing.held_until = if before.is_some() { path.now } else { self.growing.held_until };
        }
        if !stands && lossy.is_none() {
            return;
        }
        // Behind a queue every sample shows the link. Beside losses many show less.
        let base = self.rate.min(if stands { self.arrives } else { self.arrived.get() });
        let settled = (path.now - self.growing.since).as_secs_f64() > loop_time(path) + TAU;
        if settled && self.link.get() > 0.0 && self.rate > self.link.get() * FULL * (1.0 - AGREE) {
            self.link.lower(self.rate.min(self.arrived.get()));
        }
        let cut_by_losses = lossy.is_some() && self.rate != self.losses.halved;
        let mut drain = self.drain(base, path);
        (drain.cut_by_losses, drain.may_queue) = (cut_by_losses, lossy.is_some());
        self.phase = UnionPhase::Drain(drain);
    }

    /// What a share of losses leaves of the rate, (5).
    fn after_loss(&mut self, lost: f64, path: &Path) -> f64 {
        self.losses.cut(path);
        let arrived = self.rate.min(self.arrived.get());
        // Some of the losses may be of packets that left at a higher rate. A rate that is only recalled has no such excuse.
        let is_unproven = self.link.is_recalled() && self.belief.limit().is_none();
        let sent = self.rate.min(self.delivered.sent());
        let left = if is_unproven { 0.0 } else { sent * (1.0 - lost.min(HALF)) };
        // Of hundreds of flows that take a full queue for the path, none sees more than its losses. Losses that halving has not ended do
        // not depend on the rate.
        let is_small = self.link.get() == 0.0 || arrived < self.link.get() * SMALL;
        let has_grown = self.rate * (1.0 - HALF / 2.0) > self.losses.halved;
        let halves = lost > AGREE && !self.queue.stands() && is_small && has_grown;
        let rate = (left.max(arrived) * if halves { HALF } else { BETA }).max(slowest(path));
        self.losses.halved = if halves { rate } else { self.losses.halved };
        self.losses.hold_until = path.now + round(path).saturating_mul(LOSSY_LOOPS);
        rate
    }

    /// Halves bursts, (6). Returns what remains to be taken for overload.
    fn halve_bursts(&self, lossy: Option<f64>, control: &mut Control) -> Option<f64> {
        let lost = lossy?;
        control.catch_up_pace = Some((self.scale() / self.rate).clamp(1.0 / FULL, CATCH_UP_PACE));
        let burst = control.burst.unwrap_or(MAX_BURST).min((self.rate * BURST_TIME.as_secs_f64()) as u32);
        if f64::from(burst) <= PAIRS {
            return Some(lost);
        }
        control.burst = Some((burst / 2).max(PAIRS as u32));
        // No burst of this side explains so many.
        Some(lost).filter(|lost| *lost > AGREE || self.rate > self.carried.get())
    }

    // ---- parts of them ----

    /// s: the part of a flow with this rate.
    fn share(&self, rate: f64) -> f64 {
        (rate / self.scale()).min(1.0)
    }

    fn resume(&mut self, path: &Path) {
        self.phase = UnionPhase::Grow;
        (self.growing.since, self.growing.from) = (path.now, self.rate);
    }

    fn apply(&self, path: &Path, control: &mut Control) {
        let rate = match self.phase {
            UnionPhase::Start(_) => return,
            UnionPhase::Grow => self.rate,
            UnionPhase::Drain(drain) => {
                // The link may be falling, and D shows it first. Beside losses it shows less.
                let arrives = if drain.ends_growth && drain.loops == 0 { self.arrives } else { f64::INFINITY };
                self.rate.min(drain.base).min(arrives) * (1.0 - drain.depth)
            }
            UnionPhase::Compete(_) => self.rate * PACING,
        };
        let rate = rate.max(slowest(path));
        control.send_period = bounded(1e6 / rate);
        // Trains, unless packets would wait for more than τ to form one.
        let trains = self.link.needs_trains() && rate * TAU >= f64::from(MAX_BURST);
        control.least_burst = trains.then_some(MAX_BURST);
        if let UnionPhase::Compete(cubic) = self.phase {
            let rtt = self.round_trip(path);
            set_cwnd(path, control, cubic.at(path.now, rtt) * RECEIPTS);
        } else {
            let fills = |time| PacketRate::new(rate.max(self.arrives)).packets_in(time);
            // What an earlier connection has found is worth an RTT, before anything of it has arrived (paper:rfc9959).
            let jumps = self.refining.is_some() && self.link.is_recalled();
            let window = if jumps { fills(path.rtt) } else { fills(round(path)) * WINDOW_GAIN };
            set_cwnd(path, control, window + HEADROOM);
        }
    }
}

#[cfg(test)]
mod tests;
