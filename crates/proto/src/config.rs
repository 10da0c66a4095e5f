//! Settings of an endpoint, each with its default, unit, range and the reason for it.

use farhaul_cc::{Controller, Spec};
use farhaul_units::{AckNo, Duration, MsgNo, Rate, SeqNo};
use farhaul_wire::udt4::HEADER_LEN;

use crate::pacer::BURST_TIME;
use crate::udt::consts::IP_UDP_HEADER;

/// How an endpoint's connections behave. Every field has a default that needs no tuning: buffers size themselves.
///
/// UDT's option names stand in brackets for those who come from libudt.
pub struct Config {
    /// Largest packet in bytes, IP, UDP and UDT headers included (`UDT_MSS`). Default 1500; from
    /// [`MIN_MSS`](crate::udt::MIN_MSS), 576, to 65 535.
    pub mss: u32,
    /// Largest flow window in packets that a peer may fill (`UDT_FC`). Default 262 144: 3 Gbit/s at one second.
    /// Memory is taken as data arrives, never for the claim.
    pub max_flow_window: u32,
    /// Cap of one connection's send buffer in bytes (`UDT_SNDBUF`). Default 512 MiB; it grows to what the path needs.
    pub send_buffer: u64,
    /// Cap of one connection's receive buffer in bytes (`UDT_RCVBUF`). Default 512 MiB.
    pub recv_buffer: u64,
    /// Cap of the sending rate, headers and retransmissions included (`UDT_MAXBW`). Default none.
    pub max_rate: Option<Rate>,
    /// How long a connection attempt may take. Default 5 s.
    pub connect_timeout: Duration,
    /// How long a rendezvous may take. Default 30 s, as libudt's.
    pub rendezvous_timeout: Duration,
    /// Silence of the peer after which a connection is over. Default 30 s.
    pub peer_timeout: Duration,
    /// How long `finish` waits for the last acknowledgement (`UDT_LINGER`). Default 30 s without progress.
    pub linger: Duration,
    /// Mean time between keep-alives of an idle connection, varied by ±20 %. Default 10 s: libudt gives up after 53 s.
    pub keep_alive: Duration,
    /// Packets that must arrive beyond a gap before it is reported as loss (2004 paper §4.6), for one round trip at most.
    /// Default 0: at once, and only where packets were seen to overtake others as much later as that made them.
    pub reorder_tolerance: u32,
    /// Time that one burst of paced packets may stand for. Default 250 µs: a wake-up per packet costs more than the packet.
    /// Zero lets packets leave one by one, a probe pair together, as far as the host wakes in time.
    pub burst_time: Duration,
    /// Whether this side warns a sender when the round-trip time grows (type 4). Default true; only the protocol of the 2004
    /// paper, [`udt2004`](crate::udt2004), has such warnings.
    pub delay_warnings: bool,
    /// Connections that this endpoint may hold. Default 65 536.
    pub max_connections: usize,
    /// Connections that may wait while listening until the application [claims](crate::udt::Endpoint::claim) or uses them.
    /// Default 1024; further ones are refused.
    pub backlog: usize,
    /// Ends a connection whose peer is alive but takes no data for this long (attack B10). Default never: a paused reader
    /// is legitimate; daemons set it.
    pub stall_timeout: Option<Duration>,
    /// Ends a connection whose peer takes data, but hardly any (attack B10). Default never; daemons set
    /// [`MinProgress::DAEMON`].
    pub min_progress: Option<MinProgress>,
    /// Fixes the number of the first packet of connections opened by this side. Default random; for tests.
    pub initial_seq: Option<SeqNo>,
    /// Number of the first acknowledgement that a connection sends. Default 1, as libudt's; for tests.
    pub initial_ack: AckNo,
    /// Number of the first message that a connection sends. Default 1, as libudt's; for tests.
    pub initial_message: MsgNo,
    /// Makes the congestion controller of each new connection. Default: the registry's `udt`.
    pub controller: ControllerFactory,
}

impl Config {
    /// Packets that a connection holds for its reader at most.
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

/// The least that a peer must take while data waits for it: a peer that reads a byte now and then holds a connection, its
/// buffers and a place in the table for ever otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MinProgress {
    /// Bytes acknowledged in each period.
    pub bytes: u64,
    /// Length of a period. It begins when data is written to an idle connection, and anew when it is over; time without
    /// data outstanding does not count.
    pub time: Duration,
}

impl MinProgress {
    /// 1 KiB a minute, over ten minutes: slower than any line in use, and longer than outages that people wait for.
    pub const DAEMON: Self = Self { bytes: 10 << 10, time: Duration::from_secs(600) };
}

/// Makes a controller from a seed for its randomness.
pub type ControllerFactory = Box<dyn Fn(u64) -> Box<dyn Controller> + Send>;

/// Randomness that the host takes from the operating system, or a simulator from its seed.
#[derive(Clone, Debug)]
pub struct Entropy {
    /// Key of the handshake cookie; secret on a real host.
    pub cookie_key: [u8; 16],
    /// Seed of socket ids, initial sequence numbers and jitter.
    pub seed: u64,
}

/// Stream of bytes or sequence of messages: UDT's SOCK_STREAM and SOCK_DGRAM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// A byte stream.
    #[default]
    Stream,
    /// Messages with boundaries.
    Message,
}

/// The factory that builds what `spec` names.
pub fn controller_factory(spec: Spec) -> ControllerFactory {
    Box::new(move |seed| spec.build(seed))
}
