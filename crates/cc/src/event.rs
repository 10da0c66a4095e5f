//! What happens on a connection, for controllers to hear.

use farhaul_units::{Duration, PacketRate, SeqNo, SeqRange};

/// The peer acknowledged data in order.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct AckEvent {
    /// Everything before this packet has arrived.
    pub seq: SeqNo,
    /// Packets that this acknowledgement newly covers; zero for a full one that confirms what light ones have covered.
    pub newly_acked: u32,
    /// A light acknowledgement: progress only, no measurements. UDT's own laws ignore it.
    pub light: bool,
    /// Round-trip time that came with it.
    pub rtt_sample: Option<Duration>,
    /// How fast the packets behind this acknowledgement were sent and how fast they were delivered.
    pub delivery: Option<DeliverySample>,
}

/// One measurement of delivery: the same packets, at both ends of the path.
#[derive(Clone, Copy, Debug)]
pub struct DeliverySample {
    /// Packets that the sample covers.
    pub packets: u32,
    /// The rate at which they had been sent.
    pub sent: PacketRate,
    /// The rate at which they were acknowledged. Well below `sent`, it is the capacity of the bottleneck.
    pub delivered: PacketRate,
}

/// The peer reported losses.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct LossEvent<'a> {
    /// The reported packets, clipped to what is in flight, in the order of the report; never empty. Reports that come within
    /// two milliseconds are one event.
    pub ranges: &'a [SeqRange],
    /// Packets that had not been reported before, or whose repair must have been lost, too: a report of one that was sent
    /// again less than a round trip ago does not count. Zero for a report that repeats others.
    pub newly_lost: u32,
    /// The last packet sent so far.
    pub largest_sent: SeqNo,
}

impl<'a> LossEvent<'a> {
    /// A report of `ranges`, of which `newly_lost` packets are news.
    pub const fn new(ranges: &'a [SeqRange], newly_lost: u32, largest_sent: SeqNo) -> Self {
        Self { ranges, newly_lost, largest_sent }
    }
}

/// Nothing was heard for the expiration time while data was unacknowledged.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct TimeoutEvent {
    /// How many expirations in a row, this one included.
    pub count: u32,
    /// The last packet sent so far.
    pub largest_sent: SeqNo,
}

/// A burst of data packets left.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct SentEvent {
    /// The last packet of the burst.
    pub last: SeqNo,
    /// Packets in the burst.
    pub packets: u32,
    /// Whether they had been sent before.
    pub retransmission: bool,
}

/// A batch of data packets arrived.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct ReceivedEvent {
    /// The last packet of the batch.
    pub last: SeqNo,
    /// Packets in the batch, duplicates included.
    pub packets: u32,
}
