//! Where packets wait for the link, how many may, and which are dropped.

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

/// The size of a full packet, in bytes, by which a bandwidth-delay product becomes a number of packets: the usual MTU.
pub const FULL_PACKET: u32 = 1_500;

/// The least number of packets in a queue of one bandwidth-delay product, so that a slow or short path still takes a
/// burst.
pub const MIN_BDP_QUEUE: u64 = 100;

/// A queueing discipline: which packet waits, which leaves next, which is dropped, on arrival or on leaving.
pub trait Queue<P> {
    /// Takes in a packet that arrives at `now`, or drops it or another.
    fn enqueue(&mut self, now: Instant, packet: P);

    /// The packet to be sent at `now`; `None` if none is left. The link asks whenever it could send; so the first
    /// `None` says since when it is idle.
    fn dequeue(&mut self, now: Instant) -> Option<P>;

    /// The packets that wait.
    fn waiting(&self) -> Tally;

    /// The packets dropped so far.
    fn dropped(&self) -> Tally;

    /// Those of them that were dropped although there was room.
    fn dropped_early(&self) -> Tally {
        Tally::default()
    }

    /// The average length, in packets, by which the discipline decides; zero if it has none.
    fn average(&self) -> f64 {
        0.0
    }
}

/// A queueing discipline as a path description names it. How much may wait is said beside it, by a [`QueueSize`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Discipline {
    /// Who comes when the queue is full is dropped.
    #[default]
    DropTail,
    /// Who has waited longest is dropped when another comes and the queue is full.
    DropHead,
    /// Random early detection: see [`Red`].
    Red(RedSpec),
    /// Controlled delay: see [`CoDel`].
    CoDel(CoDelSpec),
}

/// How many packets may wait. The packet that is being sent does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueSize {
    /// A number of packets, of whatever size.
    Packets(u32),
    /// A number of bytes as [`WireLen`] counts them.
    Bytes(ByteSize),
    /// One bandwidth-delay product for this round-trip time, in packets of [`FULL_PACKET`] bytes rounded up, and at
    /// least [`MIN_BDP_QUEUE`].
    Bdp(Duration),
}

impl QueueSize {
    /// What this size means before a link of `rate`.
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

    /// The drop-tail queue of this size before a link of `rate`.
    pub fn drop_tail<P: WireLen>(self, rate: Option<Rate>) -> DropTail<P> {
        DropTail::new(self.limit(rate))
    }
}

impl Default for QueueSize {
    /// A thousand packets, the usual length of a network interface's queue on Linux.
    fn default() -> Self {
        Self::Packets(1_000)
    }
}
