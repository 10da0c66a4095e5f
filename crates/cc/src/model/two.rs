//! `two`: a model of the link bounds a rate, and flows share the link by common cuts. Experimental.
//!
//! Growth and cuts follow the queue, which all flows of a link see alike. Growth shrinks the ratio of two rates, and a
//! cut is the same factor for both. A sole flow keeps 99 % of the link that it has measured, and no queue.
//!
//! # Signals, per SYN interval
//!
//! | signal | meaning | from |
//! | --- | --- | --- |
//! | x | the rate, packets/s | the law |
//! | q, P | queueing delay and its peak, s | `queue.rs` |
//! | D, D_f | rate of arrivals: filtered, and by the last reports | receiver's reports, acknowledgements |
//! | K | the scale of growth: the largest D of 10 to 20 s, or the capacity by probe pairs | |
//! | L | the link of a sole flow, by start-up's trains and probe pairs | lowered to D by a queue, raised slowly without one |
//! | lossy | a round lost more than 2 % and chance: the share lost | `losses.rs` |
//!
//! # Equations
//!
//! ```text
//! grow      d ln x/dt = g·(1 + ln(K/x)),  at least ×2 per max(loop, τ) without a queue or loss for 1 s      (1)
//!           x ≤ F·L,  x ≤ 2·D                                                                           (2)
//! drain     send (1 − d)·min(x, 1.02·D, 1.02·D_f),  d = q/loop at its beginning, within 1 − β .. 1/2       (3)
//! price     q falls below q*/2:   x ← min(β·x/(1 + (P − q*)/τ),  D/(1 − d))                             (4)
//! loss      a lossy round:        x ← β·max(x·(1 − lost),  min(x, D_f))                                 (5)
//! bursts    a lossy round without a queue halves the bursts, down to 4 packets, before (5) applies         (6)
//! compete   W of RFC 9438 (`competition.rs`), paced at 1.2·W/RTT                                          (7)
//! q*        = max(2 ms, 4 packets/K);  10 ms while packets overtake each other
//! loop      = RTT + SYN
//! ```
//!
//! # States
//!
//! | state | condition | to |
//! | --- | --- | --- |
//! | START | the window has reached the path, or too many losses | DRAIN, x = C. Losses of START no longer count |
//! | START | too many losses while a queue stands | DRAIN, x = min(C, W/RTT) |
//! | GROW | a queue (q > q*) | DRAIN |
//! | GROW | lossy | DRAIN by (5). Without a queue L ← min(x, D), and once in 10 s a *blind* drain: d = 1/2, no growth |
//! | DRAIN | q < q*/2, after one loop | GROW by (4). L ← the largest D of the drain, if x was near L for a loop |
//! | DRAIN | q has fallen by a tenth | DRAIN, with new patience |
//! | DRAIN | patience is over, q neither fell nor rose | GROW. q is jitter and becomes an offset for 10 s |
//! | DRAIN | patience is over | COMPETE from min(x, D) of its beginning |
//! | COMPETE | a loss after one loop | DRAIN; W ← 0.7·W |
//! | COMPETE | q < q*/2 | GROW; x ← 0.7·x |
//!
//! L takes the largest D, because a link with a queue works without pause. A host that wakes late lowers D for a while,
//! and the least or first D of a drain would then be taken for the link. Nor is a queue the link's that has gone before
//! the drain can have reached it.
//!
//! Patience is max(1 s, 2·(loop + τ)), and 3 loops if others competed within 10 s. The blind drain is for a queue that
//! has stood for longer than the memory of the minimum RTT: it is part of everybody's minimum.
//!
//! # Stability and fairness
//!
//! (1) shrinks ratios: d(ln x₁/x₂)/dt = −g·ln(x₁/x₂) while no queue stands. (4) is the same factor for all who saw the
//! queue. A queue o·loop of overload o costs ln(1 + P/τ) ≈ o·loop/τ, so the loop is stable for loop < 2·τ = 200 ms.
//! Beyond that, cuts are too deep, which costs time only.

use farhaul_units::{Duration, Instant, PacketRate, SeqNo};

use self::losses::{CEILING, Losses};
use self::queue::Queue;
use super::competition::{self, CubicWindow};
use crate::rate::flow_control::{cwnd, set_cwnd};
use crate::rate::period::{bounded, longer};
use crate::rate::start::Start;
use crate::rate::syn::{SYN_INTERVAL, SynClock};
use crate::{AckEvent, Control, Controller, LossEvent, Path, ReceivedEvent, TimeoutEvent};

mod losses;
mod queue;

/// g, 1/s: the ratio of two shares falls to a tenth of its logarithm in five seconds, e^(−5·g) = 1/10.
const GROWTH: f64 = 0.46;
/// β: two flows or more use (1 + β)/2 = 98 % of the link on average.
const BETA: f64 = 0.96;
/// τ, s: half of the longest stable loop.
const TAU: f64 = 0.1;
/// F: share of a known link that a sole flow takes. The rest drains chance queues.
const FULL: f64 = 0.99;
/// Two measurements of a rate agree if they differ by less than this share.
const AGREE: f64 = 0.1;
/// q*, s: schedulers and timers of hosts delay packets by up to this.
const VISIBLE: f64 = 2e-3;
/// q*, s, while packets overtake each other: one SYN interval, because RTTs are then known only to within one.
const OVERTAKEN: f64 = 1e-2;
/// q* in packets, and the shortest burst: two probe pairs that meet.
const PAIRS: f64 = 4.0;
/// Largest credible capacity by probe pairs, packets/s: closer pairs were together in a host's buffer.
const MAX_PAIR_RATE: f64 = 5e5;
/// Pairs are refuted by trains that show less by this factor: start-up's trains exceed the flow's share by its growth per
/// RTT, so a flow that began beside others still believes the pairs.
const REFUTED: f64 = 4.0;
/// Largest depth of a drain, and weight of a new report in D_f.
const HALF: f64 = 0.5;
/// Loops in which a drain has removed what this flow can remove.
const FLAT: f64 = 3.0;
/// s: the longest loop for UDT. A queue that outlives it is not one of start-up, and its absence means free capacity.
const PATIENCE: f64 = 1.0;
/// How long observations about the path count: as long as the transport remembers the minimum RTT.
const MEMORY: Duration = Duration::from_secs(10);
/// Pace as a multiple of W/RTT. Source: Linux (tcp_pacing_ca_ratio).
const PACING: f64 = 1.2;
/// Packets per max(loop, τ) at the least: two probe pairs.
const MIN_PER_ROUND: f64 = 4.0;
/// Loss reports to ignore before anything is measured: libudt loses packets after its own connect. Source: `udt`.
const FIRST_FLIGHT: u32 = 64;
/// Catch-up speed of a late host. Source: `udt`.
const CATCH_UP_PACE: f64 = 1.1;
/// Window as a multiple of what the rate fills, since repairs hold acknowledgements back. Source: `udt`.
const WINDOW_GAIN: f64 = 4.0;
/// Bytes beyond twice the path that the window holds at most. Source: `udt`.
const WINDOW_ROOM: f64 = 28.0 * 1024.0 * 1024.0;
/// Packets of a window beyond those that the rate fills. Source: UDT2 and later.
const HEADROOM: f64 = 16.0;
/// The transport's bursts: packets at most, and s.
const MAX_BURST: u32 = 44;
const BURST_TIME: f64 = 250e-6;
/// Acknowledgements by packets per SYN interval that this side sends as a receiver. RTTs then are exact for slow flows.
const ACKS_PER_SYN: f64 = 2.0;
/// Shortest RTT in a quotient, s.
const MIN_RTT: f64 = 1e-4;

/// The state.
#[derive(Clone, Copy, Debug)]
enum Phase {
    Start(Start),
    Grow,
    Drain(Drain),
    Compete(CubicWindow),
}

/// A drain under way.
#[derive(Clone, Copy, Debug, Default)]
struct Drain {
    since: Instant,
    /// d
    depth: f64,
    /// min(x, D) at its beginning, packets/s.
    before: f64,
    /// Range of the queueing delay since the drain can have shown an effect.
    least: f64,
    most: f64,
    /// It looks for a queue that has always stood.
    blind: bool,
    /// The flow was alone at the link's rate, so what arrives while the queue stands is the link.
    shows_link: bool,
    /// The largest D so far, packets/s.
    arrives: f64,
}

/// The largest value of the last one to two memories.
#[derive(Clone, Copy, Debug, Default)]
struct Largest {
    since: Instant,
    before: f64,
    now: f64,
}

/// Observations of one SYN interval.
#[derive(Clone, Copy, Debug)]
struct Signs {
    /// D, packets/s.
    arrives: f64,
    /// q, s.
    delay: Option<f64>,
    /// The share lost in a lossy round that has just ended.
    lossy: Option<f64>,
    /// Anything was lost in the present round.
    lost: bool,
}

/// `two`.
#[derive(Clone, Debug)]
pub(crate) struct Two {
    clock: SynClock,
    last_syn: Instant,
    phase: Phase,
    /// x, packets/s.
    rate: f64,
    /// Start-up's trains under way after its end.
    refining: Option<(Start, Instant)>,
    queue: Queue,
    losses: Losses,
    /// The largest D.
    arrivals: Largest,
    /// C: the capacity by start-up's trains, packets/s; zero while unknown.
    train: f64,
    /// L, packets/s; zero while unknown.
    link: f64,
    /// D_f, packets/s; zero while unknown.
    reported: f64,
    reported_at: Instant,
    grown_since: Instant,
    /// End of the last queue or lossy round; `None` if start-up measured nothing.
    free_since: Option<Instant>,
    /// Start-up's own queue has gone.
    priced: bool,
    /// Packets overtake each other until then.
    overtaken_until: Instant,
    /// No new offset of the queueing delay is learnt until then.
    offset_until: Instant,
    /// Others compete until then.
    others_until: Instant,
    /// No blind drain begins until then.
    blind_until: Instant,
    /// The last cut of a competition.
    cubic: Option<CubicWindow>,
    forgiven: u32,
    /// End of start-up's packets while some are in flight, unless others fill the queue.
    start_end: Option<SeqNo>,
    receiver: AckFrequency,
}

impl Two {
    pub(crate) fn new() -> Self {
        Self {
            clock: SynClock::default(),
            last_syn: Instant::ZERO,
            phase: Phase::Start(Start::default()),
            rate: 0.0,
            refining: None,
            queue: Queue::default(),
            losses: Losses::default(),
            arrivals: Largest::default(),
            train: 0.0,
            link: 0.0,
            reported: 0.0,
            reported_at: Instant::ZERO,
            grown_since: Instant::ZERO,
            free_since: None,
            priced: false,
            overtaken_until: Instant::ZERO,
            offset_until: Instant::ZERO,
            others_until: Instant::ZERO,
            blind_until: Instant::ZERO,
            cubic: None,
            forgiven: 0,
            start_end: None,
            receiver: AckFrequency::default(),
        }
    }

    // ---- signals ----

    /// D. The receiver's figure is too low where packets arrive in clumps. The sender's jumps when repairs fill gaps, so
    /// it does not count while packets are lost.
    fn arrives(&self, path: &Path) -> f64 {
        let [report, delivery] =
            [path.arrival_rate, path.delivery_rate].map(|rate| rate.map_or(0.0, PacketRate::packets_per_second));
        if report > 0.0 && self.losses.lost_lately() > 0.0 { report } else { report.max(delivery) }
    }

    /// Capacity by probe pairs, packets/s; zero without a credible one. Hosts merge pairs in their buffers, so a train of
    /// dozens of packets refutes pairs that are far faster.
    fn pairs(&self, path: &Path) -> f64 {
        let most = if self.train > 0.0 { self.train * REFUTED } else { MAX_PAIR_RATE };
        path.capacity.map(PacketRate::packets_per_second).filter(|rate| *rate < most.min(MAX_PAIR_RATE)).unwrap_or(0.0)
    }

    /// K
    fn scale(&self, path: &Path) -> f64 {
        self.pairs(path).max(self.arrivals.get())
    }

    /// q*
    fn threshold(&self, scale: f64, path: &Path) -> f64 {
        let least = if path.now < self.overtaken_until { OVERTAKEN } else { VISIBLE };
        least.max(PAIRS / scale.max(1.0))
    }

    /// The RTT with the latest queueing delay, s.
    fn round_trip(&self, path: &Path) -> f64 {
        (path.min_rtt.unwrap_or(path.rtt).as_secs_f64() + self.queue.latest()).max(MIN_RTT)
    }

    /// Takes stock of an interval.
    fn sense(&mut self, path: &Path) -> Signs {
        let arrives = self.arrives(path);
        self.arrivals.take(path.now, arrives.min(self.rate));
        let pairs = self.pairs(path);
        // The receiver's first estimates may be half of the link, which carries at least what has arrived.
        let first = self.link == 0.0 && pairs > 0.0;
        self.link = self.link.max(if first { self.scale(path) } else { pairs });
        let lost = self.losses.lost() > 0.0;
        // If packets only overtake each other, all of them arrive.
        let all_arrive = path.now < self.overtaken_until && arrives > self.rate * (1.0 - AGREE);
        let lossy = self.losses.end_of_round(path, all_arrive);
        if lossy.is_some() {
            // The delay was a queue's after all.
            self.queue.remove_offset();
            self.offset_until = path.now + MEMORY;
            if !path.application_limited {
                self.rate = self.rate.min((arrives / HALF).max(slowest(path)));
            }
        }
        Signs { arrives, delay: self.queue.delay(), lossy, lost }
    }

    // ---- one SYN interval ----

    fn on_syn(&mut self, path: &Path, control: &mut Control) {
        let elapsed = (path.now - self.last_syn).as_secs_f64().min(TAU);
        self.last_syn = path.now;
        if path.now >= self.offset_until {
            self.queue.remove_offset();
        }
        let signs = self.sense(path);
        let threshold = self.threshold(self.scale(path), path);
        if let Phase::Drain(drain) = &mut self.phase {
            drain.arrives = drain.arrives.max(signs.arrives);
        }
        if self.queue.watch(threshold) {
            self.price(threshold, &signs, path);
        }
        let grows = match self.phase {
            Phase::Compete(_) | Phase::Drain(Drain { blind: true, .. }) => false,
            _ => !self.queue.stands() && !path.application_limited,
        };
        if grows {
            self.grow(elapsed, signs.arrives, path);
        }
        match self.phase {
            Phase::Start(_) => {}
            Phase::Grow => self.after_growth(&signs, path, control),
            Phase::Drain(drain) => self.after_draining(drain, &signs, path, control),
            Phase::Compete(cubic) => self.after_competing(cubic, &signs, path),
        }
        self.queue.end_interval();
        self.apply(path, control);
    }

    /// The queue has gone, (4). The first one is that of start-up's trains and costs nothing.
    fn price(&mut self, threshold: f64, signs: &Signs, path: &Path) {
        if let Phase::Drain(drain) = &mut self.phase
            && std::mem::take(&mut drain.shows_link)
            && (path.now - drain.since).as_secs_f64() >= loop_time(path)
        {
            self.link = self.link.min(drain.arrives);
        }
        if self.priced && !matches!(self.phase, Phase::Compete(_)) {
            let depth = if let Phase::Drain(Drain { depth, .. }) = self.phase { depth } else { HALF };
            let overload = (self.queue.peak() - threshold).max(0.0) / TAU;
            let left = self.rate * BETA / (1.0 + overload);
            self.rate = left.min(signs.arrives / (1.0 - depth)).max(slowest(path));
            self.free_since = Some(path.now);
        }
        self.priced = true;
    }

    /// (1), (2)
    fn grow(&mut self, elapsed: f64, arrives: f64, path: &Path) {
        let free = self.free_since.is_none_or(|since| (path.now - since).as_secs_f64() > PATIENCE);
        if free && self.rate >= self.link * FULL && self.pairs(path) < self.link * (1.0 - AGREE) {
            self.link *= libm::exp(GROWTH * TAU * elapsed);
        }
        let distance = libm::log((self.scale(path) / self.rate).max(1.0));
        let shortest = if self.free_since.is_some() { TAU } else { 0.0 };
        let doubling = if free { std::f64::consts::LN_2 / loop_time(path).max(shortest) } else { 0.0 };
        let grown = self.rate * libm::exp((GROWTH * (1.0 + distance)).max(doubling) * elapsed);
        let mut most = if self.link > 0.0 { self.link * FULL } else { f64::INFINITY };
        if let Some(cubic) = self.cubic.filter(|_| path.now < self.others_until) {
            let rtt = self.round_trip(path);
            most = most.min(cubic.at(path.now, rtt) / rtt);
        }
        self.rate = grown.min((2.0 * arrives).max(self.rate)).min(most.max(slowest(path)));
    }

    fn after_growth(&mut self, signs: &Signs, path: &Path, control: &mut Control) {
        let lossy = if self.queue.stands() { signs.lossy } else { self.halve_bursts(signs.lossy, control) };
        if let Some(lost) = lossy {
            self.rate = self.after_loss(self.rate, lost, path);
            self.free_since = Some(path.now);
        }
        let stands = self.queue.stands();
        if stands || lossy.is_some() {
            let before = self.rate.min(self.arrives(path));
            let settled = (path.now - self.grown_since).as_secs_f64() > loop_time(path) + TAU;
            let shows_link = settled && self.rate > self.link * FULL * (1.0 - AGREE);
            if shows_link && !stands {
                self.link = before;
            }
            let blind = !stands && path.now >= self.blind_until;
            if blind {
                self.blind_until = path.now + MEMORY;
            }
            let depth = if blind { HALF } else { self.depth(path) };
            self.phase = Phase::Drain(Drain { blind, shows_link, ..Drain::new(depth, before, path) });
        }
    }

    fn after_draining(&mut self, mut drain: Drain, signs: &Signs, path: &Path, control: &Control) {
        let stood = (path.now - drain.since).as_secs_f64();
        let (round, shown) = (loop_time(path), loop_time(path).max(TAU));
        if let Some(lost) = signs.lossy {
            self.rate = self.after_loss(self.rate.min(1e6 / control.send_period.as_micros()), lost, path);
        }
        if let Some(delay) = signs.delay.filter(|_| stood >= shown) {
            let goes = self.queue.stands() && drain.most > 0.0 && delay < drain.least * (1.0 - AGREE);
            (drain.least, drain.most) = (drain.least.min(delay), drain.most.max(delay));
            if goes {
                drain.since = path.now;
            }
            self.phase = Phase::Drain(drain);
        }
        if stood >= round && !self.queue.stands() {
            self.losses.restart(path);
            self.resume(path);
            return;
        }
        let patience = (2.0 * (round + TAU)).max(PATIENCE);
        let flat = drain.most - drain.least < 2.0 * VISIBLE && drain.most < OVERTAKEN && path.now >= self.offset_until;
        let below_middle = signs.delay.is_some_and(|delay| 2.0 * delay < drain.least + drain.most);
        if path.now < self.others_until && stood > FLAT * round {
            self.others_until = path.now + MEMORY;
            self.compete(drain.before, path);
        } else if flat && stood > patience && below_middle {
            self.offset_until = path.now + MEMORY;
            self.link = self.link.max(self.scale(path));
            self.queue.restart_above(drain.most);
            self.resume(path);
        } else if stood > if flat { patience + FLAT * round } else { patience } {
            self.compete(drain.before, path);
        }
    }

    fn after_competing(&mut self, cubic: CubicWindow, signs: &Signs, path: &Path) {
        let rtt = self.round_trip(path);
        self.rate = (cubic.at(path.now, rtt) / rtt).max(slowest(path));
        self.free_since = Some(path.now);
        if !self.queue.stands() {
            self.rate *= competition::BETA;
            self.cubic = Some(cubic.cut(path.now, rtt));
            self.resume(path);
        } else if (path.now - cubic.began).as_secs_f64() < loop_time(path) {
            self.losses.restart(path);
        } else if signs.lost {
            // Flows of this law do not fill a queue. If all that lost drain now, they find each other.
            self.others_until = path.now + MEMORY;
            let cubic = cubic.cut(path.now, rtt);
            self.cubic = Some(cubic);
            self.phase = Phase::Drain(Drain::new(self.depth(path), cubic.base / rtt, path));
            self.losses.restart(path);
        }
    }

    // ---- parts of them ----

    /// GROW begins.
    fn resume(&mut self, path: &Path) {
        (self.phase, self.grown_since) = (Phase::Grow, path.now);
    }

    /// COMPETE begins, (7).
    fn compete(&mut self, rate: f64, path: &Path) {
        let base = rate * self.round_trip(path);
        let known = self.cubic.filter(|_| path.now < self.others_until);
        let origin = known.map_or(base, |cubic| cubic.origin.max(base));
        self.phase = Phase::Compete(CubicWindow { began: path.now, origin, base });
        self.losses.restart(path);
    }

    /// d, (3)
    fn depth(&self, path: &Path) -> f64 {
        let delay = self.queue.delay().unwrap_or(0.0).max(self.queue.latest());
        (delay / loop_time(path)).clamp(1.0 - BETA, HALF)
    }

    /// (5). The losses may be old, so a fresh report prevails.
    fn after_loss(&self, rate: f64, lost: f64, path: &Path) -> f64 {
        let fresh = (path.now - self.reported_at).as_secs_f64() < 2.0 * loop_time(path);
        let arrives = if fresh { rate.min(self.reported) } else { 0.0 };
        ((rate * (1.0 - lost)).max(arrives) * BETA).max(slowest(path))
    }

    /// (6). Returns what remains to be taken for overload.
    fn halve_bursts(&self, lossy: Option<f64>, control: &mut Control) -> Option<f64> {
        let lost = lossy?;
        let burst = control.burst.unwrap_or(MAX_BURST).min((self.rate * BURST_TIME) as u32);
        if f64::from(burst) <= PAIRS {
            return Some(lost);
        }
        control.burst = Some((burst / 2).max(PAIRS as u32));
        None
    }

    /// Start-up is over, and the link carries `capacity`.
    fn settle(&mut self, capacity: f64, lost: bool, path: &Path, control: &mut Control) {
        // Others fill a queue that overflows before the window has reached the path: go on with what it has reached.
        let shared = lost && self.queue.latest() > self.threshold(self.scale(path).max(capacity), path);
        self.start_end = (!shared).then_some(path.next_seq);
        self.rate = if shared { capacity.min(cwnd(control) / path.rtt.as_secs_f64().max(MIN_RTT)) } else { capacity };
        let drain = Phase::Drain(Drain::new(self.depth(path), self.rate, path));
        if let Phase::Start(start) = std::mem::replace(&mut self.phase, drain) {
            if start.capacity().is_some() && path.now >= self.overtaken_until {
                self.arrivals.take(path.now, capacity);
                (self.train, self.link) = (capacity, capacity);
                self.free_since = Some(path.now);
            }
            self.refining = Some((start, path.now + path.rtt)).filter(|_| !shared);
        }
        self.last_syn = path.now;
        self.losses.restart(path);
        self.apply(path, control);
    }

    fn apply(&self, path: &Path, control: &mut Control) {
        let arrives = self.arrives(path);
        let rate = match self.phase {
            Phase::Start(_) => return,
            Phase::Grow => self.rate,
            Phase::Drain(Drain { depth, .. }) => {
                let arrives = if self.reported > 0.0 { arrives.min(self.reported) } else { arrives };
                let drained = if arrives > 0.0 { self.rate.min(arrives * (1.0 + CEILING)) } else { self.rate };
                drained * (1.0 - depth)
            }
            Phase::Compete(_) => self.rate * PACING,
        };
        let rate = rate.max(slowest(path));
        control.send_period = bounded(1e6 / rate);
        if let Phase::Compete(cubic) = self.phase {
            let rtt = self.round_trip(path);
            // Acknowledgements are late by half a SYN interval on average.
            let held = 1.0 + SYN_INTERVAL.as_secs_f64() / 2.0 / rtt;
            set_cwnd(path, control, cubic.at(path.now, rtt) * held + MIN_PER_ROUND);
        } else {
            let sent = PacketRate::new(rate.max(arrives));
            let filled = sent.packets_in(path.rtt.saturating_add(SYN_INTERVAL)) * WINDOW_GAIN;
            let room = WINDOW_ROOM / f64::from(path.mss.max(1));
            let held = 2.0 * sent.packets_in(path.min_rtt.unwrap_or(path.rtt)) + room;
            set_cwnd(path, control, filled.min(held) + HEADROOM);
        }
    }
}

impl Controller for Two {
    fn name(&self) -> &str {
        "two"
    }

    fn on_connect(&mut self, _path: &Path, control: &mut Control) {
        control.catch_up_pace = Some(CATCH_UP_PACE);
    }

    fn on_ack(&mut self, path: &Path, ack: &AckEvent, control: &mut Control) {
        if let (Some(least), Some(floor)) = (ack.rtt_least, path.min_rtt) {
            self.queue.take(least.saturating_sub(floor).as_secs_f64());
        }
        if let Some(rate) = ack.arrives.map(PacketRate::packets_per_second) {
            self.reported += (rate - self.reported) * HALF;
            self.reported_at = path.now;
        }
        self.start_end = self.start_end.filter(|end| ack.seq.is_before(*end));
        let ticks = !ack.light && self.clock.tick(path.now);
        if let Phase::Start(start) = &mut self.phase {
            if let Some(capacity) = start.on_ack(path, ack, control) {
                self.settle(capacity.packets_per_second(), false, path, control);
            }
            if ticks {
                self.queue.end_interval();
            }
            return;
        }
        self.refining = self.refining.take().filter(|(_, end)| path.now < *end);
        if let Some(capacity) = self.refining.as_mut().and_then(|(start, _)| start.refine(ack)) {
            self.rate = capacity.packets_per_second();
            (self.train, self.link) = (self.rate, self.rate);
            self.arrivals.take(path.now, self.rate);
        }
        if ticks {
            self.on_syn(path, control);
        } else if !ack.light {
            // What a loss report has decided may be a rise, which only an acknowledgement may bring.
            self.apply(path, control);
        }
    }

    fn on_loss(&mut self, path: &Path, loss: &LossEvent<'_>, control: &mut Control) {
        let before = *control;
        // Gaps hold acknowledgements back, and then these reports are the clock.
        if !matches!(self.phase, Phase::Start(_)) && self.clock.tick(path.now) {
            self.on_syn(path, control);
        }
        // Start-up has ended with the capacity, whatever its last window lost.
        let of_start = |end| loss.ranges.iter().all(|range| range.last.is_before(end));
        if !self.start_end.is_some_and(of_start) {
            self.losses.add(loss.newly_lost);
        }
        if let Phase::Start(start) = self.phase
            && self.losses.is_too_much_of_all(path, path.now < self.overtaken_until)
        {
            match start.on_loss(path).map(PacketRate::packets_per_second) {
                Some(capacity) => self.settle(capacity, true, path, control),
                None if self.forgiven < FIRST_FLIGHT => self.forgiven += 1,
                None => self.settle(cwnd(control) / loop_time(path), true, path, control),
            }
        }
        // A report may lower rate and window, never raise them (attack B6).
        control.send_period = longer(control.send_period, before.send_period);
        set_cwnd(path, control, cwnd(control).min(cwnd(&before)));
    }

    fn on_recovered(&mut self, path: &Path, spurious: bool, _control: &mut Control) {
        self.losses.on_recovered(spurious);
        if spurious {
            if path.now >= self.overtaken_until {
                self.free_since = None;
                self.queue.restart_above(0.0);
            }
            self.overtaken_until = path.now + MEMORY;
        }
    }

    fn on_timeout(&mut self, path: &Path, _timeout: &TimeoutEvent, control: &mut Control) {
        if let Phase::Start(start) = self.phase
            && !path.application_limited
            && let Some(capacity) = start.on_loss(path)
        {
            self.settle(capacity.packets_per_second(), true, path, control);
        }
    }

    fn on_received(&mut self, path: &Path, received: &ReceivedEvent, control: &mut Control) {
        if let Some(interval) = self.receiver.on_received(path.now, received.packets) {
            control.ack_interval = Some(interval);
        }
    }

    fn wants_packets(&self) -> bool {
        true
    }
}

impl Drain {
    fn new(depth: f64, before: f64, path: &Path) -> Self {
        Self { since: path.now, depth, before, least: f64::INFINITY, most: 0.0, ..Self::default() }
    }
}

impl Largest {
    fn take(&mut self, now: Instant, value: f64) {
        if now - self.since > MEMORY {
            (self.since, self.before, self.now) = (now, self.now, 0.0);
        }
        self.now = self.now.max(value);
    }

    fn get(&self) -> f64 {
        self.now.max(self.before)
    }
}

/// The receiving half: how many packets come per acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
struct AckFrequency {
    since: Instant,
    packets: u32,
}

impl AckFrequency {
    /// Packets per acknowledgement, once ten SYN intervals have shown their rate.
    fn on_received(&mut self, now: Instant, packets: u32) -> Option<u32> {
        self.packets = self.packets.saturating_add(packets);
        let elapsed = now - self.since;
        if elapsed <= SYN_INTERVAL * 10 {
            return None;
        }
        let intervals = elapsed.div_duration_f64(SYN_INTERVAL);
        let interval = f64::from(self.packets) / intervals / ACKS_PER_SYN;
        *self = Self { since: now, packets: 0 };
        // UDT's own is 64.
        Some(interval.clamp(1.0, 64.0) as u32)
    }
}

/// Time in which a change of the rate comes back as a measurement, s.
fn loop_time(path: &Path) -> f64 {
    path.rtt.saturating_add(SYN_INTERVAL).as_secs_f64()
}

/// The lowest rate.
fn slowest(path: &Path) -> f64 {
    MIN_PER_ROUND / loop_time(path).max(TAU)
}

#[cfg(test)]
mod tests;
