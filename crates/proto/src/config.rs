//! Settings of an endpoint, each with its default, unit, range and reason.

use std::sync::Arc;

use farhaul_cc::{Controller, Spec};
use farhaul_units::{Duration, Rate, SeqNo};
use farhaul_wire::udt4::HEADER_LEN;

use crate::consts::IP_UDP_HEADER;
use crate::pacer::BURST_TIME;
use crate::path_memory::PathMemory;
use crate::shell::secrets::Secrets;
use crate::{fobs, hurricane, rbudp, sabul, tsunami, udt, udt2004};

/// Settings of an endpoint's connections: those that all protocols share, and one part for each protocol. An endpoint
/// ignores the parts of other protocols.
///
/// No default needs tuning, because buffers size themselves. UDT's option names stand in brackets, for readers who know
/// libudt.
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
    /// First rate of a blast protocol whose rate is found, headers included, such as what an earlier profile of the path
    /// found. A wrong one is left within a few RTTs. Other protocols ignore it. Default none.
    pub first_rate: Option<Rate>,
    /// Speed of the interface towards the peer, headers of IP included, if the host knows it. Default unknown. Hurricane
    /// sends no faster at a rate set by hand.
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
    /// Makes the congestion controller of each new connection. Default: `udt` of the registry.
    pub controller: ControllerFactory,
    /// What is known of paths from earlier connections. UDT4 alone uses it. Default none.
    pub path_memory: Option<Arc<dyn PathMemory>>,
    /// Settings of UDT4 alone.
    pub udt: udt::Config,
    /// Settings of the 2004 paper's protocol alone.
    pub udt2004: udt2004::Config,
    /// Settings of RBUDP alone.
    pub rbudp: rbudp::Options,
    /// Settings of Tsunami alone.
    pub tsunami: tsunami::Options,
    /// Settings of SABUL alone.
    pub sabul: sabul::Options,
    /// Settings of FOBS alone.
    pub fobs: fobs::Options,
    /// Settings of Hurricane alone.
    pub hurricane: hurricane::Options,
}

impl Config {
    /// Sets the largest flow window of a peer, in packets, in each protocol with a flow window.
    #[must_use]
    pub const fn flow_window(mut self, packets: u32) -> Self {
        self.udt.max_flow_window = packets;
        self.udt2004.max_flow_window = packets;
        self
    }

    /// Sets the packets that must arrive beyond a gap before it is reported as loss, in each protocol with loss reports.
    #[must_use]
    pub const fn reorder_tolerance(mut self, packets: u32) -> Self {
        self.udt.reorder_tolerance = packets;
        self.udt2004.reorder_tolerance = packets;
        self
    }

    /// Fixes the sequence number of the first packet, in each protocol that draws it. For tests.
    #[must_use]
    pub const fn initial_seq(mut self, number: SeqNo) -> Self {
        self.udt.initial_seq = Some(number);
        self.udt2004.initial_seq = Some(number);
        self
    }

    /// The same settings for another endpoint, whose controllers come from `controller`.
    #[must_use]
    pub fn copy_with(&self, controller: ControllerFactory) -> Self {
        Self {
            mss: self.mss,
            largest_mss: self.largest_mss,
            send_buffer: self.send_buffer,
            recv_buffer: self.recv_buffer,
            max_rate: self.max_rate,
            first_rate: self.first_rate,
            interface_rate: self.interface_rate,
            connect_timeout: self.connect_timeout,
            peer_timeout: self.peer_timeout,
            linger: self.linger,
            keep_alive: self.keep_alive,
            burst_time: self.burst_time,
            max_connections: self.max_connections,
            backlog: self.backlog,
            stall_timeout: self.stall_timeout,
            min_progress: self.min_progress,
            controller,
            path_memory: self.path_memory.clone(),
            udt: self.udt.clone(),
            udt2004: self.udt2004.clone(),
            rbudp: self.rbudp.clone(),
            tsunami: self.tsunami,
            sabul: self.sabul.clone(),
            fobs: self.fobs.clone(),
            hurricane: self.hurricane.clone(),
        }
    }

    /// Largest number of packets that a connection holds for its reader, of at most `max_flow_window` packets.
    pub(crate) fn recv_window(&self, max_flow_window: u32) -> u32 {
        let payload = u64::from(self.mss - IP_UDP_HEADER) - HEADER_LEN as u64;
        let by_memory = u32::try_from(self.recv_buffer / payload).unwrap_or(u32::MAX);
        max_flow_window.min(by_memory).max(2)
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
            controller: controller_factory(Spec::default()),
            path_memory: None,
            udt: udt::Config::default(),
            udt2004: udt2004::Config::default(),
            rbudp: rbudp::Options::default(),
            tsunami: tsunami::Options::default(),
            sabul: sabul::Options::default(),
            fobs: fobs::Options::default(),
            hurricane: hurricane::Options::default(),
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

impl Entropy {
    /// Makes as many others from it as are needed. None reveals another one.
    pub(crate) fn divided(self) -> impl FnMut() -> Self {
        let mut secrets = Secrets::new(self.cookie_key);
        move || {
            let mut cookie_key = [0; 16];
            cookie_key.chunks_mut(4).for_each(|chunk| chunk.copy_from_slice(&secrets.draw().to_be_bytes()));
            let seed = u64::from(secrets.draw()) << 32 | u64::from(secrets.draw());
            Self { cookie_key, seed: seed ^ self.seed }
        }
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

/// A factory for the controller that `spec` names.
pub fn controller_factory(spec: Spec) -> ControllerFactory {
    Box::new(move |seed| spec.build(seed))
}
