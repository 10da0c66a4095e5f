//! Where packets wait for the link, and how many may.

mod drop_tail;

pub use drop_tail::DropTail;

use farhaul_units::{ByteSize, Duration, Instant, Rate};

use crate::Tally;

/// The size of a full packet, in bytes, by which a bandwidth-delay product becomes a number of packets: the usual MTU.
pub const FULL_PACKET: u32 = 1_500;

/// The least number of packets in a queue of one bandwidth-delay product, so that a slow or short path still takes a
/// burst.
pub const MIN_BDP_QUEUE: u64 = 100;

/// A queueing discipline: which packet waits, which leaves next, which is dropped, on arrival or on leaving.
pub trait Queue<P> {
    /// Takes in a packet that arrives at `now`, or drops it or another.
    fn enqueue(&mut self, now: Instant, packet: P);

    /// The packet to be sent at `now`; `None` if none is left.
    fn dequeue(&mut self, now: Instant) -> Option<P>;

    /// The packets that wait.
    fn waiting(&self) -> Tally;

    /// The packets dropped so far.
    fn dropped(&self) -> Tally;
}

/// How many packets may wait. The packet that is being sent does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueSize {
    /// A number of packets, of whatever size.
    Packets(u32),
    /// A number of bytes as [`WireLen`](crate::WireLen) counts them.
    Bytes(ByteSize),
    /// One bandwidth-delay product for this round-trip time, in packets of [`FULL_PACKET`] bytes rounded up, and at
    /// least [`MIN_BDP_QUEUE`].
    Bdp(Duration),
}

impl QueueSize {
    /// The drop-tail queue of this size before a link of `rate`.
    pub fn drop_tail<P>(self, rate: Option<Rate>) -> DropTail<P> {
        match self {
            Self::Packets(packets) => DropTail::of_packets(u64::from(packets)),
            Self::Bytes(ByteSize(bytes)) => DropTail::of_bytes(bytes),
            Self::Bdp(round_trip) => {
                let bytes = rate.map_or(0, |rate| rate.bytes_in(round_trip));
                DropTail::of_packets(bytes.div_ceil(u64::from(FULL_PACKET)).max(MIN_BDP_QUEUE))
            }
        }
    }
}

impl Default for QueueSize {
    /// A thousand packets, the usual length of a network interface's queue on Linux.
    fn default() -> Self {
        Self::Packets(1_000)
    }
}
