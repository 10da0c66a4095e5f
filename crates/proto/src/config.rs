//! Settings of an endpoint, each with its default, unit, range and reason.

mod udt;

use std::sync::{Arc, Mutex, PoisonError};

pub use self::udt::Config as UdtConfig;

use farhaul_cc::{Controller, Spec, Supervised};
use farhaul_units::{Duration, Rate, SeqNo};
use farhaul_wire::udt4::HEADER_LEN;

use crate::consts::IP_UDP_HEADER;
use crate::pacer::BURST_TIME;
use crate::path_memory::PathMemory;

/// Settings of an endpoint's connections: those that protocols share, and UDT's own. A protocol ignores what it has no use
/// for. Other protocols take options of their own when they make an endpoint.
///
/// No default needs tuning, because buffers size themselves. UDT's option names stand in brackets, for readers who know
/// libudt.
#[derive(Clone)]
pub struct Config {
    /// Largest packet in bytes, IP, UDP and UDT headers included (`UDT_MSS`). Default 1500, range
    /// [`MIN_MSS`](crate::udt::MIN_MSS) (576) to 65 535.
    pub mss: u32,
    /// Largest packet in bytes that probes may find, counted like `mss`. `mss` is then the first size only. It takes effect if the
    /// peer's is set too. UDT4 alone uses it. Default none: `mss` is fixed.
    pub largest_mss: Option<u32>,
    /// Cap of one connection's send buffer in bytes (`UDT_SNDBUF`). Default 512 MiB. The buffer grows to the path's
    /// need.
    pub send_buffer: u64,
    /// Cap of one connection's receive buffer in bytes (`UDT_RCVBUF`). Default 512 MiB.
    pub recv_buffer: u64,
    /// Cap of the send rate, headers and retransmissions included (`UDT_MAXBW`). Default none.
    pub max_rate: Option<Rate>,
    /// First rate of a protocol that finds its rate, headers included, such as what an earlier profile of the path found. A
    /// wrong one is left within a few RTTs. Default none.
    pub first_rate: Option<Rate>,
    /// Speed of the interface towards the peer, headers of IP included, if the host knows it. Default unknown.
    pub interface_rate: Option<Rate>,
    /// Longest time for a connection attempt. Default 5 s.
    pub connect_timeout: Duration,
    /// Silence of the peer that ends a connection. Default 30 s.
    pub peer_timeout: Duration,
    /// Longest time without progress that `finish` waits for the last acknowledgement (`UDT_LINGER`). Default 30 s.
    pub linger: Duration,
    /// Mean time between keep-alives of an idle connection, varied by ±20 %. Default 10 s, because libudt gives up
    /// after 53 s.
    pub keep_alive: Duration,
    /// Length of a burst of paced packets. Default 250 µs, because a wake-up per packet costs more than the packet.
    /// With zero, packets leave one by one and probe pairs together, as far as the driver wakes in time.
    pub burst_time: Duration,
    /// Largest number of connections of this endpoint. Default 65 536.
    pub max_connections: usize,
    /// Accepted connections that may wait until the application [claims](crate::Endpoint::claim) or uses them.
    /// Default
    /// 1024. Further callers are refused.
    pub backlog: usize,
    /// Ends a connection whose peer is alive but takes no data for this long (attack B10). Default never, because a
    /// paused reader is legitimate. Daemons set it.
    pub stall_timeout: Option<Duration>,
    /// Ends a connection whose peer takes data too slowly (attack B10). Default never. Daemons set
    /// [`MinProgress::DAEMON`].
    pub min_progress: Option<MinProgress>,
    /// Largest flow window of a peer, packets (`UDT_FC`). Default 262 144, which is 3 Gbit/s at an RTT of one second.
    /// Memory grows with arriving data, not with this value.
    pub max_flow_window: u32,
    /// Packets that must arrive beyond a gap before it is reported as loss (2004 paper §4.6). The wait is at most one
    /// RTT. Default 0: a gap is reported at once. UDT4 then waits nevertheless while reordered packets are recent, as long
    /// as they were late.
    pub reorder_tolerance: u32,
    /// Fixes the sequence number of the first packet of connections opened by this side. Default random. For tests.
    pub initial_seq: Option<SeqNo>,
    /// Makes the congestion controller of each new connection. Default: `udt` of the registry.
    pub controller: ControllerFactory,
    /// What is known of paths from earlier connections. UDT4 alone uses it. Default none.
    pub path_memory: Option<Arc<dyn PathMemory>>,
    /// Settings of UDT4 alone.
    pub udt: UdtConfig,
}

impl Config {
    /// Largest number of packets that a connection holds for its reader: at most [`max_flow_window`](Self::max_flow_window).
    pub fn recv_window(&self) -> u32 {
        let payload = u64::from(self.mss - IP_UDP_HEADER) - HEADER_LEN as u64;
        let by_memory = u32::try_from(self.recv_buffer / payload).unwrap_or(u32::MAX);
        self.max_flow_window.min(by_memory).max(2)
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            mss: 1500,
            largest_mss: None,
            send_buffer: 512 << 20,
            recv_buffer: 512 << 20,
            max_rate: None,
            first_rate: None,
            interface_rate: None,
            connect_timeout: Duration::from_secs(5),
            peer_timeout: Duration::from_secs(30),
            linger: Duration::from_secs(30),
            keep_alive: Duration::from_secs(10),
            burst_time: BURST_TIME,
            max_connections: 65_536,
            backlog: 1024,
            stall_timeout: None,
            min_progress: None,
            max_flow_window: 262_144,
            reorder_tolerance: 0,
            initial_seq: None,
            controller: controller_factory(Spec::default()),
            path_memory: None,
            udt: UdtConfig::default(),
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

/// Makes a controller from a seed for its randomness. Copies share one function, which is locked while it runs.
#[derive(Clone)]
pub struct ControllerFactory(Arc<Mutex<MakeController>>);

type MakeController = dyn Fn(u64) -> Box<dyn Controller> + Send;

impl ControllerFactory {
    /// A factory that calls `make`.
    pub fn new(make: impl Fn(u64) -> Box<dyn Controller> + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(make)))
    }
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

impl Mode {
    /// The mode in one word: `stream` or `message`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stream => "stream",
            Self::Message => "message",
        }
    }
}

impl Config {
    /// A controller of a new connection. One that panics while it is made fails as one that panics later.
    pub fn supervised(&self, seed: u64) -> Supervised {
        Supervised::new(|| self.controller.0.lock().unwrap_or_else(PoisonError::into_inner)(seed))
    }
}

/// A factory for the controller that `spec` names.
pub fn controller_factory(spec: Spec) -> ControllerFactory {
    ControllerFactory::new(move |seed| spec.build(seed))
}
