//! Random early detection (Floyd, Jacobson 1993; paper:floyd-1993). Drops packets at random, with a probability that
//! grows with the average queue length, so that senders slow down before the queue is full.
//!
//! ```text
//! an arrival while the link is busy     avg ← (1 − w)·avg + w·q                            (1)
//! the first one after it was idle       m = idle/s,  avg ← (1 − w)^m·avg                   (2)
//! min ≤ avg < max                       pb = maxp·(avg − min)/(max − min)                  (3)
//!                                       pa = pb/(1 − count·pb),  drop with probability pa  (4)
//! max ≤ avg                             drop
//! with `gentle`, max ≤ avg < 2·max      pb = maxp + (1 − maxp)·(avg − max)/max, then (4)   (5)
//! with `in_bytes`                       q = bytes/S;  pb ← pb·length/S                     (6)
//! ```
//!
//! (4) makes the number of packets from one drop to the next uniform instead of geometric: no runs, no long pauses. In
//! figure 2 of the paper, and in ns-2, that number lies in 1..1/pb.
//!
//! | paper | here | unit |
//! | --- | --- | --- |
//! | avg | `average` | packets |
//! | q | waiting packets, without the one in transmission | packets |
//! | w_q | `RedSpec::weight` | |
//! | min_th, max_th | `RedSpec::{min, max}` | packets |
//! | max_p | `RedSpec::max_probability` | |
//! | count | `count` | packets since the last drop, −1 while avg is below min |
//! | s | `packet_time` | transmission time of `RedSpec::packet_size` bytes |
//! | q_time | `idle_since` | |
//!
//! Choices where the paper leaves one: packets are dropped, never marked. The queue counts as empty when the link has
//! nothing to send, as in ns-2. A packet that arrives at a full queue is dropped and counts as a drop for (4). `gentle`
//! is Floyd's recommendation of 2000 (the note "Recommendation on using the gentle_ variant of RED").

use farhaul_units::{Instant, Rate, Rng};

use super::backlog::{Backlog, FULL_PACKET, Limit, Queue, QueueTallies, room_taken};
use crate::packet::WireLen;

/// min_th: sufficient for the bursts of a few senders by the paper's analysis, and the default of ns-2.
const MIN: f64 = 5.0;
/// max_th as a multiple of min_th, which leaves the average room between them (paper:floyd-2001 §4.2, ns-2).
const MAX_OF_MIN: f64 = 3.0;
/// max_p: one packet in ten when the average reaches max_th (Floyd's later recommendation; the paper has 0.02).
const MAX_PROBABILITY: f64 = 0.1;
/// w_q: the average follows within about 500 packets. paper:floyd-1993 §6 asks for at least 0.001 and simulates 0.002.
const WEIGHT: f64 = 0.002;
/// The mean queueing delay at which automatic thresholds aim, in seconds (paper:floyd-2001 §4.2).
const TARGET_DELAY: f64 = 0.005;

const NANOS_PER_SECOND: f64 = 1e9;
const BITS_PER_BYTE: f64 = 8.0;

/// The parameters of [`Red`].
///
/// The default is min 5, max 15, weight 0.002, probability 0.1, counted in packets, not gentle. It suits some tens of
/// Mbit/s. For faster links use [`RedSpec::for_rate`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RedSpec {
    /// Below this average no packet is dropped. In packets.
    pub min: f64,
    /// From this average on every packet is dropped, unless `gentle`. In packets, above `min`.
    pub max: f64,
    /// The probability pb just below `max`, in 0..=1.
    pub max_probability: f64,
    /// The weight of one arrival in the average, in 0..=1.
    pub weight: f64,
    /// Whether the probability grows to one between `max` and twice `max`, instead of jumping to one at `max`.
    pub gentle: bool,
    /// Whether the queue is measured in bytes. A short packet is then dropped less often than a long one.
    pub in_bytes: bool,
    /// Length of a full packet, in bytes. With `in_bytes` it is the unit of averages and thresholds. It also converts
    /// idle time to packets.
    pub packet_size: u32,
}

impl Default for RedSpec {
    fn default() -> Self {
        Self {
            min: MIN,
            max: MIN * MAX_OF_MIN,
            max_probability: MAX_PROBABILITY,
            weight: WEIGHT,
            gentle: false,
            in_bytes: false,
            packet_size: FULL_PACKET,
        }
    }
}

impl RedSpec {
    /// Thresholds and weight for a link of `rate` that carries full packets (paper:floyd-2001 §4).
    ///
    /// They aim at an average queueing delay of about 5 ms, never below the default thresholds. The average follows
    /// within about a second. With the rate C in packets per second: min = max(5, C·5 ms/2), max = 3·min,
    /// w = 1 − e^(−1/C).
    pub fn for_rate(rate: Rate) -> Self {
        let packet_rate = rate.bits_per_second() as f64 / (BITS_PER_BYTE * f64::from(FULL_PACKET));
        let min = (packet_rate * TARGET_DELAY / 2.0).max(MIN);
        let weight = if packet_rate > 0.0 { -libm::expm1(-1.0 / packet_rate) } else { 1.0 };
        Self { min, max: min * MAX_OF_MIN, weight, ..Self::default() }
    }

    /// pb for an average of at least `min`: equations (3) and (5).
    fn base_probability(&self, average: f64) -> f64 {
        if average < self.max {
            self.max_probability * (average - self.min) / (self.max - self.min)
        } else if self.gentle {
            self.max_probability + (1.0 - self.max_probability) * (average - self.max) / self.max
        } else {
            1.0
        }
    }

    /// The average from which on every packet is dropped.
    fn end(&self) -> f64 {
        if self.gentle { 2.0 * self.max } else { self.max }
    }
}

/// pa: equation (4).
fn spread_probability(base: f64, count: i64) -> f64 {
    let left = 1.0 - count as f64 * base;
    if left <= base { 1.0 } else { base / left }
}

/// A queue with random early detection.
#[derive(Debug)]
pub struct Red<P> {
    spec: RedSpec,
    backlog: Backlog<P>,
    /// Nanoseconds.
    packet_time: f64,
    rng: Rng,
    average: f64,
    count: i64,
    /// Since when the link has nothing to send.
    idle_since: Option<Instant>,
}

impl<P: WireLen> Red<P> {
    /// Room for `limit` in front of a link of `rate`, with drops drawn from `rng`. Without a rate, an idle link resets
    /// the average to zero at once.
    pub fn new(spec: RedSpec, limit: Limit, rate: Option<Rate>, rng: Rng) -> Self {
        let bits = BITS_PER_BYTE * f64::from(spec.packet_size);
        let packet_time = rate.map_or(0.0, |rate| bits * NANOS_PER_SECOND / rate.bits_per_second() as f64);
        Self {
            spec,
            backlog: Backlog::new(limit),
            packet_time,
            rng,
            average: 0.0,
            count: -1,
            idle_since: Some(Instant::ZERO),
        }
    }

    /// q, in packets.
    fn length(&self) -> f64 {
        let waiting = self.backlog.tallies.waiting;
        if self.spec.in_bytes {
            waiting.bytes as f64 / f64::from(self.spec.packet_size.max(1))
        } else {
            waiting.packets as f64
        }
    }

    fn update_average(&mut self, now: Instant) {
        let kept = 1.0 - self.spec.weight;
        match self.idle_since.take() {
            //= paper:floyd-1993 §4, eq. (2) above
            Some(since) if self.packet_time > 0.0 => {
                let idle = (now.as_nanos() - since.as_nanos().min(now.as_nanos())) as f64;
                self.average *= libm::pow(kept, idle / self.packet_time);
            }
            Some(_) => self.average = 0.0,
            //= paper:floyd-1993 §4, eq. (1) above
            None => self.average = kept * self.average + self.spec.weight * self.length(),
        }
    }

    /// Whether to drop this packet by the average.
    fn drops_early(&mut self, bytes: u32) -> bool {
        if self.average < self.spec.min {
            self.count = -1;
            return false;
        }
        if self.average >= self.spec.end() {
            self.count = 0;
            return true;
        }
        self.count += 1;
        let mut base = self.spec.base_probability(self.average);
        if self.spec.in_bytes {
            base *= f64::from(bytes) / f64::from(self.spec.packet_size.max(1));
        }
        let drops = self.rng.chance(spread_probability(base, self.count));
        if drops {
            self.count = 0;
        }
        drops
    }
}

impl<P: WireLen> Queue<P> for Red<P> {
    fn enqueue(&mut self, now: Instant, packet: P) {
        self.update_average(now);
        if self.drops_early(room_taken(&packet)) {
            self.backlog.drop_early(packet);
        } else if self.backlog.has_room_for(&packet) {
            self.backlog.push(packet);
        } else {
            self.count = 0;
            self.backlog.drop(packet);
        }
    }

    fn dequeue(&mut self, now: Instant) -> Option<P> {
        let packet = self.backlog.pop();
        if packet.is_none() {
            self.idle_since.get_or_insert(now);
        }
        packet
    }

    fn tallies(&self) -> &QueueTallies {
        &self.backlog.tallies
    }

    fn average(&self) -> f64 {
        self.average
    }
}

#[cfg(test)]
mod tests;
