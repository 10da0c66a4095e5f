//! Settings of an endpoint, before its port is opened.

mod packet_size;
mod range;

use std::fmt;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use farhaul_cc::{Controller, Spec};
use farhaul_proto::{Config, ControllerFactory, MinProgress, PathMemory, controller_factory};
use farhaul_protocols::Protocol;
use farhaul_udp::Options;
use farhaul_units::Rate;

use crate::canceller::CancelFlag;
use crate::driver::{Driver, UdpPort, once_closed};
use crate::error::{ControllerError, Error};
use crate::port::Port;
use crate::randomness::entropy;
use crate::security::{PlainClients, Security};

/// Receive buffer that each UDP port requests from the system by default, in bytes: 10 ms at 25 Gbit/s, so that a driver
/// thread that waits for a processor loses nothing. The system uses memory only for its content.
pub const UDP_RECV_BUFFER: usize = 32 << 20;

/// Chooses settings, then opens the port. See [`Endpoint::builder`](crate::Endpoint::builder).
///
/// No setting needs tuning. Every default sizes itself or suits long fat paths. One choice has no default: whether
/// connections are [encrypted](Builder::secure) or [plain](Builder::plain). For readers who know libudt:
///
/// | UDT option | method | default |
/// | --- | --- | --- |
/// | `UDT_MSS` | [`mss`](Builder::mss) | 1500 bytes |
/// | `UDT_FC` | [`max_flow_window`](Builder::max_flow_window) | 262 144 packets |
/// | `UDT_SNDBUF` | [`send_buffer`](Builder::send_buffer) | at most 512 MiB, as the path needs |
/// | `UDT_RCVBUF` | [`recv_buffer`](Builder::recv_buffer) | at most 512 MiB, as the path needs |
/// | `UDP_SNDBUF` | [`udp_send_buffer`](Builder::udp_send_buffer) | 4 MiB |
/// | `UDP_RCVBUF` | [`udp_recv_buffer`](Builder::udp_recv_buffer) | 32 MiB |
/// | `UDT_LINGER` | [`linger`](Builder::linger) | 30 s without progress |
/// | `UDT_MAXBW` | [`max_rate`](Builder::max_rate) | none |
/// | `UDT_CC` | [`controller`](Builder::controller), [`controller_with`](Builder::controller_with) | `udt` |
/// | none: libudt has no encryption | [`secure`](Builder::secure), [`plain`](Builder::plain) | none: one must be chosen |
/// | `UDT_RENDEZVOUS` | [`ConnectOptions::rendezvous`](crate::ConnectOptions::rendezvous) | |
/// | `UDT_SNDTIMEO`, `UDT_RCVTIMEO` | [`set_write_timeout`](crate::Connection::set_write_timeout), [`set_read_timeout`](crate::Connection::set_read_timeout) | none |
/// | `UDT_SNDSYN`, `UDT_RCVSYN` | the blocking calls, or the feature `tokio` | blocking |
/// | `UDT_REUSEADDR` | one endpoint holds any number of connections | |
/// | `UDT_SNDDATA`, `UDT_RCVDATA`, `perfmon` | [`stats`](crate::Connection::stats) | |
///
/// ```
/// use std::time::Duration;
/// # fn main() -> Result<(), farhaul::Error> {
/// let endpoint = farhaul::Endpoint::builder()
///     .plain()
///     .mss(9000)
///     .peer_timeout(Duration::from_secs(120))
///     .controller("udt")
///     .bind("127.0.0.1:0".parse().expect("an address"))?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use = "a builder opens nothing until `bind`"]
pub struct Builder {
    protocol: Protocol,
    config: Config,
    options: Options,
    controller: Choice,
    answers_probes: bool,
    probes_mtu: bool,
    peer: Option<IpAddr>,
    protection: Option<Protected>,
    plain_clients: Option<PlainClients>,
}

/// The protection of a port's connections, which a user must choose.
#[derive(Clone)]
enum Protected {
    No,
    By(Security),
}

/// The origin of controllers.
#[derive(Clone)]
enum Choice {
    /// The protocol's.
    Default,
    /// A name with options, checked when the port is opened.
    Named(String),
    /// The user's own.
    Made,
}

/// The settings of the core, with what is meant for real peers alone.
fn config() -> Config {
    let mut config = Config::default();
    config.udt.withhold_packets = true;
    config
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            protocol: Protocol::default(),
            config: config(),
            options: Options { recv_buffer: UDP_RECV_BUFFER, timestamps: true, ..Options::default() },
            controller: Choice::Default,
            answers_probes: false,
            probes_mtu: false,
            peer: None,
            protection: None,
            plain_clients: None,
        }
    }
}

impl Builder {
    /// The wire protocol, with its options. Both sides of a connection must use the same. Default UDT4.
    /// [`protocols`](crate::registry::protocols) lists all. Those of the papers beside UDT need the feature `papers`.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let builder = farhaul::Endpoint::builder().protocol("udt".parse()?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn protocol(mut self, protocol: Protocol) -> Self {
        self.protocol = protocol;
        self
    }

    /// Largest packet in bytes, IP, UDP and UDT headers included (44 bytes over IPv4). Range 576..=65 535, default
    /// 1500.
    ///
    /// The smaller value of both sides applies. Every IPv4 host accepts 576 bytes (RFC 791). Peers that offer less are
    /// refused.
    pub fn mss(mut self, bytes: u32) -> Self {
        self.config.mss = bytes;
        self.probes_mtu = false;
        self
    }

    /// Lets UDT4 connections between two ports with this setting find the packet size of their path by probes (RFC 8899), and follow it
    /// when it changes. They begin with 1500 bytes, and use up to 9000 if the path and both interfaces carry them. Connections with other
    /// peers, and over the loopback interface, keep 1500 bytes. Replaces [`mss`](Builder::mss), which fixes the size.
    ///
    /// Other protocols ignore it.
    pub fn probe_mtu(mut self) -> Self {
        self.probes_mtu = true;
        self
    }

    /// Largest flow window of a peer, in packets. Range 2..=268 435 456, default 262 144, which is 3 Gbit/s at an RTT
    /// of one second. Memory grows with arriving data, not with this value.
    pub fn max_flow_window(mut self, packets: u32) -> Self {
        self.config.max_flow_window = packets;
        self
    }

    /// Cap of one connection's send buffer in bytes, at least one packet ([`mss`](Builder::mss)). Default 512 MiB.
    /// Memory grows to the path's need. A message cannot be longer.
    pub fn send_buffer(mut self, bytes: u64) -> Self {
        self.config.send_buffer = bytes;
        self
    }

    /// Cap of one connection's receive buffer in bytes, at least one packet ([`mss`](Builder::mss)). Default 512 MiB.
    /// Memory grows with arriving data. A cap below bandwidth × RTT limits the rate, because it bounds the data in
    /// flight.
    pub fn recv_buffer(mut self, bytes: u64) -> Self {
        self.config.recv_buffer = bytes;
        self
    }

    /// Send buffer of the UDP port to request from the system, in bytes. Default 4 MiB. If the system grants less,
    /// [`Endpoint::warnings`](crate::Endpoint::warnings) reports it.
    pub fn udp_send_buffer(mut self, bytes: usize) -> Self {
        self.options.send_buffer = bytes;
        self
    }

    /// Receive buffer of the UDP port to request from the system, in bytes. Default 32 MiB, which is 10 ms at 25
    /// Gbit/s. If the system grants less, [`Endpoint::warnings`](crate::Endpoint::warnings) reports it.
    pub fn udp_recv_buffer(mut self, bytes: usize) -> Self {
        self.options.recv_buffer = bytes;
        self
    }

    /// Whether to use the system's segmentation and receive offloads (GSO, GRO) where they exist. Default: yes. An
    /// offload that fails at run time is switched off automatically.
    pub fn offload(mut self, on: bool) -> Self {
        self.options.offload = on;
        self
    }

    /// Cap of each connection's send rate, headers and retransmissions included. Must exceed zero. Default: none.
    pub fn max_rate(mut self, rate: Rate) -> Self {
        self.config.max_rate = Some(rate);
        self
    }

    /// First rate of a sender that finds its rate during the transfer, headers of IP and UDP included. Default: none.
    ///
    /// Protocols for dedicated channels begin there, for example at
    /// [`CachedRate::first_rate`](crate::probe::CachedRate::first_rate). Other protocols and fixed rates ignore it. A
    /// wrong rate is left within a few round trips.
    pub fn first_rate(mut self, rate: Rate) -> Self {
        self.config.first_rate = Some(rate);
        self
    }

    /// Where connections keep what they have found of paths, so that the next ones begin with it: [`RecentPaths`], or a program's
    /// own. The default controller uses it; those of the papers begin as the papers say. Default none.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// let builder = farhaul::Endpoint::builder().plain().path_memory(Arc::new(farhaul::RecentPaths::of_user()));
    /// # drop(builder);
    /// ```
    ///
    /// [`RecentPaths`]: crate::RecentPaths
    pub fn path_memory(mut self, memory: Arc<dyn PathMemory>) -> Self {
        self.config.path_memory = Some(memory);
        self
    }

    /// Longest time for a connection attempt. Above zero, at most a year. Default 5 s.
    ///
    /// An attempt at a port that its host reports as closed ends after 2 s. With more than the default it lasts the whole
    /// time, so that the listener may start meanwhile.
    pub fn connect_timeout(mut self, time: Duration) -> Self {
        self.config.connect_timeout = time;
        self
    }

    /// Longest time for a [rendezvous](crate::ConnectOptions::rendezvous), from the first side's call. Above zero, at most a year.
    /// Default 30 s.
    pub fn rendezvous_timeout(mut self, time: Duration) -> Self {
        self.config.udt.rendezvous_timeout = time;
        self
    }

    /// Silence of the peer that ends a connection. Above zero, at most a year. Default 30 s. Live peers send
    /// keep-alives, this library every 10 s, so values of a few seconds end idle connections.
    pub fn peer_timeout(mut self, time: Duration) -> Self {
        self.config.peer_timeout = time;
        self
    }

    /// Longest time without progress that [`finish`](crate::Connection::finish) waits for the last acknowledgement.
    /// Above zero, at most a year. Default 30 s.
    pub fn linger(mut self, time: Duration) -> Self {
        self.config.linger = time;
        self
    }

    /// Sends as programs of libudt expect, over UDT. One receive call of the peer finds a short write to a stream whole: a write
    /// that fits into one packet is not cut. A message leaves once even if its time to live has passed, and is dropped only if it
    /// is lost. By default, packets are filled, and expired messages do not leave.
    pub fn sends_as_libudt(mut self) -> Self {
        self.config.udt.sends_as_libudt = true;
        self
    }

    /// Mean time between keep-alives of an idle connection, each varied by ±20 %. Range 10 ms to an hour, default 10 s.
    ///
    /// It must stay below the peer's time-out, 53 s in libudt, and below the memory of address translators, often 30 s.
    pub fn keep_alive(mut self, time: Duration) -> Self {
        self.config.keep_alive = time;
        self
    }

    /// Packets that must arrive beyond a gap before it counts as loss. Range 0..=65 536.
    ///
    /// Default 0: a gap is reported at once, unless the path has reordered packets recently. Then the report waits as
    /// long as reordered packets were late.
    pub fn reorder_tolerance(mut self, packets: u32) -> Self {
        self.config.reorder_tolerance = packets;
        self
    }

    /// Largest number of connections of the endpoint, opened and accepted. At least 1, default 65 536. Further ones are
    /// refused.
    pub fn max_connections(mut self, count: usize) -> Self {
        self.config.max_connections = count;
        self
    }

    /// Largest number of connections that wait to be accepted. At least 1, default 1024. Further ones are refused.
    pub fn backlog(mut self, count: usize) -> Self {
        self.config.backlog = count;
        self
    }

    /// Longest time that a live peer may accept no data while data waits for it. Then its connection ends with
    /// [`ConnectionLost::NoProgress`](crate::ConnectionLost::NoProgress). Above zero, at most a year.
    ///
    /// Default: for ever, because a reader may pause. [`min_progress`](Builder::min_progress) also ends connections of
    /// peers that accept data too slowly.
    pub fn stall_timeout(mut self, time: Duration) -> Self {
        self.config.stall_timeout = Some(time);
        self
    }

    /// Slowest progress of a peer while data waits for it. Slower peers lose their connection. Its time must be above
    /// zero and at most a year. Default: no requirement.
    ///
    /// For daemons, whose peers could hold connections by accepting a byte now and then: [`MinProgress::DAEMON`].
    pub fn min_progress(mut self, floor: MinProgress) -> Self {
        self.config.min_progress = Some(floor);
        self
    }

    /// The congestion controller by name, with its options: `union`, `udt`, `fixed:rate=500mbit`. Default: the
    /// protocol's own, which is `union` for the protocol `udt`. [`bind`](Builder::bind) checks the name.
    pub fn controller(mut self, spec: impl Into<String>) -> Self {
        self.controller = Choice::Named(spec.into());
        self
    }

    /// A custom congestion controller (`CCCFactory`). `make` builds one for each connection from a seed for its
    /// randomness. See the example `controller`. Ports of copies of this builder share `make`, and call it one at a time.
    ///
    /// It can exchange custom packets with the controller at the other end:
    /// [`send_custom`](crate::Connection::send_custom).
    pub fn controller_with(mut self, make: impl Fn(u64) -> Box<dyn Controller> + Send + 'static) -> Self {
        self.config.controller = ControllerFactory::new(make);
        self.controller = Choice::Made;
        self
    }

    /// Names the peer that the endpoint is for, so that it knows the interface of the path there. Default:
    /// unknown. Hurricane uses its speed, as a bound of a rate set by hand, and [`probe_mtu`](Builder::probe_mtu) its largest packet.
    pub fn towards(mut self, peer: IpAddr) -> Self {
        self.peer = Some(peer);
        self
    }

    /// Whether the port answers measured streams: [`probe`](crate::probe). Default false.
    ///
    /// It acknowledges and counts their datagrams: on a [plain](Builder::plain) port for anybody who sends them, on a
    /// [secure](Builder::secure) one for peers whose keys are admitted, while it listens for streams. No answer is longer
    /// than its question, and the number of streams is bounded.
    pub fn answer_probes(mut self, answer: bool) -> Self {
        self.answers_probes = answer;
        self
    }

    /// Encrypts and authenticates every connection of the port, by TLS 1.3. Both sides must do so.
    ///
    /// A port has either this or [`plain`](Self::plain). With this, it may serve some [plain clients](Self::plain_clients), too. A program that knows the key of its peer gives it as
    /// [`Pinned`](crate::security::Pinned). See [`security`](crate::security) for others, and the example `secure`.
    pub fn secure(mut self, security: Security) -> Self {
        self.protection = Some(Protected::By(security));
        self
    }

    /// Neither encrypts nor authenticates, and is compatible with libudt. Everybody on the path can read, change and forge
    /// all data.
    pub fn plain(mut self) -> Self {
        self.protection = Some(Protected::No);
        self
    }

    /// Serves plain UDT4 clients as well, from some networks alone, on a port that [encrypts](Self::secure). The first byte of
    /// a datagram tells the kinds apart. [`Connection::is_plain`](crate::Connection::is_plain) tells them to the program, which
    /// should permit plain clients little. Connections that the port opens are encrypted.
    ///
    /// The port then has the limits of [`max_connections`](Self::max_connections) and [`backlog`](Self::backlog) twice, so that
    /// neither kind takes the places of the other one.
    pub fn plain_clients(mut self, clients: PlainClients) -> Self {
        self.plain_clients = Some(clients);
        self
    }

    /// Binds a socket with the buffers of these settings, and starts no thread. A program may give up rights before it hands the
    /// socket to [`adopt`](Self::adopt).
    ///
    /// # Errors
    /// The address is taken, or does not belong to this machine.
    pub fn socket(&self, address: SocketAddr) -> Result<UdpSocket, Error> {
        let open = || farhaul_udp::UdpSocket::bound(address, self.options);
        once_closed(address, open).map_err(|source| Error::Bind { address, source })
    }

    /// Opens a port with these settings.
    pub(crate) fn open(self, port: UdpPort) -> Result<Port, Error> {
        let Self {
            protocol,
            mut config,
            options,
            controller,
            answers_probes,
            probes_mtu,
            peer,
            protection,
            plain_clients,
        } = self;
        if probes_mtu && protocol.entry().name == Protocol::default().entry().name {
            packet_size::by_interface(&mut config, peer);
        }
        range::check(&config)?;
        config.interface_rate = peer.and_then(|peer| farhaul_udp::interface_rate(peer, config.mss));
        if let Some(spec) = chosen(controller, &protocol)? {
            config.controller = controller_factory(spec);
        }
        let longest_message = config.send_buffer;
        let connect_timeouts = [config.connect_timeout, config.udt.rendezvous_timeout];
        let logs_secrets = matches!(&protection, Some(Protected::By(security)) if security.logs_secrets());
        let transport = match protection {
            None => return Err(Error::NoProtection),
            Some(Protected::No) if plain_clients.is_some() => return Err(Error::NoPlainClients),
            Some(Protected::No) => protocol.endpoint(config, entropy()?),
            Some(Protected::By(security)) => security.endpoint(&protocol, config, plain_clients, entropy()?)?,
        };
        let driver = Driver::start(transport, port, options)?;
        if answers_probes {
            driver.learn_destinations()?;
            driver.lock()?.answer_probes();
        }
        let cancelled = Arc::new(CancelFlag::new());
        Ok(Port { driver, cancelled, connect_timeouts, longest_message, logs_secrets })
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let controller = match &self.controller {
            Choice::Default => "the protocol's default",
            Choice::Named(spec) => spec,
            Choice::Made => "the caller's own",
        };
        f.debug_struct("Builder")
            .field("protocol", &self.protocol)
            .field("mss", &self.config.mss)
            .field("max_rate", &self.config.max_rate)
            .field("controller", &controller)
            .finish_non_exhaustive()
    }
}

/// The named controller, or the protocol's default one; `None` if the configuration has it.
fn chosen(choice: Choice, protocol: &Protocol) -> Result<Option<Spec>, Error> {
    let default = protocol.controller();
    match choice {
        Choice::Default => Ok(default),
        _ if default.is_none() => Err(ControllerError::NoneIn(protocol.entry().name).into()),
        Choice::Named(spec) => Ok(Some(spec.parse().map_err(ControllerError::Spec)?)),
        Choice::Made => Ok(None),
    }
}
