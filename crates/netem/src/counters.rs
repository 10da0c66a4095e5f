//! Counters of an element, in packets and bytes.

use core::ops::AddAssign;

use farhaul_units::Duration;

/// A number of packets and of their bytes on the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Number of packets.
    pub packets: u64,
    /// Their bytes, as [`WireLen`](crate::WireLen) counts them.
    pub bytes: u64,
}

impl Tally {
    /// Adds one packet of `bytes` bytes.
    pub fn add(&mut self, bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
    }

    /// Removes one packet of `bytes` bytes.
    pub(crate) fn remove(&mut self, bytes: u32) {
        self.packets = self.packets.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(u64::from(bytes));
    }

    /// The larger number of packets and the larger number of bytes, each taken separately.
    #[must_use]
    pub(crate) fn max(self, other: Self) -> Self {
        Self { packets: self.packets.max(other.packets), bytes: self.bytes.max(other.bytes) }
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
    }
}

/// Depth of a queue, now and over time. The packet in transmission does not count.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct QueueDepth {
    /// Waiting now.
    pub waiting: Tally,
    /// The maximum so far, of packets and of bytes separately.
    pub high_water: Tally,
    /// Waiting packets, integrated over time: packets × nanoseconds.
    pub packet_nanos: u128,
    /// Waiting bytes, integrated over time: bytes × nanoseconds.
    pub byte_nanos: u128,
    /// The average length on which the discipline bases its drops, in packets: RED's *avg*. Zero for other disciplines.
    pub average: f64,
}

impl QueueDepth {
    /// The mean number of waiting packets since `earlier`, which was read `time` ago. Zero if `time` is zero.
    ///
    /// Call [`advance`](crate::Element::advance) before reading either depth.
    pub fn mean_packets_since(&self, earlier: &Self, time: Duration) -> f64 {
        mean(self.packet_nanos.saturating_sub(earlier.packet_nanos), time)
    }

    /// The mean number of waiting bytes since `earlier`, under the conditions of
    /// [`mean_packets_since`](Self::mean_packets_since).
    pub fn mean_bytes_since(&self, earlier: &Self, time: Duration) -> f64 {
        mean(self.byte_nanos.saturating_sub(earlier.byte_nanos), time)
    }
}

fn mean(integral: u128, time: Duration) -> f64 {
    if time.is_zero() { 0.0 } else { integral as f64 / time.as_nanos() as f64 }
}

/// Totals of an element since it was made.
///
/// The totals balance:
/// `pushed + duplicated = delivered + dropped_queue + dropped_policer + dropped_loss + inside`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Counters {
    /// Packets pushed into the element.
    pub pushed: Tally,
    /// Packets popped from the element.
    pub delivered: Tally,
    /// Packets dropped by the queue, because it was full or by its discipline.
    pub dropped_queue: Tally,
    /// The part of `dropped_queue` for which there was room: drops by RED and CoDel.
    pub dropped_early: Tally,
    /// Packets dropped by a policer.
    pub dropped_policer: Tally,
    /// Packets lost on the link.
    pub dropped_loss: Tally,
    /// Copies made.
    pub duplicated: Tally,
    /// Packets held back so that later packets overtake them.
    pub reordered: Tally,
    /// Packets damaged.
    pub corrupted: Tally,
    /// The queue, if there is one.
    pub queue: QueueDepth,
}

impl Counters {
    /// Packets in the element now.
    pub fn inside(&self) -> u64 {
        let entered = self.pushed.packets + self.duplicated.packets;
        entered.saturating_sub(self.delivered.packets + self.dropped())
    }

    /// Packets dropped for any reason.
    pub fn dropped(&self) -> u64 {
        self.dropped_queue.packets + self.dropped_policer.packets + self.dropped_loss.packets
    }

    /// The counters of this element followed by `next`. Waiting packets, their integrals and averages are added. Of the
    /// two high-water marks the higher one stays, because the two maxima can have occurred at different times.
    #[must_use]
    pub(crate) fn followed_by(mut self, next: &Self) -> Self {
        self.delivered = next.delivered;
        self.dropped_queue += next.dropped_queue;
        self.dropped_early += next.dropped_early;
        self.dropped_policer += next.dropped_policer;
        self.dropped_loss += next.dropped_loss;
        self.duplicated += next.duplicated;
        self.reordered += next.reordered;
        self.corrupted += next.corrupted;
        self.queue.waiting += next.queue.waiting;
        self.queue.packet_nanos += next.queue.packet_nanos;
        self.queue.byte_nanos += next.queue.byte_nanos;
        self.queue.average += next.queue.average;
        self.queue.high_water = self.queue.high_water.max(next.queue.high_water);
        self
    }
}
