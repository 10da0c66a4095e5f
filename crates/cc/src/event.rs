//! Events of a connection that a controller receives.

use farhaul_units::{Duration, Instant, MsgNo, PacketRate, SeqNo, SeqRange};

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

/// Packets are known to have arrived, whether or not packets before them are missing.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct DeliveryEvent {
    /// Packets newly known to have arrived.
    pub newly_delivered: f64,
    /// Packets known to have arrived since the connection began.
    pub delivered: f64,
    /// RTT of the packet that left last among them, without the receiver's delay. `None` if it was retransmitted.
    pub rtt: Option<Duration>,
    /// Microseconds from the departure of this news by the peer's clock until its arrival by this host's. The clocks began at different
    /// times, so only differences mean something. `None` if the peer does not stamp its counts of arrivals.
    pub return_delay: Option<i32>,
    /// The sample of the same packet.
    pub sample: Option<RateSample>,
    /// The longest train that ends with it: packets that left and arrived without a pause, at their rates.
    pub train: Option<DeliverySample>,
    /// Whether the window has held packets back since the last such event.
    pub window_limited: bool,
}

/// A sample of the delivery rate. Source: draft-ietf-ccwg-bbr §4.1.
#[derive(Clone, Copy, Debug, Default)]
pub struct RateSample {
    /// Packets delivered before its packet left (`RS.prior_delivered`).
    pub prior_delivered: f64,
    /// Packets delivered since then (`RS.delivered`).
    pub delivered: f64,
    /// The rate at which they were (`RS.delivery_rate`). `None` if the interval is shorter than the least RTT.
    pub rate: Option<PacketRate>,
    /// Packets in flight when its packet left, this one included (`RS.tx_in_flight`).
    pub in_flight: f64,
    /// Packets lost since then (`RS.lost`).
    pub lost: f64,
    /// Whether the application limited the sender then (`RS.is_app_limited`).
    pub application_limited: bool,
}

/// Packets of one departure that were lost.
#[derive(Clone, Copy, Debug, Default)]
pub struct LostFlight {
    /// How many.
    pub packets: f64,
    /// Packets in flight when they left, these included.
    pub in_flight: f64,
    /// Packets lost since then, these included.
    pub lost: f64,
    /// Whether the application limited the sender then.
    pub application_limited: bool,
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
    /// The state in which new losses had left, in the order of the report. Lost retransmissions are left out.
    pub flights: &'a [LostFlight],
}

impl<'a> LossEvent<'a> {
    /// A report of `ranges` with `newly_lost` new losses.
    pub const fn new(ranges: &'a [SeqRange], newly_lost: u32, largest_sent: SeqNo) -> Self {
        Self { ranges, newly_lost, largest_sent, flights: &[] }
    }

    /// The same with the state in which new losses had left.
    #[must_use]
    pub const fn of_flights(self, flights: &'a [LostFlight]) -> Self {
        Self { flights, ..self }
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

/// A data packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DataPacket {
    /// Its sequence number.
    pub seq: SeqNo,
    /// The message that its payload belongs to. In a stream, each packet is a message of its own. `None` if the packet does
    /// not carry the number: on arrival in an encrypted stream, and in other protocols than UDT4.
    pub message: Option<MsgNo>,
    /// Its payload in bytes.
    pub payload: u32,
}

impl DataPacket {
    /// The packet `seq` with so many bytes of payload.
    pub const fn new(seq: SeqNo, message: Option<MsgNo>, payload: u32) -> Self {
        Self { seq, message, payload }
    }
}

/// A burst of data packets left.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct SentEvent<'a> {
    /// The packets in the order of departure. Never empty.
    pub packets: &'a [DataPacket],
    /// Whether they are retransmissions.
    pub retransmission: bool,
    /// When they left.
    pub at: Instant,
}

impl<'a> SentEvent<'a> {
    /// New packets, or retransmissions, that left then.
    pub const fn new(packets: &'a [DataPacket], retransmission: bool, at: Instant) -> Self {
        Self { packets, retransmission, at }
    }
}

/// A batch of data packets arrived.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct ReceivedEvent<'a> {
    /// The packets in the order of arrival, duplicates included. Never empty.
    pub packets: &'a [DataPacket],
    /// When the last of them reached this computer.
    pub at: Instant,
}

impl<'a> ReceivedEvent<'a> {
    /// Packets that arrived then.
    pub const fn new(packets: &'a [DataPacket], at: Instant) -> Self {
        Self { packets, at }
    }
}

/// A user-defined control packet (UDT's type 0x7FFF) for the controller of the peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustomMessage {
    /// The user's type. UDT carries it in the reserved bits of the header.
    pub kind: u16,
    /// The content. Up to 500 bytes fit into the packets of every connection, and longer ones into most
    /// ([`Path::mss`](crate::Path::mss)). libudt reads it as 32-bit words in network byte order.
    pub body: Vec<u8>,
}
