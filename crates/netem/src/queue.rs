//! Queues in front of a link: disciplines and limits.

mod backlog;
mod codel;
mod drop_head;
mod drop_tail;
mod red;

pub use backlog::Limit;
pub use codel::{CoDel, CoDelSpec};
pub use drop_head::DropHead;
pub use drop_tail::DropTail;
pub use red::{Red, RedSpec};

use farhaul_units::{ByteSize, Duration, Instant, Rate};

use crate::{Tally, WireLen};

/// Size of a full packet in bytes, the usual MTU. Converts a bandwidth-delay product to packets.
pub const FULL_PACKET: u32 = 1_500;

/// Smallest queue of one bandwidth-delay product, in packets, so that a slow or short path still absorbs a burst.
pub const MIN_BDP_QUEUE: u64 = 100;

/// A queueing discipline. It decides which packet leaves next and which are dropped, on arrival or on departure.
pub trait Queue<P> {
    /// Takes in a packet that arrives at `now`, or drops it or another one.
    fn enqueue(&mut self, now: Instant, packet: P);

    /// The packet to send at `now`; `None` if the queue is empty. The link asks whenever it can send, so the first
    /// `None` marks the instant since which it is idle.
    fn dequeue(&mut self, now: Instant) -> Option<P>;

    /// The waiting packets.
    fn waiting(&self) -> Tally;

    /// The packets dropped so far.
    fn dropped(&self) -> Tally;

    /// The packets dropped so far although there was room.
    fn dropped_early(&self) -> Tally {
        Tally::default()
    }

    /// The average length in packets on which the discipline bases its drops. Zero for disciplines without one.
    fn average(&self) -> f64 {
        0.0
    }
}

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
    /// A number of bytes, as [`WireLen`] counts them.
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
    pub fn drop_tail<P: WireLen>(self, rate: Option<Rate>) -> DropTail<P> {
        DropTail::new(self.limit(rate))
    }
}

impl Default for QueueSize {
    /// A thousand packets, the usual queue length of a network interface on Linux.
    fn default() -> Self {
        Self::Packets(1_000)
    }
}
