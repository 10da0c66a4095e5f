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
//! | lossy | a round lost more than 2 % and chance | `union/senses.rs` |
//! | ρ | how far queues fell of late, of what they would have if all flows drained | drains |
//!
//! # Equations
//!
//! ```text
//! grow      dx/dt = g·√(K·x);  2 % of x per loop at most beyond F·hi or F·L that nothing contradicts      (1)
//!           ×2 per loop up to F·L before anything has failed;  a search and a wall by `belief.rs`;
//!           x ≤ 2·D̂;  none for 3 loops after a lossy round, and for 38 packets after a halving        (2)
//! drain     send (1 − d)·b,  b = min(x, D) at its beginning, D that falls after growth, and min(x, D̂) after a loop,
//!           d = q/loop, anew in each loop, within 1 − β .. 1/2, as far as the lowest rate permits     (3)
//! price     q falls below q*/2:   x ← min(β·x/(1 + (P − q*)/τ),  D̂/(1 − d))                         (4)
//! loss      a lossy round:        x ← β·max(min(x, s)·(1 − lost),  min(x, D̂)), s is the rate that was sent,
//!           without the first of a recalled rate that has not failed;  x ≥ β·hi once hi is known, if not halved:
//!           ½ in place of β if it lost a tenth without a queue, x is small beside L, and a third above that of the last halving  (5)
//!           lost is at most 1/2. The round after a cut does not count, nor does the tail of start-up.
//! bursts    a lossy round without a queue halves bursts, to 4 packets.                                 (6)
//!           A late host catches up at L/x at most. (5) applies as well if a tenth was lost, or x has not arrived before.
//! compete   W of RFC 9438 (`competition.rs`), paced at 1.2·W/RTT                                       (7)
//! recall    L ← R, the rate of an earlier connection, x ← R/2                                          (8)
//! delays    c₁ − s₀ < (s/2)·(c₀ − s₀),  s > ½,  and q stands: the path delays by q for 10 to 20 s, and q ← 0  (9)
//!           c₀, c₁ came in the first and in the second loop of a drain, s₀ was sent in the first
//! q* = max(2 ms, 4 packets/K, 4·j),   loop = RTT + SYN,   s = b/K
//! ```
//!
//! # States
//!
//! | state | condition | to |
//! | --- | --- | --- |
//! | START | the first RTT is that of an earlier connection | GROW by (8) |
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
mod events;
mod growth;
mod senses;
mod start;

use farhaul_units::{Duration, Instant, PacketRate, SeqNo};

use self::belief::Belief;
use self::senses::{Answer, COUNT, Count, Delivered, Extreme, Grown, Link, Losses, MEMORY, Queue};
use self::start::StartUp;
use super::competition::{self, CubicWindow};
use crate::rate::flow_control::{cwnd, set_cwnd};
use crate::rate::period::{bounded, longer};
use crate::rate::syn::{SYN_INTERVAL, SynClock};
use crate::{AckEvent, Control, Controller, DeliveryEvent, KnownPath, LossEvent, Path, TimeoutEvent};

/// g, 1/s. Differences of two flows fall by e in 2/(g·√2) = 2.8 s, if loops are short. In a loop of 2τ, both add a queue of 14 ms.
const GROWTH: f64 = 0.5;
/// β: flows that share use (1 + β)/2 = 98 % of the link.
const BETA: f64 = 0.96;
/// τ, s: half of the longest stable loop.
const TAU: f64 = 0.1;
/// F: share of a known link that a sole flow takes. The rest drains chance queues.
const FULL: f64 = 0.99;
/// Two measurements of a rate agree if they differ by less than this share.
const AGREE: f64 = 0.1;
/// q*, s: schedulers and timers of hosts delay packets by up to this.
const VISIBLE: f64 = 2e-3;
/// q* in multiples of j. Delays by jitter in both directions, each uniform, lie within 4.3 times their mean difference.
const SPREAD: f64 = 4.0;
/// q* in packets, the shortest burst, and packets per max(loop, τ) at the least: two probe pairs.
const PAIRS: f64 = 4.0;
/// Largest depth of a drain.
const HALF: f64 = 0.5;
/// Evidence of how a queue answers, in multiples of q*.
const ENOUGH: f64 = 3.0;
/// Loops in which the rate does not grow after a lossy round: reports of the event are over then.
const LOSSY_LOOPS: u32 = 3;
/// Share of a link that one of many flows has at most.
const SMALL: f64 = 1.0 / 16.0;
/// Packets in which a loss of a tenth is lossy, 3/(0.1 − 2 %). Flows that share a queue which none of them sees notice its losses
/// within as many of their own packets, so all have been cut before one of them grows.
const VERDICT: f64 = 38.0;
/// s: the longest loop for UDT. A queue that outlives it is others', its absence means free capacity, a competition
/// looks for flows of this law as often, and crowds that begin together start up within it.
const PATIENCE: f64 = 1.0;
/// Pace as a multiple of W/RTT. Source: Linux (tcp_pacing_ca_ratio).
const PACING: f64 = 1.2;
/// Window beyond what the law has, since a quarter of an RTT passes before a receipt.
const RECEIPTS: f64 = 1.25;
/// Catch-up speed of a late host.
const CATCH_UP_PACE: f64 = 1.1;
/// Window as a multiple of what the rate fills.
const WINDOW_GAIN: f64 = 2.0;
/// Packets beyond.
const HEADROOM: f64 = 16.0;
/// The transport's bursts: packets at most, and s.
const MAX_BURST: u32 = 44;
const BURST_TIME: f64 = 250e-6;

/// The state.
#[derive(Clone, Copy, Debug)]
enum UnionPhase {
    Start(StartUp),
    Grow,
    Drain(Drain),
    Compete(CubicWindow),
}

/// A drain under way.
#[derive(Clone, Copy, Debug)]
struct Drain {
    /// When its present loop began, and how many went before.
    since: Instant,
    loops: u32,
    /// d of the present loop and of the one before, whose effect shows now.
    depth: f64,
    depth_before: f64,
    /// b: min(x, D) at its beginning, min(x, D̂) after a loop, packets/s.
    base: f64,
    /// q when the loop began, s.
    delay: f64,
    /// D̂ at its beginning and what was delivered in the loop before, packets/s, and the packets until then.
    arrived: f64,
    delivered: f64,
    grown: Option<Grown>,
    /// (5) was for what D̂ showed, which may be less than the path delivers.
    cut_by_losses: bool,
    /// Packets delivered and sent until the loop, and the rates of the loop before, packets/s.
    delivered_before: f64,
    sent_before: u64,
    came: f64,
    sent: f64,
    /// A queue gave up packets or overflowed.
    queues: bool,
    /// Whether the rate that it ends has been tried: the losses after a cut are of the rate before.
    fails: bool,
    /// A queue ends growth.
    ends_growth: bool,
}

/// The controller.
#[derive(Clone, Debug)]
pub(crate) struct Union {
    clock: SynClock,
    last: Instant,
    phase: UnionPhase,
    /// x, packets/s.
    rate: f64,
    /// What an earlier connection has found, until the first RTT tells whether it holds.
    known: Option<KnownPath>,
    /// Start-up's trains under way after its end.
    refining: Option<(StartUp, Instant)>,
    queue: Queue,
    losses: Losses,
    /// D, D̂ and the most that arrived for long, packets/s.
    arrives: f64,
    count: Count,
    delivered: Delivered,
    arrived: Extreme,
    /// x̂, the highest rate tried in as long, packets/s.
    tried: Extreme,
    carried: Extreme,
    link: Link,
    belief: Belief,
    /// x when GROW began, packets/s.
    grown_from: f64,
    /// When GROW began.
    grown_since: Instant,
    /// The last packet that start-up sent, if it met losses.
    first_flight: Option<SeqNo>,
    /// Start-up's own queue has gone.
    priced: bool,
    /// Until when others are taken to compete, until when a lossy round stops growth, and until when the one before it did.
    others_until: Instant,
    lossy_until: Instant,
    held_until: Instant,
    /// The rate after the last halving, packets/s.
    halved: f64,
    /// When a competing flow may look for flows of this law again.
    next_search: Instant,
    /// Until when others may still start up.
    settled_until: Instant,
    answer: Answer,
    /// The last cut of a competition.
    cubic: Option<CubicWindow>,
}

impl Union {
    pub(crate) fn new() -> Self {
        Self {
            clock: SynClock::default(),
            last: Instant::ZERO,
            phase: UnionPhase::Start(StartUp::default()),
            rate: 0.0,
            known: None,
            refining: None,
            queue: Queue::new(),
            losses: Losses::default(),
            arrives: 0.0,
            count: Count::default(),
            delivered: Delivered::default(),
            arrived: Extreme::most(),
            tried: Extreme::most(),
            carried: Extreme::most(),
            link: Link::default(),
            belief: Belief::default(),
            grown_from: 0.0,
            grown_since: Instant::ZERO,
            first_flight: None,
            priced: false,
            others_until: Instant::ZERO,
            lossy_until: Instant::ZERO,
            held_until: Instant::ZERO,
            halved: 0.0,
            next_search: Instant::ZERO,
            settled_until: Instant::ZERO,
            answer: Answer::default(),
            cubic: None,
        }
    }

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
        let grows_since = matches!(self.phase, UnionPhase::Grow).then_some(self.grown_since);
        self.delivered.step(path, round(path), grows_since);
        let lossy = self.losses.end_of_round(path, self.delivered.total());
        let threshold = self.threshold();
        if self.queue.watch(threshold) {
            self.price(threshold, path);
        }
        let competes = matches!(self.phase, UnionPhase::Compete(_));
        if !competes && !self.queue.stands() && path.now >= self.lossy_until && !path.application_limited {
            self.grow(elapsed, path);
        }
        match self.phase {
            UnionPhase::Start(_) => {}
            UnionPhase::Grow => self.after_growth(lossy, path, control),
            UnionPhase::Drain(drain) => self.after_draining(drain, lossy, path),
            UnionPhase::Compete(cubic) => self.after_competing(cubic, lost, path),
        }
        if matches!(self.phase, UnionPhase::Grow) {
            self.tried.take(path.now, self::round(path).saturating_mul(2), self.rate);
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
        self.held_until = self.lossy_until;
        // Bursts do not excuse a rate that this connection has not tried before.
        let lossy = if stands { lossy } else { self.halve_bursts(lossy, control) };
        if let Some(lost) = lossy {
            // A search that a bucket let pass for a while ends where it began, and what the bucket lent is no news of the path.
            let before = if stands { None } else { self.belief.end_search(self.rate, path.now) };
            self.rate = self.after_loss(lost, path).min(before.unwrap_or(f64::INFINITY));
            self.held_until = if before.is_some() { path.now } else { self.held_until };
        }
        if !stands && lossy.is_none() {
            return;
        }
        // Behind a queue every sample shows the link. Beside losses many show less.
        let base = self.rate.min(if stands { self.arrives } else { self.arrived.get() });
        let settled = (path.now - self.grown_since).as_secs_f64() > loop_time(path) + TAU;
        if settled && self.link.get() > 0.0 && self.rate > self.link.get() * FULL * (1.0 - AGREE) {
            self.link.lower(self.rate.min(self.arrived.get()));
        }
        let cut_by_losses = lossy.is_some() && self.rate != self.halved;
        self.phase = UnionPhase::Drain(Drain { cut_by_losses, queues: lossy.is_some(), ..self.drain(base, path) });
    }

    fn after_draining(&mut self, mut drain: Drain, lossy: Option<f64>, path: &Path) {
        if let Some(lost) = lossy {
            self.rate = self.after_loss(lost, path);
            drain.queues = true;
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
            drain.queues |= self.gives_up(&drain, came, stood);
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
        if stands_still && !drain.queues && is_large {
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

    fn after_competing(&mut self, cubic: CubicWindow, lost: bool, path: &Path) {
        let rtt = self.round_trip(path);
        self.rate = (cubic.at(path.now, rtt) / rtt).max(slowest(path));
        if !self.queue.stands() {
            // A queue that has gone without a loss has room for all.
            if path.now < self.others_until {
                self.rate *= competition::BETA;
                self.cubic = Some(cubic.cut(path.now, rtt));
            }
            self.answer = Answer::default();
            self.resume(path);
        } else if (path.now - cubic.began).as_secs_f64() < loop_time(path) {
            self.losses.restart(path);
        } else if lost {
            self.others_until = path.now + MEMORY;
            let cubic = cubic.cut(path.now, rtt);
            self.cubic = Some(cubic);
            self.losses.restart(path);
            if path.now < self.next_search {
                self.phase = UnionPhase::Compete(cubic);
                return;
            }
            // Flows of this law do not fill a queue. If all that lost drain now, they find each other.
            self.next_search = path.now + Duration::from_secs_f64(PATIENCE);
            let base = cubic.base / rtt;
            self.phase = UnionPhase::Drain(self.drain(base, path));
        }
    }

    // ---- parts of them ----

    /// s: the part of a flow with this rate.
    fn share(&self, rate: f64) -> f64 {
        (rate / self.scale()).min(1.0)
    }

    /// Whether queues fall as if all flows drained, by flows that drain from `rate`. `None` without enough evidence.
    fn all_drain(&self, rate: f64) -> Option<bool> {
        let enough = self.answer.expected >= ENOUGH * self.threshold();
        let share = self.share(rate);
        // A flow that has the link to itself, as far as b and K tell, has nobody to compete with.
        enough.then(|| share > 1.0 - 2.0 * AGREE || self.answer.share() > (1.0 + share) / 2.0)
    }

    /// Whether `came`, what arrived in the second loop of a drain, is more than was sent in the first: by half of what a queue gives up
    /// to a flow with this share. Too few packets do not tell.
    fn gives_up(&self, drain: &Drain, came: f64, stood: f64) -> bool {
        let most = drain.came - drain.sent;
        let is_clear = most > drain.came * AGREE && most * stood > COUNT;
        !is_clear || came - drain.sent > most * self.share(drain.base) / 2.0
    }

    fn drain(&self, base: f64, path: &Path) -> Drain {
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
            queues: false,
            ends_growth: grew && self.queue.stands(),
            fails: grew && path.now > self.held_until && self.tried.get() > 0.0,
        }
    }

    fn resume(&mut self, path: &Path) {
        (self.phase, self.grown_since, self.grown_from) = (UnionPhase::Grow, path.now, self.rate);
    }

    /// (7)
    fn compete(&mut self, rate: f64, path: &Path) {
        let base = rate * self.round_trip(path);
        let known = self.cubic.filter(|_| path.now < self.others_until);
        let origin = known.map_or(base, |cubic| cubic.origin.max(base));
        self.phase = UnionPhase::Compete(CubicWindow { began: path.now, origin, base });
        self.losses.restart(path);
    }

    /// d of a drain from `base`, (3). None is deeper than the lowest rate permits.
    fn depth(&self, base: f64, path: &Path) -> f64 {
        let possible = (1.0 - slowest(path) / base).max(0.0);
        (self.queue.delay() / loop_time(path)).clamp(1.0 - BETA, HALF).min(possible)
    }

    /// (5)
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
        let has_grown = self.rate * (1.0 - HALF / 2.0) > self.halved;
        let halves = lost > AGREE && !self.queue.stands() && is_small && has_grown;
        let rate = (left.max(arrived) * if halves { HALF } else { BETA }).max(slowest(path));
        self.halved = if halves { rate } else { self.halved };
        let hold = if halves { (VERDICT / rate).min(MEMORY.as_secs_f64()) } else { 0.0 };
        self.lossy_until = path.now + round(path).saturating_mul(LOSSY_LOOPS).max(Duration::from_secs_f64(hold));
        rate
    }

    /// (6). Returns what remains to be taken for overload.
    fn halve_bursts(&self, lossy: Option<f64>, control: &mut Control) -> Option<f64> {
        let lost = lossy?;
        control.catch_up_pace = Some((self.scale() / self.rate).clamp(1.0 / FULL, CATCH_UP_PACE));
        let burst = control.burst.unwrap_or(MAX_BURST).min((self.rate * BURST_TIME) as u32);
        if f64::from(burst) <= PAIRS {
            return Some(lost);
        }
        control.burst = Some((burst / 2).max(PAIRS as u32));
        // No burst of this side explains so many.
        Some(lost).filter(|lost| *lost > AGREE || self.rate > self.carried.get())
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
            let filled = PacketRate::new(rate.max(self.arrives)).packets_in(path.rtt.saturating_add(SYN_INTERVAL));
            set_cwnd(path, control, filled * WINDOW_GAIN + HEADROOM);
        }
    }
}

/// Time in which a change of the rate comes back as a measurement.
fn round(path: &Path) -> Duration {
    path.rtt.saturating_add(SYN_INTERVAL)
}

/// The same, s.
fn loop_time(path: &Path) -> f64 {
    round(path).as_secs_f64()
}

/// The lowest rate.
fn slowest(path: &Path) -> f64 {
    PAIRS / loop_time(path).max(TAU)
}

#[cfg(test)]
mod tests;
