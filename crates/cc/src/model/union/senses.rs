//! What the law perceives: the standing queue, what arrives, and the link.
//!
//! ```text
//! base     the least RTT of 10 to 20 s
//! delay    RTT − base, and no more than the forward delay, RTT − the return delay by both clocks, exceeds its own least; without what the path
//!          itself delays
//! q        the least delay of the last two SYN intervals
//! j        the mean difference of consecutive delays: j ← j + (|delay − delay before| − j)/16
//! rises    q > q*;   falls  the present interval < q*/2
//! P        the largest delay since it rose that two intervals in a row reached
//! ```
//!
//! The least of an interval leaves out packets that a host delayed.

use farhaul_units::{Duration, Instant, PacketRate};

use super::constants::{BEYOND, MEMORY, loop_time};
use crate::controller::{DeliveryEvent, Path};
use crate::rate::syn::SYN_INTERVAL;

/// The extreme value of the last one to two spans of time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extreme {
    since: Instant,
    before: f64,
    now: f64,
    /// The value of a span without any.
    none: f64,
    pick: fn(f64, f64) -> f64,
}

impl Extreme {
    pub(super) const fn least() -> Self {
        Self { since: Instant::ZERO, before: f64::INFINITY, now: f64::INFINITY, none: f64::INFINITY, pick: f64::min }
    }

    pub(super) const fn most() -> Self {
        Self { since: Instant::ZERO, before: 0.0, now: 0.0, none: 0.0, pick: f64::max }
    }

    pub(super) fn take(&mut self, now: Instant, span: Duration, value: f64) {
        if now - self.since > span {
            (self.since, self.before, self.now) = (now, self.now, self.none);
        }
        self.now = (self.pick)(self.now, value);
    }

    pub(super) fn get(&self) -> f64 {
        (self.pick)(self.now, self.before)
    }
}

/// Largest credible capacity by probe pairs, packets/s: closer pairs were together in a host's buffer.
const MAX_PAIR_RATE: f64 = 5e5;
/// Weight of a sample in j. Source: RFC 3550 §6.4.1, interarrival jitter.
const JITTER_WEIGHT: f64 = 1.0 / 16.0;

/// The standing queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queue {
    base: Extreme,
    /// The least forward delay, up to a constant, s.
    there: Extreme,
    /// By how much the path itself delays, whatever this flow sends, s.
    of_path: Extreme,
    /// The last delay, and j, s.
    latest: Option<f64>,
    jitter: f64,
    began: Instant,
    /// Least and largest delay of the present interval and of the one before, s.
    least: f64,
    least_before: f64,
    most: f64,
    most_before: f64,
    peak: f64,
    stands: bool,
}

impl Queue {
    pub(super) const fn new() -> Self {
        Self {
            base: Extreme::least(),
            there: Extreme::least(),
            of_path: Extreme::most(),
            latest: None,
            jitter: 0.0,
            began: Instant::ZERO,
            least: f64::INFINITY,
            least_before: f64::INFINITY,
            most: 0.0,
            most_before: 0.0,
            peak: 0.0,
            stands: false,
        }
    }

    /// Takes in an RTT. The news of it took `return_delay` seconds, up to a constant.
    pub(super) fn take(&mut self, rtt: Duration, return_delay: Option<f64>, path: &Path) {
        let rtt = rtt.as_secs_f64();
        self.base.take(path.now, MEMORY, rtt);
        let mut delay = (rtt - self.base.get()).max(0.0);
        if let Some(back) = return_delay {
            // Clocks that drift apart, or a peer that lies, cannot show more queue than the RTT has.
            let there = rtt - back;
            self.there.take(path.now, MEMORY, there);
            delay = delay.min(there - self.there.get());
        }
        if let Some(before) = self.latest.replace(delay) {
            self.jitter += ((delay - before).abs() - self.jitter) * JITTER_WEIGHT;
        }
        self.of_path.take(path.now, MEMORY, 0.0);
        delay = (delay - self.of_path.get()).max(0.0);
        if path.now - self.began > SYN_INTERVAL && self.least.is_finite() {
            self.peak = self.peak.max(self.most.min(self.most_before));
            (self.least_before, self.most_before) = (self.least, self.most);
            (self.least, self.most, self.began) = (f64::INFINITY, 0.0, path.now);
        }
        self.least = self.least.min(delay);
        self.most = self.most.max(delay);
    }

    /// Compares q with `threshold`, q*. Returns whether a queue has just gone.
    pub(super) fn watch(&mut self, threshold: f64) -> bool {
        if !self.stands && self.delay() > threshold {
            (self.stands, self.peak) = (true, 0.0);
        }
        let falls = self.stands && self.least.min(self.least_before) < threshold / 2.0;
        self.stands &= !falls;
        falls
    }

    /// The delay that stands is no queue.
    pub(super) fn take_for_path(&mut self, now: Instant) {
        self.of_path.take(now, MEMORY, self.of_path.get() + self.delay());
        (self.least, self.least_before, self.most, self.most_before, self.stands) = (0.0, 0.0, 0.0, 0.0, false);
    }

    /// q, s; zero before two intervals.
    pub(super) fn delay(&self) -> f64 {
        let delay = self.least.min(self.least_before);
        if self.least_before.is_finite() && delay.is_finite() { delay } else { 0.0 }
    }

    /// j, s: packets that follow each other differ by jitter, and hardly by a queue.
    pub(super) const fn jitter(&self) -> f64 {
        self.jitter
    }

    /// P, s.
    pub(super) fn peak(&self) -> f64 {
        self.peak.max(self.most.min(self.most_before))
    }

    pub(super) const fn stands(&self) -> bool {
        self.stands
    }

    /// The RTT without a queue, s; `None` before a sample.
    pub(super) fn base(&self) -> Option<f64> {
        Some(self.base.get() + self.of_path.get()).filter(|base| base.is_finite())
    }
}

/// Packets of a count: one more or less is below the share by which rates may differ and agree.
pub(super) const COUNT: f64 = 16.0;

/// Arrivals by count. The transport has no samples of a pace below one packet per RTT: no two packets are in flight together.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Count {
    since: Option<Instant>,
    packets: f64,
}

impl Count {
    /// D by the packets since the last count, packets/s, if the transport has no sample for as long.
    pub(super) fn take(&mut self, path: &Path, delivery: &DeliveryEvent) -> Option<f64> {
        let is_sampled = delivery.sample.is_some_and(|sample| sample.rate.is_some());
        if is_sampled || path.application_limited || path.sampling_application {
            *self = Self::default();
            return None;
        }
        let since = *self.since.get_or_insert(path.now);
        if since < path.now {
            self.packets += delivery.newly_delivered;
        }
        let elapsed = path.now - since;
        let rate = self.packets / elapsed.as_secs_f64();
        let is_whole = self.packets >= COUNT && elapsed >= path.rtt;
        is_whole.then(|| {
            *self = Self { since: Some(path.now), packets: 0.0 };
            rate
        })
    }
}

/// What was sent and delivered per loop, by count: a sample is of a burst where loops are short, and D̂ of the burst that a bucket let
/// pass.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Delivered {
    since: Instant,
    /// Packets delivered so far, those until the loop began, and the rate of the last whole loop, packets/s.
    total: f64,
    before: f64,
    rate: f64,
    /// Packets sent until the loop began, and the rates of the last whole loop and the one before, packets/s.
    sent: u64,
    sent_rates: [f64; 2],
    /// The rates at which growth sent at first, and at which that arrived.
    grown: Option<(f64, f64)>,
}

/// Growth that has failed, packets/s.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grown {
    /// The rates at which it sent at first, and at which that arrived.
    before: f64,
    arrived: f64,
    /// The rate at which it sent at last.
    sent: f64,
}

impl Grown {
    /// Whether most of what it sent in addition has not arrived in addition, now that `delivered` has. Of a flow among many, most would
    /// have, at the cost of others.
    pub(super) fn was_in_vain(&self, delivered: f64) -> bool {
        let more = self.sent - self.before;
        more > self.before * BEYOND && delivered - self.arrived < more / 2.0
    }
}

impl Delivered {
    pub(super) const fn take(&mut self, delivery: &DeliveryEvent) {
        self.total = delivery.delivered;
    }

    /// Ends a loop of `span` if it is over. The rate grows since `grows_since`, if it does.
    pub(super) fn step(&mut self, path: &Path, span: Duration, grows_since: Option<Instant>) {
        let is_first = self.since == Instant::ZERO;
        let elapsed = path.now - self.since;
        if is_first {
            (self.since, self.before, self.sent) = (path.now, self.total, path.packets_sent);
        }
        if is_first || elapsed < span {
            return;
        }
        let seconds = elapsed.as_secs_f64();
        self.rate = self.since(self.before) / seconds;
        self.sent_rates = [path.packets_sent.saturating_sub(self.sent) as f64 / seconds, self.sent_rates[0]];
        // What arrived in this loop left in the one before, which is to be of the growth as well.
        let is_whole = grows_since.is_some_and(|begin| begin + elapsed <= self.since);
        if is_whole {
            self.grown.get_or_insert((self.sent_rates[1], self.rate));
        } else {
            self.grown = None;
        }
        (self.since, self.before, self.sent) = (path.now, self.total, path.packets_sent);
    }

    /// What growth has sent so far.
    pub(super) fn grown(&self, path: &Path) -> Option<Grown> {
        let (before, arrived) = self.grown?;
        // Of a loop that has begun only now, little is known.
        let elapsed = (path.now - self.since).as_secs_f64();
        let of_this = path.packets_sent.saturating_sub(self.sent) as f64 / elapsed;
        let sent = if elapsed > loop_time(path) / 2.0 { of_this } else { self.sent_rates[0] };
        Some(Grown { before, arrived, sent })
    }

    /// The larger rate at which the last two whole loops sent, packets/s. Losses are of what left a loop ago. Zero in the first loop:
    /// start-up's losses tell nothing of a rate.
    pub(super) const fn sent(&self) -> f64 {
        self.sent_rates[0].max(self.sent_rates[1])
    }

    /// Packets so far.
    pub(super) const fn total(&self) -> f64 {
        self.total
    }

    /// Packets since there were `before`.
    pub(super) const fn since(&self, before: f64) -> f64 {
        self.total - before
    }

    /// Of the last whole loop, packets/s.
    pub(super) const fn rate(&self) -> f64 {
        self.rate
    }
}

/// L, packets/s; zero while unknown.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Link {
    /// By start-up's trains, and by probe pairs since it was lowered.
    trains: f64,
    pairs: f64,
    /// The rate that the path delivered when it refuted what pairs showed.
    refuted: f64,
    /// Only an earlier connection has found it.
    recalled: bool,
    /// A host merges pairs, and no trains have shown the capacity.
    merged: bool,
}

impl Link {
    pub(super) const fn get(&self) -> f64 {
        self.trains.max(self.pairs)
    }

    /// Takes in the capacity that the receiver measured by probe pairs or trains, if it did.
    pub(super) fn take_pairs(&mut self, path: &Path, arrived: f64) {
        let capacity = path.capacity.map_or(0.0, PacketRate::packets_per_second);
        self.merged = capacity >= MAX_PAIR_RATE;
        let is_refuted = arrived < 2.0 * self.refuted;
        self.pairs = if self.merged || is_refuted { 0.0 } else { self.pairs.max(capacity) };
    }

    /// Whether a host merges probe pairs, so that only longer trains show the capacity.
    pub(super) const fn needs_trains(&self) -> bool {
        self.merged
    }

    /// Trains have found `capacity`.
    pub(super) const fn set_trains(&mut self, capacity: f64) {
        (self.trains, self.recalled) = (capacity, false);
    }

    /// An earlier connection has found `capacity`.
    pub(super) const fn recall(&mut self, capacity: f64) {
        (self.trains, self.recalled) = (capacity, true);
    }

    /// Whether nothing of this connection has shown more.
    pub(super) fn is_recalled(&self) -> bool {
        self.recalled && self.trains >= self.pairs
    }

    /// The link has its limit at `rate`. Pairs before do not count any more.
    pub(super) const fn lower(&mut self, rate: f64) {
        (self.trains, self.pairs, self.recalled) = (rate, 0.0, false);
    }

    /// Packets that follow each other come faster than the path lets pass for long, which is `rate`.
    pub(super) const fn refute(&mut self, rate: f64) {
        self.refuted = rate;
        self.lower(rate);
    }
}

/// D, packets/s: the sample of this delivery.
pub(super) fn arrives(delivery: &DeliveryEvent) -> Option<f64> {
    let sample = delivery.sample.filter(|sample| !sample.application_limited)?;
    sample.rate.map(|rate| rate.packets_per_second())
}
