//! Settings of an endpoint, before its port is opened.

mod range;

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use farhaul_cc::{Controller, Spec};
use farhaul_proto::{Config, Entropy, MinProgress};
use farhaul_udp::Options;
use farhaul_units::Rate;

use crate::canceller::CancelFlag;
use crate::connection::Host;
use crate::driver::Driver;
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::protocol::{AnyEndpoint, Protocol};

/// Receive buffer to ask the system for: 10 ms at 25 Gbit/s, so that a driver thread that had to wait for a processor
/// loses nothing. The system takes memory only for what is in it.
const UDP_RECV_BUFFER: usize = 32 << 20;

/// Chooses settings, then opens the port: see [`Endpoint::builder`].
///
/// Nothing needs tuning; every setting has a default that sizes itself or suits long fat paths. For those who come from
/// libudt:
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
/// | `UDT_RENDEZVOUS` | [`Endpoint::rendezvous`] | |
/// | `UDT_SNDTIMEO`, `UDT_RCVTIMEO` | [`set_write_timeout`](crate::Connection::set_write_timeout), [`set_read_timeout`](crate::Connection::set_read_timeout) | none |
/// | `UDT_SNDSYN`, `UDT_RCVSYN` | the blocking calls, or the feature `tokio` | blocking |
/// | `UDT_REUSEADDR` | one endpoint holds any number of connections | |
/// | `UDT_SNDDATA`, `UDT_RCVDATA`, `perfmon` | [`stats`](crate::Connection::stats) | |
///
/// ```
/// use std::time::Duration;
/// # fn main() -> Result<(), farhaul::Error> {
/// let endpoint = farhaul::Endpoint::builder()
///     .mss(9000)
///     .peer_timeout(Duration::from_secs(120))
///     .controller("udt")
///     .bind("127.0.0.1:0".parse().expect("an address"))?;
/// # Ok(())
/// # }
/// ```
#[must_use = "a builder opens nothing until `bind`"]
pub struct Builder {
    protocol: Protocol,
    config: Config,
    options: Options,
    controller: Choice,
}

/// Where controllers come from.
enum Choice {
    /// What the configuration says.
    Default,
    /// A name with options, checked when the port is opened.
    Named(String),
    /// The user's own.
    Made,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            protocol: Protocol::default(),
            config: Config::default(),
            options: Options { recv_buffer: UDP_RECV_BUFFER, timestamps: true, ..Options::default() },
            controller: Choice::Default,
        }
    }
}

impl Builder {
    /// The wire protocol; both sides of a connection must speak the same. Default UDT4.
    pub fn protocol(mut self, protocol: Protocol) -> Self {
        self.protocol = protocol;
        self
    }

    /// Largest packet in bytes, IP, UDP and UDT headers included (44 bytes of these over IPv4); 576..=65 535. Default 1500.
    /// The smaller of both sides holds. Every IPv4 host takes 576 bytes (RFC 791); peers that offer less are refused as
    /// well.
    pub fn mss(mut self, bytes: u32) -> Self {
        self.config.mss = bytes;
        self
    }

    /// Largest flow window that a peer may fill, in packets; 2..=268 435 456. Default 262 144: 3 Gbit/s at a round trip of
    /// one second. Memory is taken as data arrives, never for the window.
    pub fn max_flow_window(mut self, packets: u32) -> Self {
        self.config.max_flow_window = packets;
        self
    }

    /// Cap of one connection's send buffer in bytes; at least one packet ([`mss`](Builder::mss)). Default 512 MiB; memory is
    /// taken as the path needs it. No message can be longer.
    pub fn send_buffer(mut self, bytes: u64) -> Self {
        self.config.send_buffer = bytes;
        self
    }

    /// Cap of one connection's receive buffer in bytes; at least one packet ([`mss`](Builder::mss)). Default 512 MiB; memory
    /// is taken as data arrives. A peer never has more than this under way, so a cap below bandwidth × round trip caps the
    /// rate.
    pub fn recv_buffer(mut self, bytes: u64) -> Self {
        self.config.recv_buffer = bytes;
        self
    }

    /// Send buffer of the UDP port to ask the system for, in bytes. Default 4 MiB. The system may give less:
    /// [`Endpoint::warnings`] says so.
    pub fn udp_send_buffer(mut self, bytes: usize) -> Self {
        self.options.send_buffer = bytes;
        self
    }

    /// Receive buffer of the UDP port to ask the system for, in bytes. Default 32 MiB: 10 ms at 25 Gbit/s. The system may
    /// give less: [`Endpoint::warnings`] says so.
    pub fn udp_recv_buffer(mut self, bytes: usize) -> Self {
        self.options.recv_buffer = bytes;
        self
    }

    /// Whether the system's segmentation and receive offloads (GSO, GRO) are used where they exist. Default: yes. One that
    /// fails at run time is switched off by itself.
    pub fn offload(mut self, on: bool) -> Self {
        self.options.offload = on;
        self
    }

    /// Cap of the sending rate of each connection, headers and retransmissions included; above zero. Default: none, the
    /// congestion controller decides.
    pub fn max_rate(mut self, rate: Rate) -> Self {
        self.config.max_rate = Some(rate);
        self
    }

    /// How long a connection attempt may take; above zero, a year at most. Default 5 s.
    pub fn connect_timeout(mut self, time: Duration) -> Self {
        self.config.connect_timeout = time;
        self
    }

    /// How long a [`rendezvous`](Endpoint::rendezvous) may take, from the first side's call on; above zero, a year at most.
    /// Default 30 s.
    pub fn rendezvous_timeout(mut self, time: Duration) -> Self {
        self.config.rendezvous_timeout = time;
        self
    }

    /// Silence of the peer after which a connection is lost; above zero, a year at most. Default 30 s. Live peers send
    /// keep-alives, every 10 s in the case of this library, so values of few seconds cut off idle ones.
    pub fn peer_timeout(mut self, time: Duration) -> Self {
        self.config.peer_timeout = time;
        self
    }

    /// How long [`finish`](crate::Connection::finish) waits for the last acknowledgement while nothing moves; above zero, a
    /// year at most. Default 30 s.
    pub fn linger(mut self, time: Duration) -> Self {
        self.config.linger = time;
        self
    }

    /// Mean time between the keep-alives of an idle connection, each varied by ±20 %; from 10 ms to an hour. Default 10 s.
    /// Must stay below the peer's own time-out, which is 53 s in libudt, and below what address translators remember, often 30 s.
    pub fn keep_alive(mut self, time: Duration) -> Self {
        self.config.keep_alive = time;
        self
    }

    /// Packets that must arrive beyond a gap before it counts as loss; 0..=65 536. Default 0: a gap is reported at once,
    /// and only where packets were seen to overtake others as much later as that made them.
    pub fn reorder_tolerance(mut self, packets: u32) -> Self {
        self.config.reorder_tolerance = packets;
        self
    }

    /// Connections that the endpoint may hold, opened and accepted; at least 1. Default 65 536. Further ones are refused.
    pub fn max_connections(mut self, count: usize) -> Self {
        self.config.max_connections = count;
        self
    }

    /// Connections that may wait to be accepted while listening; at least 1. Default 1024. Further ones are refused.
    pub fn backlog(mut self, count: usize) -> Self {
        self.config.backlog = count;
        self
    }

    /// How long a peer that is alive may take no data at all while data waits for it, before its connection ends with
    /// [`ConnectionLost::NoProgress`](crate::ConnectionLost::NoProgress); above zero, a year at most. Default: for ever, since
    /// a reader may pause. [`min_progress`](Builder::min_progress) also ends the connections of peers that take hardly any.
    pub fn stall_timeout(mut self, time: Duration) -> Self {
        self.config.stall_timeout = Some(time);
        self
    }

    /// The least that peers must take while data waits for them, or their connection ends; for daemons, whose peers may
    /// hold connections by taking a byte now and then: [`MinProgress::DAEMON`]. Its time is above zero, a year at most. Default:
    /// nothing is asked for.
    pub fn min_progress(mut self, floor: MinProgress) -> Self {
        self.config.min_progress = Some(floor);
        self
    }

    /// The congestion controller by name, with its options: `udt`, `udt:native`, `fixed:rate=500mbit`. Default `udt`. The
    /// names are checked by [`bind`](Builder::bind).
    pub fn controller(mut self, spec: impl Into<String>) -> Self {
        self.controller = Choice::Named(spec.into());
        self
    }

    /// A congestion controller of your own in place of a named one (`CCCFactory`), made anew for each connection from a seed
    /// for its randomness. See the example `controller`. It may talk to the one at the other end by custom packets:
    /// [`send_custom`](crate::Connection::send_custom).
    pub fn controller_with(mut self, make: impl Fn(u64) -> Box<dyn Controller> + Send + 'static) -> Self {
        self.config.controller = Box::new(make);
        self.controller = Choice::Made;
        self
    }

    /// Opens the UDP port at `address`; port 0 lets the system choose.
    ///
    /// # Errors
    /// A setting is out of its range, or the port cannot be opened.
    pub fn bind(self, address: SocketAddr) -> Result<Endpoint, Error> {
        let Self { protocol, mut config, options, controller } = self;
        range::check(&config)?;
        let named = match (controller, protocol) {
            (Choice::Named(spec), _) => Some(spec),
            (Choice::Default, Protocol::Udt2004) => Some("udt-2004".into()),
            _ => None,
        };
        if let Some(spec) = named {
            let spec: Spec = spec.parse().map_err(|error| Error::Controller(format!("{error}")))?;
            config.controller = Box::new(move |seed| spec.build(seed));
        }
        let longest_message = config.send_buffer;
        let connect_timeouts = [config.connect_timeout, config.rendezvous_timeout];
        let transport = AnyEndpoint::new(protocol, config, entropy()?);
        let driver = Driver::start(transport, address, options)?;
        let cancelled = Arc::new(CancelFlag::new());
        Ok(Endpoint::from_host(Host { driver, cancelled, connect_timeouts, longest_message }))
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let controller = match &self.controller {
            Choice::Default => "udt",
            Choice::Named(spec) => spec,
            Choice::Made => "the caller's own",
        };
        f.debug_struct("Builder")
            .field("mss", &self.config.mss)
            .field("max_rate", &self.config.max_rate)
            .field("controller", &controller)
            .finish_non_exhaustive()
    }
}

/// Secrets and seeds from the operating system.
fn entropy() -> Result<Entropy, Error> {
    let mut bytes = [0; 24];
    getrandom::fill(&mut bytes)
        .map_err(|error| Error::System { what: "randomness", source: std::io::Error::other(error) })?;
    let (mut cookie_key, mut seed) = ([0; 16], [0; 8]);
    cookie_key.copy_from_slice(&bytes[..16]);
    seed.copy_from_slice(&bytes[16..]);
    Ok(Entropy { cookie_key, seed: u64::from_ne_bytes(seed) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bind(builder: Builder) -> Result<Endpoint, Error> {
        builder.bind(SocketAddr::from(([127, 0, 0, 1], 0)))
    }

    #[test]
    fn an_unknown_controller_is_refused_with_the_known_ones() {
        let message = bind(Endpoint::builder().controller("warp")).unwrap_err().to_string();
        assert!(message.contains("warp") && message.contains("udt"), "{message}");
    }

    #[test]
    fn a_taken_port_is_an_error_that_names_it() {
        let first = bind(Endpoint::builder()).unwrap();
        let error = Endpoint::builder().bind(first.local_addr()).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
        assert!(error.to_string().contains(&first.local_addr().to_string()), "{error}");
    }
}
