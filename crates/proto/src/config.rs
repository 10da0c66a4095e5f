//! Settings of an endpoint, each with its default, unit, range and reason.

use farhaul_cc::{Controller, Spec};
use farhaul_units::{AckNo, Duration, MsgNo, Rate, SeqNo};
use farhaul_wire::udt4::HEADER_LEN;

use crate::consts::IP_UDP_HEADER;
use crate::pacer::BURST_TIME;

/// Settings of an endpoint's connections. No default needs tuning, because buffers size themselves.
///
/// UDT's option names stand in brackets, for readers who know libudt.
pub struct Config {
    /// Largest packet in bytes, IP, UDP and UDT headers included (`UDT_MSS`). Default 1500, range
    /// [`MIN_MSS`](crate::udt::MIN_MSS) (576) to 65 535.
    pub mss: u32,
    /// Largest flow window of a peer, packets (`UDT_FC`). Default 262 144, which is 3 Gbit/s at an RTT of one second.
    /// Memory grows with arriving data, not with this value.
    pub max_flow_window: u32,
    /// Cap of one connection's send buffer in bytes (`UDT_SNDBUF`). Default 512 MiB. The buffer grows to the path's
    /// need.
    pub send_buffer: u64,
    /// Cap of one connection's receive buffer in bytes (`UDT_RCVBUF`). Default 512 MiB.
    pub recv_buffer: u64,
    /// Cap of the send rate, headers and retransmissions included (`UDT_MAXBW`). Default none.
    pub max_rate: Option<Rate>,
    /// Longest time for a connection attempt. Default 5 s.
    pub connect_timeout: Duration,
    /// Longest time for a rendezvous. Default 30 s, as in libudt.
    pub rendezvous_timeout: Duration,
    /// Silence of the peer that ends a connection. Default 30 s.
    pub peer_timeout: Duration,
    /// Longest time without progress that `finish` waits for the last acknowledgement (`UDT_LINGER`). Default 30 s.
    pub linger: Duration,
    /// Mean time between keep-alives of an idle connection, varied by ±20 %. Default 10 s, because libudt gives up
    /// after 53 s.
    pub keep_alive: Duration,
    /// Packets that must arrive beyond a gap before it is reported as loss (2004 paper §4.6). The wait is at most one
    /// RTT. Default 0: a gap is reported at once, unless the path has reordered packets recently. Then the report waits
    /// as long as reordered packets were late.
    pub reorder_tolerance: u32,
    /// Length of a burst of paced packets. Default 250 µs, because a wake-up per packet costs more than the packet.
    /// With zero, packets leave one by one and probe pairs together, as far as the driver wakes in time.
    pub burst_time: Duration,
    /// Whether this side warns a sender of a growing RTT (type 4). Default true. Only the protocol of the 2004 paper,
    /// [`udt2004`](crate::udt2004), has these warnings.
    pub delay_warnings: bool,
    /// Largest number of connections of this endpoint. Default 65 536.
    pub max_connections: usize,
    /// Accepted connections that may wait until the application [claims](crate::udt::Endpoint::claim) or uses them.
    /// Default
    /// 1024. Further callers are refused.
    pub backlog: usize,
    /// Ends a connection whose peer is alive but takes no data for this long (attack B10). Default never, because a
    /// paused reader is legitimate. Daemons set it.
    pub stall_timeout: Option<Duration>,
    /// Ends a connection whose peer takes data too slowly (attack B10). Default never. Daemons set
    /// [`MinProgress::DAEMON`].
    pub min_progress: Option<MinProgress>,
    /// Fixes the sequence number of the first packet of connections opened by this side. Default random. For tests.
    pub initial_seq: Option<SeqNo>,
    /// Number of the first acknowledgement of a connection. Default 1, as in libudt. For tests.
    pub initial_ack: AckNo,
    /// Number of the first message of a connection. Default 1, as in libudt. For tests.
    pub initial_message: MsgNo,
    /// Makes the congestion controller of each new connection. Default: `udt` of the registry.
    pub controller: ControllerFactory,
}

impl Config {
    /// Largest number of packets that a connection holds for its reader.
    pub(crate) fn recv_window(&self) -> u32 {
        let payload = u64::from(self.mss - IP_UDP_HEADER) - HEADER_LEN as u64;
        let by_memory = u32::try_from(self.recv_buffer / payload).unwrap_or(u32::MAX);
        self.max_flow_window.min(by_memory).max(2)
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            mss: 1500,
            max_flow_window: 262_144,
            send_buffer: 512 << 20,
            recv_buffer: 512 << 20,
            max_rate: None,
            connect_timeout: Duration::from_secs(5),
            rendezvous_timeout: Duration::from_secs(30),
            peer_timeout: Duration::from_secs(30),
            linger: Duration::from_secs(30),
            keep_alive: Duration::from_secs(10),
            reorder_tolerance: 0,
            burst_time: BURST_TIME,
            delay_warnings: true,
            max_connections: 65_536,
            backlog: 1024,
            stall_timeout: None,
            min_progress: None,
            initial_seq: None,
            initial_ack: AckNo::FIRST,
            initial_message: MsgNo::FIRST,
            controller: controller_factory(Spec::default()),
        }
    }
}

/// Slowest acceptable progress of a peer while data waits for it. Without this bound, a peer that reads a byte now and
/// then holds a connection, its buffers and a slot for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MinProgress {
    /// Bytes that the peer must acknowledge in each period.
    pub bytes: u64,
    /// Length of a period. The first begins when data is written to an idle connection, the next when that period ends.
    /// Time without outstanding data does not count.
    pub time: Duration,
}

impl MinProgress {
    /// 1 KiB per minute, over ten minutes. Any line in use is faster, and outages that users wait out are shorter.
    pub const DAEMON: Self = Self { bytes: 10 << 10, time: Duration::from_secs(600) };
}

/// Makes a controller from a seed for its randomness.
pub type ControllerFactory = Box<dyn Fn(u64) -> Box<dyn Controller> + Send>;

/// Randomness from the operating system, or from a simulator's seed.
#[derive(Clone, Debug)]
pub struct Entropy {
    /// Key of the handshake cookie. Must be secret on a network.
    pub cookie_key: [u8; 16],
    /// Seed of socket ids, initial sequence numbers and jitter.
    pub seed: u64,
}

/// Byte stream or messages: UDT's SOCK_STREAM and SOCK_DGRAM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// A byte stream.
    #[default]
    Stream,
    /// Messages with boundaries.
    Message,
}

/// A factory for the controller that `spec` names.
pub fn controller_factory(spec: Spec) -> ControllerFactory {
    Box::new(move |seed| spec.build(seed))
}
