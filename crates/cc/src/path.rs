//! The transport's measurements for controllers.

use farhaul_units::{Duration, Instant, PacketRate, SeqNo};

/// A controller's view of its connection. Plain values without UDT's types, so that TCP agents can offer the same view.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Path {
    /// The time of the event.
    pub now: Instant,
    /// Packet size on the wire in bytes, IP, UDP and transport headers included.
    pub mss: u32,
    /// Smoothed RTT.
    pub rtt: Duration,
    /// Mean deviation of the RTT.
    pub rtt_var: Duration,
    /// Minimum RTT of the last ten to twenty seconds with samples; `None` before the first sample.
    pub min_rtt: Option<Duration>,
    /// Latest RTT sample; `None` before the first.
    pub latest_rtt: Option<Duration>,
    /// Arrival rate reported by the receiver, smoothed. Capped at twice the send rate (attack B9).
    pub arrival_rate: Option<PacketRate>,
    /// Capacity estimate of the receiver from probe pairs, smoothed.
    pub capacity: Option<PacketRate>,
    /// Delivery rate seen by this side in the progress of acknowledgements, over about one RTT.
    pub delivery_rate: Option<PacketRate>,
    /// Packets sent and not acknowledged.
    pub in_flight: u32,
    /// Packets in flight that neither arrived nor are known to be lost.
    pub outstanding: f64,
    /// The receiver's free buffer, packets.
    pub flow_window: u32,
    /// The largest flow window of this connection, packets.
    pub max_window: u32,
    /// The sequence number of the next new packet.
    pub next_seq: SeqNo,
    /// Packets sent since the connection began, retransmissions included.
    pub packets_sent: u64,
    /// Whether samples of the delivery rate are of the application ([`RateSample`](crate::RateSample)).
    pub sampling_application: bool,
    /// Whether the sender had nothing to send although window and pacing permitted it. Samples then may raise estimates
    /// but never lower them.
    pub application_limited: bool,
}
