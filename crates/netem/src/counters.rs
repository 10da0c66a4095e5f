//! What an element has done: numbers of packets and bytes.

use core::ops::AddAssign;

/// Packets and their bytes on the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Number of packets.
    pub packets: u64,
    /// Their bytes as [`WireLen`](crate::WireLen) counts them.
    pub bytes: u64,
}

impl Tally {
    /// One more packet, of `bytes` bytes.
    pub fn add(&mut self, bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
    }

    /// One packet less, of `bytes` bytes.
    pub(crate) fn remove(&mut self, bytes: u32) {
        self.packets = self.packets.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(u64::from(bytes));
    }

    /// The larger number of packets and the larger number of bytes.
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

/// How full a queue is and was. The packet that is being sent waits no more and does not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueDepth {
    /// Waiting now.
    pub waiting: Tally,
    /// The most that ever waited, packets and bytes each by itself.
    pub high_water: Tally,
}

/// What an element has done since it was made.
///
/// Every packet is somewhere: `pushed + duplicated = delivered + dropped_queue + dropped_loss + inside`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Taken in.
    pub pushed: Tally,
    /// Given out.
    pub delivered: Tally,
    /// Refused by a full queue.
    pub dropped_queue: Tally,
    /// Lost on the link.
    pub dropped_loss: Tally,
    /// Additional copies made.
    pub duplicated: Tally,
    /// Held back, so that later packets could overtake.
    pub reordered: Tally,
    /// Damaged.
    pub corrupted: Tally,
    /// The queue, if there is one.
    pub queue: QueueDepth,
}

impl Counters {
    /// Packets that are still on their way.
    pub fn inside(&self) -> u64 {
        let entered = self.pushed.packets + self.duplicated.packets;
        entered.saturating_sub(self.delivered.packets + self.dropped_queue.packets + self.dropped_loss.packets)
    }

    /// The counters of this element followed by `next`. Waiting packets add up; of two high-water marks the higher
    /// one stays, because the two need not have been reached at the same time.
    #[must_use]
    pub(crate) fn followed_by(mut self, next: &Self) -> Self {
        self.delivered = next.delivered;
        self.dropped_queue += next.dropped_queue;
        self.dropped_loss += next.dropped_loss;
        self.duplicated += next.duplicated;
        self.reordered += next.reordered;
        self.corrupted += next.corrupted;
        self.queue.waiting += next.queue.waiting;
        self.queue.high_water = self.queue.high_water.max(next.queue.high_water);
        self
    }
}
