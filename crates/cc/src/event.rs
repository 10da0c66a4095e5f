//! Events of a connection that a controller receives.

use farhaul_units::{Duration, PacketRate, SeqNo, SeqRange};

/// The peer acknowledged data in order.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct AckEvent {
    /// Everything before this packet has arrived.
    pub seq: SeqNo,
    /// Packets newly covered. Zero for a full acknowledgement that confirms only packets covered by light ones.
    pub newly_acked: u32,
    /// Whether the acknowledgement is light: progress without measurements. UDT's own laws ignore it.
    pub light: bool,
    /// The RTT sample of this acknowledgement.
    pub rtt_sample: Option<Duration>,
    /// Lower bound of the RTT of this acknowledgement. A full acknowledgement waits for a timer, but the receiver sent it
    /// before the next packet arrived. So the wait was shorter than the gap between the two departures.
    pub rtt_least: Option<Duration>,
    /// The arrival rate in this acknowledgement, without the filter of [`Path::arrival_rate`](crate::Path::arrival_rate)
    /// but with its cap. libudt measures it as the median of the last 16 intervals.
    pub arrives: Option<PacketRate>,
    /// The send rate and delivery rate of the packets that this acknowledgement covers.
    pub delivery: Option<DeliverySample>,
}

/// A measurement of delivery: the same packets at both ends of the path.
#[derive(Clone, Copy, Debug)]
pub struct DeliverySample {
    /// Packets in the sample.
    pub packets: u32,
    /// The rate at which they were sent.
    pub sent: PacketRate,
    /// The rate at which they were acknowledged. If well below `sent`, it is the capacity of the bottleneck.
    pub delivered: PacketRate,
}

/// The peer reported losses.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct LossEvent<'a> {
    /// The reported packets in the order of the report, clipped to those in flight. Never empty. Reports within two
    /// milliseconds form one event.
    pub ranges: &'a [SeqRange],
    /// Packets reported for the first time, or whose retransmission must have been lost too. A report within one RTT of
    /// the retransmission does not count. Zero if the report repeats earlier ones.
    pub newly_lost: u32,
    /// The last packet sent so far.
    pub largest_sent: SeqNo,
}

impl<'a> LossEvent<'a> {
    /// A report of `ranges` with `newly_lost` new losses.
    pub const fn new(ranges: &'a [SeqRange], newly_lost: u32, largest_sent: SeqNo) -> Self {
        Self { ranges, newly_lost, largest_sent }
    }
}

/// The expiration time passed without a packet from the peer while data was unacknowledged.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct TimeoutEvent {
    /// Number of consecutive expirations, including this one.
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
    /// Whether they are retransmissions.
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
