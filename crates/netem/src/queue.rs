//! Queues in front of a link: disciplines and limits.

mod backlog;
mod codel;
mod drop_head;
mod drop_tail;
mod red;

pub use backlog::{FULL_PACKET, Limit, Queue, QueueTallies};
pub use codel::{CoDel, CoDelSpec};
pub use drop_head::DropHead;
pub use drop_tail::DropTail;
pub use red::{Red, RedSpec};

use farhaul_units::{ByteSize, Duration, Rate};

/// Smallest queue of one bandwidth-delay product, in packets, so that a slow or short path still absorbs a burst.
pub const MIN_BDP_QUEUE: u64 = 100;

/// A queueing discipline, as a path description names it. A [`QueueSize`] limits how much may wait.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Discipline {
    /// Drops the arriving packet when the queue is full.
    #[default]
    DropTail,
    /// Drops the packet at the head, which waited longest, when another arrives and the queue is full.
    DropHead,
    /// Random early detection, see [`Red`].
    Red(RedSpec),
    /// Controlled delay, see [`CoDel`].
    CoDel(CoDelSpec),
}

/// How much may wait. The packet in transmission does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueSize {
    /// A number of packets of any size.
    Packets(u32),
    /// A number of bytes, as [`WireLen`](crate::WireLen) counts them.
    Bytes(ByteSize),
    /// One bandwidth-delay product for this RTT, in packets of [`FULL_PACKET`] bytes rounded up. At least
    /// [`MIN_BDP_QUEUE`].
    Bdp(Duration),
}

impl QueueSize {
    /// The limit that this size means in front of a link of `rate`.
    pub fn limit(self, rate: Option<Rate>) -> Limit {
        match self {
            Self::Packets(packets) => Limit::of_packets(u64::from(packets)),
            Self::Bytes(ByteSize(bytes)) => Limit::of_bytes(bytes),
            Self::Bdp(round_trip) => {
                let bytes = rate.map_or(0, |rate| rate.bytes_in(round_trip));
                Limit::of_packets(bytes.div_ceil(u64::from(FULL_PACKET)).max(MIN_BDP_QUEUE))
            }
        }
    }

    /// A drop-tail queue of this size in front of a link of `rate`.
    #[cfg(test)]
    pub(crate) fn drop_tail<P: crate::WireLen>(self, rate: Option<Rate>) -> DropTail<P> {
        DropTail::new(self.limit(rate))
    }
}

impl Default for QueueSize {
    /// A thousand packets, the usual queue length of a network interface on Linux.
    fn default() -> Self {
        Self::Packets(1_000)
    }
}
