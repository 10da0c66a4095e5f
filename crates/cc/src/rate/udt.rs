//! UDT as Farhaul runs it by default: the native law (`udt_native.rs`, paper:udt-2007) with a start-up that measures, a
//! window that follows the rate, and a different view of loss.
//!
//! ```text
//! start-up         see start.rs, and search.rs for what it did not see
//! per SYN          while no queue stands, the path is not full: the rate grows, see growth.rs; below 0.9·G it
//!                    doubles per round trip up to that, as long as it is less than 2·D                       (1)
//!                  while one is new: the rate falls to 0.99·max(D/(1 − p), min(G, 1.02·F)) if that is less,
//!                    before it overflows                                                                    (2)
//!                  when one has stood for a round trip, D is the bottleneck's; then, and each round trip after,
//!                    the rate falls to D and a lead, or less to drain it, see growth.rs                      (3)
//!                  while one stands it grows up to the same
//! per NAK          congestion (see loss_cause.rs): as the native law (daimd.rs), but no further than two
//!                    cuts below what gets through, nor than 4 packets per round trip; otherwise nothing      (4)
//! full             F ← C after start-up, ← D at (3), ← what gets through at (4): around F growth is careful,
//!                    see growth.rs                                                                         (5)
//! link known       G and F return to what they were before losses that are the link's (loss_cause.rs)       (6)
//! window           W = 4·max(1/P, D)·(RTT + SYN) + 16, a bound for outages and not for the rate; at most
//!                    2·max(1/P, D)·(least RTT) + 28 MiB, for what is under way lies in memory on both sides
//! late hosts       make up for it at 1.1/P
//! near paths       see near.rs
//! ```
//!
//! | here | unit |
//! | --- | --- |
//! | `P` the period | s |
//! | `C` the capacity of the trains, or the largest D since that was also sent, or what the window of a near path got through at best; `G` the largest D since the last congestion; `F` what arrived when the path was last full | packets/s |
//! | `D` the arrival speed that the receiver reports | packets/s |
//! | `W` the window | packets |
//! | `p` what the link itself loses, as far as that is known (loss_cause/background.rs) | |
//!
//! While the application is the limit, D says nothing about the path: nothing is lowered to it.
//! What gets through is D as far as the path has carried as much, G, but no less than acknowledgements show.
//!
//! What was done about losses that turn out to be none is undone (D25). Where packets overtake each other, so do
//! acknowledgements, and the round trip shows queues that are none: (2) and (5) are for other paths.
//!
//! Departures: D20 to D25, D27, D28.

use farhaul_units::{Duration, Instant, PacketRate, SendPeriod};

use super::daimd::{DECREASE, Daimd, Verdict, bounded, longer, shorter};
use super::flow_control::{cwnd, measured_rate, set_cwnd};
use super::growth::{Belief, Growth};
use super::loss_cause::{Fits, LossCause, QueueOf};
use super::near::Near;
use super::search::Search;
use super::standing_queue::{Queue, QueueWatch};
use super::start::Start;
use super::syn::{SYN_INTERVAL, SynClock};
use crate::{AckEvent, Control, Controller, LossEvent, Path, TimeoutEvent};

/// Below this share of what the path has carried since the last congestion, the rate returns fast, (1).
const RETURN_SHARE: f64 = 0.9;
/// How far it leads what arrives meanwhile.
const RETURN_LEAD: f64 = 2.0;
/// What is left of a rate that has made a queue, (2): the queue drains slowly. A queue of a ninth of the path overflowed in the
/// round trip that it takes to be certain of it.
const NEW_QUEUE: f64 = 0.99;
/// How far beyond F what the path has carried is believed, (2): G is the largest of many samples, and some are of a host that
/// made up for being late.
const FULL_MARGIN: f64 = 1.02;
/// The window over what the rate fills. Acknowledgements are cumulative: a lost packet holds them back for the round trip
/// of its repair, and if the repair is lost for two more; all that time the rate goes on (departure D22).
const WINDOW_GAIN: f64 = 4.0;
/// Bytes that may be under way over twice what fills the path when its queues are empty: with a backlog of 2 MiB behind
/// them a connection stays below the promised 2·BDP + 32 MiB. Costs one percent at 1 Gbit/s, 100 ms and a loss of 1e-3.
const WINDOW_ROOM: f64 = 28.0 * 1024.0 * 1024.0;
/// Packets on top of that. Source: UDT4's W = R·(RTT + SYN) + 16.
const WINDOW_HEADROOM: f64 = 16.0;
/// Packets per round trip that no congestion takes away: a path that loses as many at this rate as at any other is not
/// congested but bad. Source: TCP's smallest window after a loss is two (RFC 5681); delayed acknowledgements double it.
const MIN_PER_ROUND: f64 = 4.0;
/// How far cuts go below what gets through, (4): the first of two lets the queue drain, the second makes room for others.
/// With one alone a flow beside libudt, which cuts up to five times, kept two thirds of the link.
const DEEPEST: f64 = DECREASE * DECREASE;
/// Packets that may be lost before any measurement without ending start-up: they say nothing about the path's rate.
const FIRST_FLIGHT: f64 = 64.0;
/// SYN intervals that one acknowledgement may make up for, where acknowledgements are rarer than that (departure D26).
const MAX_INTERVALS: f64 = 10.0;
/// How much faster than the period lateness is made up for: a path that is nine tenths full has no queue of it. All at once left
/// 595 of 1000 Mbit/s on a path of 1 ms with a queue of 84 packets, a tenth faster leaves 725 to 790 (emulated; departure D27).
const CATCH_UP_PACE: f64 = 1.1;
/// How many times faster than it was sent what is sent steadily may arrive. A receiver that stood still for 20 ms finds in one burst
/// what came meanwhile, and reports several times the rate: with twice, for a quarter of a second that hid from a flow alone that it
/// filled the queue (A14 to Canarie, emulated: 577 to 579 of 580 Mbit/s; departure D28).
const STEADY_ARRIVAL: f64 = 1.25;
/// Round trips and SYN intervals after start-up in which its queue drains and what is lost beside it is reported, (4).
const START_QUEUE_ROUNDS: u32 = 3;
const START_QUEUE_SYNS: u32 = 10;
/// How long a path is taken for one where packets overtake each other, since they last did: as long as a least round trip is
/// remembered. Receivers that have seen it wait before they report, and forget it after 16 to 32 round trips: so for twice as long.
const OVERTAKEN_STAYS: Duration = Duration::from_secs(20);
const OVERTAKEN_ROUNDS: u32 = 64;
/// First rate after start-up, as a share of the measured capacity: the queue of start-up drains.
const DRAIN: f64 = 0.98;

/// The default controller, `udt`.
#[derive(Clone, Debug)]
pub(crate) struct Udt {
    clock: SynClock,
    /// When the last SYN interval was taken in.
    last_syn: Instant,
    phase: Phase,
    near: Near,
    /// After start-up, its estimator and until when it goes on: the longest trains are still under way.
    refining: Option<(Start, Instant)>,
    search: Search,
    daimd: Daimd,
    loss_cause: LossCause,
    queue: QueueWatch,
    /// The capacity of the path as far as it is known.
    capacity: Option<PacketRate>,
    belief: Belief,
    /// What the path has carried since the last congestion.
    carried: f64,
    /// What arrived when the path was last full, (5).
    full: f64,
    /// The most that arrived since the queue that stands was first proven; zero while none is.
    stood: f64,
    /// Until when the queue of start-up drains.
    start_queue_ends: Instant,
    /// Until when packets are taken to overtake each other.
    overtaken_until: Instant,
    /// When the last congestion was reported.
    congested: Instant,
    /// Packets lost before anything was measured.
    forgiven: f64,
    /// The law and what it had set before the losses that are being repaired, in case none of them was one.
    before_losses: Option<Box<(Self, Control)>>,
}

/// What governs.
#[derive(Clone, Debug)]
enum Phase {
    /// The window grows and measures.
    Start(Start),
    /// The rate follows the law.
    Steady,
    /// The path is so short that the window governs alone.
    Near,
}

impl Udt {
    /// The law of a new connection; all its randomness follows from `seed`.
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            clock: SynClock::default(),
            last_syn: Instant::ZERO,
            phase: Phase::Start(Start::default()),
            near: Near::default(),
            refining: None,
            search: Search::default(),
            daimd: Daimd::new(seed),
            loss_cause: LossCause::default(),
            queue: QueueWatch::default(),
            capacity: None,
            belief: Belief::default(),
            carried: 0.0,
            full: f64::INFINITY,
            stood: 0.0,
            start_queue_ends: Instant::ZERO,
            overtaken_until: Instant::ZERO,
            congested: Instant::ZERO,
            forgiven: 0.0,
            before_losses: None,
        }
    }

    /// Changes between near and far as the path turns out to be.
    fn place(&mut self, path: &Path, control: &mut Control) {
        match (self.near.holds(path), &self.phase) {
            (true, Phase::Start(_) | Phase::Steady) => self.phase = Phase::Near,
            // Beside others a start-up would measure their queue; what arrives is the share to go on with. What the path has
            // carried before says how small that is.
            (false, Phase::Near) => match measured_rate(path).filter(|_| self.near.is_crowded()) {
                Some(share) => {
                    let before = self.capacity;
                    self.phase = Phase::Steady;
                    self.search = Search::default();
                    self.adopt(share, path, control);
                    self.capacity = faster(self.capacity, before);
                }
                None => self.phase = Phase::Start(Start::default()),
            },
            _ => {}
        }
    }

    /// Start-up is over; the path carries `capacity`.
    fn settle(&mut self, capacity: PacketRate, path: &Path, control: &mut Control) {
        if let Phase::Start(start) = std::mem::replace(&mut self.phase, Phase::Steady) {
            self.search = Search::begin(path);
            if start.capacity().is_some() {
                self.full = capacity.packets_per_second();
                let drains =
                    path.rtt.saturating_mul(START_QUEUE_ROUNDS).saturating_add(SYN_INTERVAL * START_QUEUE_SYNS);
                self.start_queue_ends = path.now + drains;
            }
            self.refining = Some((start, path.now + path.rtt));
        }
        self.adopt(capacity, path, control);
    }

    fn adopt(&mut self, capacity: PacketRate, path: &Path, control: &mut Control) {
        self.last_syn = path.now;
        self.capacity = Some(capacity);
        self.carried = capacity.packets_per_second();
        control.send_period = shorter(bounded(1e6 / (capacity.packets_per_second() * DRAIN)), slowest(path));
        follow_rate(path, control);
    }

    /// The capacity, if a train that was sent during start-up has just shown it better.
    fn refine(&mut self, path: &Path, ack: &AckEvent) -> Option<PacketRate> {
        self.refining = self.refining.take().filter(|(_, end)| path.now < *end);
        self.refining.as_mut().and_then(|(start, _)| start.refine(ack))
    }

    /// One SYN interval of steady state.
    fn on_syn(&mut self, path: &Path, control: &mut Control) {
        let arrives = measured_rate(path).map(PacketRate::packets_per_second);
        let rate = 1e6 / control.send_period.as_micros();
        // No more lasts than is sent: a receiver that stood still sees the rest in one burst.
        let lasts = arrives.unwrap_or(0.0).min(rate);
        // What arrives in the round trips after a congestion had been sent before it.
        if path.now - self.congested > path.rtt.saturating_mul(2).saturating_add(SYN_INTERVAL * 10) {
            self.carried = self.carried.max(lasts);
        }
        if self.capacity.is_some() {
            self.capacity = faster(self.capacity, Some(PacketRate::new(lasts)));
        }
        if let Some(Fits { carried, full }) = self.loss_cause.taken_back(path) {
            (self.carried, self.full) = (self.carried.max(carried), full);
        }
        let intervals = (path.now - self.last_syn).as_secs_f64() / SYN_INTERVAL.as_secs_f64();
        let intervals = intervals.clamp(1.0, MAX_INTERVALS);
        self.last_syn = path.now;
        let overtaken = path.now < self.overtaken_until;
        let full = if overtaken { f64::INFINITY } else { self.full };
        // What the link loses would have arrived.
        let offered = arrives.map(|arrives| arrives / (1.0 - self.loss_cause.link_loss()));
        let queue = self.queue.on_syn(path);
        self.belief.set_beside_others(self.queue.is_kept_by_others(path));
        let growth = Growth::of(rate, self.capacity, self.belief, path).around(full).at_least(self.search.growth(path));
        if matches!(queue, Queue::None | Queue::New) {
            self.stood = 0.0;
        }
        let growth = match queue {
            Queue::None
                if rate < self.carried * RETURN_SHARE
                    && arrives.is_none_or(|arrives| rate <= arrives * RETURN_LEAD) =>
            {
                let round_trip = path.rtt.max(SYN_INTERVAL).as_secs_f64();
                let doubling = rate * (SYN_INTERVAL.as_secs_f64() / round_trip) * intervals;
                doubling.min(self.carried * RETURN_SHARE - rate) * SYN_INTERVAL.as_secs_f64()
            }
            Queue::None => growth.unseen(path, offered) * intervals,
            Queue::New => {
                if let Some(offered) = offered.filter(|_| !overtaken && !path.application_limited) {
                    let held = self.carried.min(self.full * FULL_MARGIN);
                    lower_to(offered.max(held) * NEW_QUEUE, path, control);
                }
                0.0
            }
            Queue::Proven => {
                self.search.on_queue();
                if let Some(arrives) = arrives.filter(|_| !path.application_limited) {
                    self.belief.on_queue(arrives);
                    self.full = arrives;
                    self.stood = self.stood.max(lasts);
                    lower_to(growth.standing_most(path, arrives, self.stood), path, control);
                }
                0.0
            }
            Queue::Standing => growth.standing(path, arrives, self.stood),
        };
        control.send_period = self.daimd.grow(control.send_period, path, growth);
        follow_rate(path, control);
    }
}

impl Controller for Udt {
    fn name(&self) -> &str {
        "udt"
    }

    fn on_connect(&mut self, _path: &Path, control: &mut Control) {
        control.catch_up_pace = Some(CATCH_UP_PACE);
    }

    fn on_ack(&mut self, path: &Path, ack: &AckEvent, control: &mut Control) {
        self.daimd.on_progress(ack.seq);
        self.place(path, control);
        match &mut self.phase {
            Phase::Near => {
                self.near.on_ack(path, ack, control);
                self.capacity = faster(self.capacity, path.delivery_rate);
            }
            Phase::Start(start) => {
                if let Some(capacity) = start.on_ack(path, ack, control) {
                    self.settle(capacity, path, control);
                }
            }
            Phase::Steady => {
                if let Some(capacity) = self.refine(path, ack) {
                    self.full = capacity.packets_per_second();
                    self.adopt(capacity, path, control);
                } else if !ack.light && self.clock.tick(path.now) {
                    self.on_syn(path, control);
                }
            }
        }
        control.arrival_bound = matches!(self.phase, Phase::Steady).then_some(STEADY_ARRIVAL);
    }

    fn on_loss(&mut self, path: &Path, loss: &LossEvent<'_>, control: &mut Control) {
        let Some(first) = loss.ranges.first().filter(|_| loss.newly_lost > 0) else { return };
        if self.before_losses.is_none() {
            self.before_losses = Some(Box::new((self.clone(), *control)));
        }
        if let Phase::Near = self.phase {
            self.near.on_loss(path, control);
            return;
        }
        let queue_of = if path.now < self.start_queue_ends { QueueOf::Start } else { QueueOf::Anybody };
        let fits = match self.phase {
            Phase::Steady => Some(Fits { carried: self.carried, full: self.full }),
            Phase::Start(_) | Phase::Near => None,
        };
        if !self.loss_cause.is_congestion(path, loss.newly_lost, queue_of, fits) {
            return;
        }
        // A report may lower the window, never raise it (attack B6).
        let before = cwnd(control);
        self.refining = None;
        if let Phase::Start(start) = &self.phase {
            match start.on_loss(path) {
                Some(capacity) => self.settle(capacity, path, control),
                // Nothing has been measured yet: libudt loses the first packets after its own connect.
                None if self.forgiven < FIRST_FLIGHT => self.forgiven += f64::from(loss.newly_lost),
                None => self.settle(window_rate(path, before), path, control),
            }
        } else {
            let through = gets_through(path, self.carried);
            let verdict = self.daimd.on_nak(first.first, loss.largest_sent, control.send_period);
            if verdict == Verdict::NewEvent {
                self.search.on_congestion(path);
            }
            if verdict != Verdict::Spared {
                control.send_period = cut(control.send_period, path, through);
            }
            if let (Verdict::NewEvent, Some(through), Some(share)) = (verdict, through, share(path))
                && !path.application_limited
            {
                self.belief.on_queue(share.packets_per_second());
                self.full = through;
                if self.loss_cause.is_crowded(path) {
                    self.belief.on_crowd();
                }
            }
            self.congested = path.now;
            self.carried = self.carried.min(1e6 / control.send_period.as_micros());
            follow_rate(path, control);
        }
        set_cwnd(path, control, cwnd(control).min(before));
    }

    fn on_recovered(&mut self, path: &Path, spurious: bool, control: &mut Control) {
        if let Some((law, was)) = self.before_losses.take().map(|before| *before).filter(|_| spurious) {
            (*self, *control) = (law, was);
            self.overtaken_until = path.now + OVERTAKEN_STAYS.max(path.rtt.saturating_mul(OVERTAKEN_ROUNDS));
        }
    }

    fn on_timeout(&mut self, path: &Path, _timeout: &TimeoutEvent, control: &mut Control) {
        if let Phase::Start(start) = &self.phase
            && !path.application_limited
            && let Some(capacity) = start.on_loss(path)
        {
            self.settle(capacity, path, control);
        }
    }
}

/// The rate at which a window of `cwnd` packets leaves once per round trip; nothing better has been measured.
fn window_rate(path: &Path, cwnd: f64) -> PacketRate {
    PacketRate::new(cwnd / (path.rtt + SYN_INTERVAL).as_secs_f64())
}

/// The period after a cut, while `through` packets/s get through, (4).
fn cut(period: SendPeriod, path: &Path, through: Option<f64>) -> SendPeriod {
    let cut = bounded(period.as_micros() * DECREASE);
    let draining = through.map_or(cut, |through| bounded(1e6 / through * DEEPEST));
    shorter(cut, longer(period, shorter(draining, slowest(path))))
}

/// A rate of at most `rate` packets/s, which is not to be so slow that nothing comes back.
fn lower_to(rate: f64, path: &Path, control: &mut Control) {
    let fitting = shorter(bounded(1e6 / rate), slowest(path));
    control.send_period = longer(control.send_period, fitting);
}

/// The larger of two rates, as far as they are known.
fn faster(one: Option<PacketRate>, other: Option<PacketRate>) -> Option<PacketRate> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if other > one { other } else { one }),
        (one, other) => one.or(other),
    }
}

/// What surely gets through of this flow: the smaller of what the receiver sees arrive and what acknowledgements show. libudt
/// takes the median gap between packets, which in bursts is the link's and not the flow's.
fn share(path: &Path) -> Option<PacketRate> {
    match (measured_rate(path), path.delivery_rate) {
        (Some(arrives), Some(delivered)) if delivered < arrives && delivered > PacketRate::default() => Some(delivered),
        (arrives, delivered) => arrives.or(delivered),
    }
}

/// What gets through of this flow, packets/s, (4) and (5): what arrives, as far as the path has carried as much. Acknowledgements
/// show too little while losses are repaired: with F so low growth was no longer careful, and some 600 packets were lost once a
/// second (A14 over 110 ms, emulated), and cuts went to a third of the path.
fn gets_through(path: &Path, carried: f64) -> Option<f64> {
    let arrives = measured_rate(path).map_or(0.0, PacketRate::packets_per_second);
    share(path).map(|share| arrives.min(carried).max(share.packets_per_second()))
}

/// The longest period that anything but an unanswered path leads to.
fn slowest(path: &Path) -> SendPeriod {
    bounded(path.rtt.saturating_add(SYN_INTERVAL).as_secs_f64() * 1e6 / MIN_PER_ROUND)
}

/// Sets the window to what the rate fills, with room to spare.
fn follow_rate(path: &Path, control: &mut Control) {
    let sent = 1e6 / control.send_period.as_micros();
    let delivered = measured_rate(path).map_or(0.0, PacketRate::packets_per_second);
    let rate = PacketRate::new(sent.max(delivered));
    let filled = rate.packets_in(path.rtt + SYN_INTERVAL);
    let held = 2.0 * rate.packets_in(path.min_rtt.unwrap_or(path.rtt)) + WINDOW_ROOM / f64::from(path.mss.max(1));
    set_cwnd(path, control, (filled * WINDOW_GAIN).min(held) + WINDOW_HEADROOM);
}

#[cfg(test)]
mod tests;
