//! What the transport measured, for controllers to read.

use farhaul_units::{Duration, Instant, PacketRate, SeqNo};

/// A controller's view of its connection. Plain facts, none of UDT's types, so that TCP agents can offer the same view.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Path {
    /// The time of the event.
    pub now: Instant,
    /// Packet size on the wire in bytes, IP, UDP and transport headers included.
    pub mss: u32,
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// Mean deviation of the round-trip time.
    pub rtt_var: Duration,
    /// Smallest round-trip time of the last ten to twenty seconds in which any was measured; `None` before the first sample.
    pub min_rtt: Option<Duration>,
    /// Latest round-trip time sample; `None` before the first.
    pub latest_rtt: Option<Duration>,
    /// Round-trip time that the peer measured of its acknowledgements and their confirmations, smoothed by it. They wait in
    /// the queues as data does, but neither for repairs nor for overtaken packets; `None` before the first.
    pub reported_rtt: Option<Duration>,
    /// Largest round-trip time sample of the last one to two round trips; zero without one.
    pub recent_max_rtt: Duration,
    /// Arrival speed as the receiver reports it, smoothed and cut to twice what was sent or `Control::arrival_bound` (attack B9).
    pub arrival_rate: Option<PacketRate>,
    /// Link capacity as the receiver reports it from probe pairs, smoothed.
    pub capacity: Option<PacketRate>,
    /// Delivery rate that this side saw in the progress of acknowledgements, over about one round trip.
    pub delivery_rate: Option<PacketRate>,
    /// Packets sent and not acknowledged.
    pub in_flight: u32,
    /// What the receiver has room for, packets.
    pub flow_window: u32,
    /// The largest flow window of this connection, packets.
    pub max_window: u32,
    /// The number that the next new packet will carry.
    pub next_seq: SeqNo,
    /// Packets sent since the connection began, retransmissions included.
    pub packets_sent: u64,
    /// The sender had nothing to send although window and pacing would have let it. Samples taken now may raise
    /// estimates but never lower them.
    pub application_limited: bool,
}

impl Path {
    /// The round trip now, queues included: the latest sample, since when smoothed a queue seems to stand for long after it has
    /// drained; but no more than the smoothed one, so that a single sample that stands out does not count.
    pub(crate) fn round_trip_now(&self) -> Duration {
        self.latest_rtt.unwrap_or(self.rtt).min(self.rtt)
    }
}
