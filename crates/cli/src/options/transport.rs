//! Options of every verb that opens connections, and the endpoint that they configure.

use std::ffi::OsStr;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use clap::builder::{BoolishValueParser, PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, Args, Command};
use farhaul::probe::{CachedRate, cached_rate};
use farhaul::registry::protocols;
use farhaul::security::{PlainClients, Security};
use farhaul::{Builder, Endpoint, Error, MinProgress, Protocol, RecentPaths};
use farhaul_cc::Spec;
use farhaul_units::{ByteSize, Rate};

use super::key_log::KeyLogFile;
use super::{ByHand, SecurityOptions};
use crate::exit::Fault;
use crate::fault;
use crate::output::Output;
use crate::output::json::Start;
use crate::output::trace::Trace;
use crate::session::measure::Caps;
use crate::trust::Admission;
use crate::values::{some_rate, some_time};

/// Options of every verb that opens connections.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Connection")]
pub(crate) struct Transport {
    /// Congestion controller and its options; `farhaul controllers` lists them [default: the protocol's]
    #[arg(long, env = "FARHAUL_CONTROLLER", value_name = "NAME[:K=V,…]")]
    controller: Option<Spec>,
    /// Wire protocol and its options; `farhaul protocols` lists them
    #[arg(
        long,
        env = "FARHAUL_PROTOCOL",
        value_name = "NAME[:K=V,…]",
        default_value = protocols()[0].name,
        value_parser = ProtocolParser
    )]
    protocol: Protocol,
    /// Cap on the sending rate, headers and retransmissions included: 950mbit. For protocols without congestion control
    /// it is the rate, and auto finds it [default: auto]
    #[arg(long, env = "FARHAUL_RATE", value_name = "RATE", value_parser = cap)]
    rate: Option<Cap>,
    /// Largest packet in bytes, IP and UDP headers included; the smaller value of the two sides applies [default: found by
    /// probes]
    #[arg(long, env = "FARHAUL_MTU", value_name = "BYTES", value_parser = packet_size)]
    mtu: Option<u32>,
    /// Cap on each buffer: 64MiB [default: sized to the path]
    #[arg(long, env = "FARHAUL_BUFFER", value_name = "SIZE")]
    pub(crate) buffer: Option<ByteSize>,
    /// Give up a connection after the peer has been silent this long
    #[arg(long, env = "FARHAUL_TIMEOUT", value_name = "TIME", default_value = "30s", value_parser = some_time)]
    pub(crate) timeout: Duration,
    /// Give up connecting after this long
    #[arg(long, env = "FARHAUL_CONNECT_TIMEOUT", value_name = "TIME", default_value = "5s", value_parser = some_time)]
    pub(crate) connect_timeout: Duration,
    /// Begin every connection anew, without what the last one found of its path, and keep nothing for the next
    #[arg(long, env = "FARHAUL_NO_PATH_MEMORY", value_parser = BoolishValueParser::new())]
    no_path_memory: bool,
    /// Write the connection's metrics to this file 50 times a second, as a qlog-like JSON sequence
    #[arg(long, env = "FARHAUL_TRACE", value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// Print one JSON record per line: start, interval, file, warning, end
    #[arg(long, env = "FARHAUL_JSON", value_parser = BoolishValueParser::new())]
    pub(crate) json: bool,
    /// Write the secrets of connections to this file, in the NSS key log format. For debugging alone: whoever has the file can read
    /// and forge everything
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    unsafe_keylog: Option<PathBuf>,
    #[command(flatten)]
    by_hand: ByHand,
    #[command(flatten)]
    pub(crate) security: SecurityOptions,
}

/// Smallest packet that two sides agree on: every IPv4 host accepts it (RFC 791, section 3.1).
const LEAST_PACKET: u32 = 576;
/// Largest value of the length field in an IP header.
const LONGEST_PACKET: u32 = 65_535;

/// The largest packet of most paths: that of Ethernet.
const USUAL_PACKET: u32 = 1_500;

/// What this user's connections have found of paths. All ports of this program share it, so that one connection begins with it.
static RECENT: OnceLock<Arc<RecentPaths>> = OnceLock::new();

/// A cap on the sending rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cap {
    Auto,
    At(Rate),
}

fn cap(text: &str) -> Result<Cap, String> {
    if text == "auto" { Ok(Cap::Auto) } else { some_rate(text).map(Cap::At) }
}

/// Reads the size of a packet, in bytes.
pub(super) fn packet_size(text: &str) -> Result<u32, String> {
    let bytes = text.parse().map_err(|_| format!("'{text}' is no whole number of bytes"))?;
    match bytes {
        ..LEAST_PACKET => {
            Err(format!("no peer agrees to less than {LEAST_PACKET} bytes, which every IPv4 host accepts (RFC 791)"))
        }
        LEAST_PACKET..=LONGEST_PACKET => Ok(bytes),
        _ => Err(format!("no IP packet is longer than {LONGEST_PACKET} bytes")),
    }
}

/// Reads a protocol with its options. Help and completions list the names of the registry.
#[derive(Clone)]
struct ProtocolParser;

impl TypedValueParser for ProtocolParser {
    type Value = Protocol;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<Protocol, clap::Error> {
        StringValueParser::new().try_map(|text| text.parse::<Protocol>()).parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(protocols().iter().map(|entry| PossibleValue::new(entry.name).help(entry.summary))))
    }
}

impl Transport {
    /// The wire protocol with all its options.
    pub(crate) fn protocol(&self) -> Protocol {
        self.by_hand.applied_to(&self.protocol).unwrap_or_else(|_| self.protocol.clone())
    }

    /// Opens a UDP port for these clients with these settings. `None` for plain connections.
    pub(crate) fn bind(&self, address: SocketAddr, clients: Option<&Admission>) -> Result<Endpoint, Fault> {
        self.open(self.builder(), address, clients.map(Admission::security))
    }

    /// Opens a daemon's UDP port. Its connections require a minimum progress, so that a trickling peer cannot hold one.
    pub(crate) fn bind_daemon(
        &self,
        address: SocketAddr,
        clients: Option<&Admission>,
        plain: Option<PlainClients>,
    ) -> Result<Endpoint, Fault> {
        self.open(self.daemon(plain), address, clients.map(Admission::security))
    }

    fn daemon(&self, plain: Option<PlainClients>) -> Builder {
        // It may have no right to write outside of its root.
        let builder = self.with_memory(|| Arc::new(RecentPaths::in_memory())).min_progress(MinProgress::DAEMON);
        match plain {
            Some(plain) => builder.plain_clients(plain),
            None => builder,
        }
    }

    /// The same with a UDP port that the service manager has opened.
    pub(crate) fn adopt_daemon(
        &self,
        socket: UdpSocket,
        clients: Option<&Admission>,
        plain: Option<PlainClients>,
    ) -> Result<Endpoint, Fault> {
        let builder = self.daemon(plain);
        let address = socket.local_addr()?;
        self.protected(builder, clients.map(Admission::security))?
            .adopt(socket)
            .map_err(|error| fault_of(error, address))
    }

    /// Binds the socket of a daemon, to be adopted with fewer rights.
    pub(crate) fn socket(&self, address: SocketAddr) -> Result<UdpSocket, Fault> {
        self.builder().socket(address).map_err(|error| fault_of(error, address))
    }

    /// Opens a UDP port with this protection, for one copy.
    pub(crate) fn bind_secure(&self, address: SocketAddr, security: Security) -> Result<Endpoint, Fault> {
        self.open(self.builder(), address, Some(security))
    }

    /// Opens a UDP port with this protection, or for plain connections, to call and be called.
    pub(crate) fn bind_with(&self, address: SocketAddr, security: Option<Security>) -> Result<Endpoint, Fault> {
        self.open(self.builder(), address, security)
    }

    /// The packet size of what has no size of its own: the user's, or that of most paths.
    pub(crate) fn packet(&self) -> u32 {
        self.mtu.unwrap_or(USUAL_PACKET)
    }

    /// The user's cap on the sending rate, if there is one.
    pub(crate) const fn rate(&self) -> Option<Rate> {
        match self.rate {
            Some(Cap::At(rate)) => Some(rate),
            Some(Cap::Auto) | None => None,
        }
    }

    /// The effective congestion controller: the chosen one, or the protocol's. `None` if the protocol's own rules govern
    /// the rate. Then a controller from the environment or a file has no effect.
    fn controller(&self) -> Option<Spec> {
        let default = self.protocol.controller()?;
        Some(self.controller.clone().unwrap_or(default))
    }

    /// The effective congestion controller in records.
    pub(crate) fn controller_name(&self) -> String {
        self.controller().map_or_else(|| "none".to_owned(), |controller| controller.to_string())
    }

    fn builder(&self) -> Builder {
        self.with_memory(|| Arc::clone(RECENT.get_or_init(|| Arc::new(RecentPaths::of_user()))))
    }

    fn with_memory(&self, memory: fn() -> Arc<RecentPaths>) -> Builder {
        let mut builder = Endpoint::builder()
            .protocol(self.protocol())
            .connect_timeout(self.connect_timeout)
            .peer_timeout(self.timeout)
            .linger(self.timeout);
        builder = match self.mtu {
            Some(mtu) => builder.mss(mtu),
            None => builder.probe_mtu(),
        };
        if !self.no_path_memory {
            builder = builder.path_memory(memory());
        }
        if let Some(controller) = self.controller() {
            builder = builder.controller(controller.to_string());
        }
        if let Some(rate) = self.rate() {
            builder = builder.max_rate(rate);
        }
        if let Some(ByteSize(bytes)) = self.buffer {
            builder = builder.send_buffer(bytes).recv_buffer(bytes);
        }
        builder
    }

    /// Opens a UDP port of the system's choice for a connection to `peer`. A search for the rate begins with what was
    /// found by a profile of the path.
    pub(crate) fn bind_for(&self, peer: SocketAddr, security: Option<Security>) -> Result<Endpoint, Fault> {
        let mut builder = self.builder().towards(peer.ip());
        if let Some(known) = self.profiled(peer) {
            builder = builder.first_rate(known.first_rate());
        }
        let address = match peer {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        self.open(builder, address, security)
    }

    /// The best rate of the path to `peer` by a recent profile, if the rate is to be found.
    pub(crate) fn profiled(&self, peer: SocketAddr) -> Option<CachedRate> {
        if self.rate().is_none() && self.protocol.finds_rate() { cached_rate(peer) } else { None }
    }

    /// Checks that options which belong together are together.
    pub(crate) fn check(&self) -> Result<(), Fault> {
        self.by_hand.applied_to(&self.protocol).map(|_| ())
    }

    /// Requires `--plain` for something that cannot be encrypted.
    pub(crate) fn require_plain(&self, what: &str) -> Result<(), Fault> {
        if self.security.plain {
            return Ok(());
        }
        Err(Fault::usage(format!(
            "{what} cannot be encrypted yet: repeat the command with --plain if everybody on the path may read and change \
             the data"
        )))
    }

    /// The settings for a far program, as on a command line: those that the user gave for connections.
    pub(crate) fn for_far_program(&self) -> Vec<String> {
        let seconds = |time: Duration| format!("{}us", time.as_micros());
        let mut words = vec![
            format!("--protocol={}", self.protocol()),
            format!("--timeout={}", seconds(self.timeout)),
            format!("--connect-timeout={}", seconds(self.connect_timeout)),
            format!("--cipher={}", self.security.cipher_name()),
        ];
        words.extend(self.no_path_memory.then(|| "--no-path-memory".to_owned()));
        words.extend(self.mtu.map(|mtu| format!("--mtu={mtu}")));
        words.extend(self.controller.as_ref().map(|controller| format!("--controller={controller}")));
        words.extend(self.rate().map(|rate| format!("--rate={}bit", rate.bits_per_second())));
        words.extend(self.buffer.map(|ByteSize(bytes)| format!("--buffer={bytes}B")));
        words
    }

    /// The same settings with a connect time-out of `most` at most.
    pub(crate) fn connecting_within(&self, most: Duration) -> Self {
        Self { connect_timeout: self.connect_timeout.min(most), ..self.clone() }
    }

    /// The same settings with buffers of `most` bytes at most, which bound what is underway.
    pub(crate) fn with_most_underway(&self, most: u64) -> Self {
        let buffer = self.buffer.map_or(most, |ByteSize(bytes)| bytes.min(most));
        Self { buffer: Some(ByteSize(buffer)), ..self.clone() }
    }

    fn open(&self, builder: Builder, address: SocketAddr, security: Option<Security>) -> Result<Endpoint, Fault> {
        self.protected(builder, security)?.bind(address).map_err(|error| fault_of(error, address))
    }

    fn protected(&self, builder: Builder, security: Option<Security>) -> Result<Builder, Fault> {
        match (security, &self.unsafe_keylog) {
            (Some(security), Some(file)) => Ok(builder.secure(security.unsafe_key_log(KeyLogFile::open(file)?))),
            (Some(security), None) => Ok(builder.secure(security)),
            (None, Some(_)) => {
                Err(Fault::usage("--unsafe-keylog has nothing to write with --plain: leave one of them out"))
            }
            (None, None) => Ok(builder.plain()),
        }
    }

    /// Whether the secrets of connections are written down.
    pub(crate) const fn logs_secrets(&self) -> bool {
        self.unsafe_keylog.is_some()
    }

    /// The user's caps on a sender.
    pub(crate) const fn caps(&self) -> Caps {
        Caps { rate: self.rate(), buffer: self.buffer, fed: false }
    }

    /// Creates the trace file, if one is wanted.
    pub(crate) fn begin_trace(&self, verb: &str, output: &Output) -> Result<Option<Trace>, Fault> {
        Trace::begin(self.trace.as_deref(), verb, output)
    }

    /// The `start` record with these settings.
    pub(crate) fn start(&self, verb: &'static str) -> Start {
        Start {
            protocol: self.protocol().to_string(),
            controller: self.controller_name(),
            rate_bps: self.rate().map(Rate::bits_per_second),
            mtu_bytes: self.mtu,
            buffer_bytes: self.buffer.map(|ByteSize(bytes)| bytes),
            timeout_seconds: self.timeout.as_secs_f64(),
            connect_timeout_seconds: self.connect_timeout.as_secs_f64(),
            trace: self.trace.as_ref().map(|path| path.to_string_lossy().into_owned()),
            security: self.security.name(),
            ..Start::of(verb)
        }
    }
}

/// The fault of a port that could not be opened.
pub(crate) fn fault_of(error: Error, address: SocketAddr) -> Fault {
    match error {
        Error::InvalidOption { option, range } => Fault::usage(format!("{} must be {range}", option_of(option))),
        error => fault::of_connection(&error, &address),
    }
}

/// The option behind a method of the library's builder.
fn option_of(method: &str) -> &str {
    match method {
        "mss" => "--mtu",
        "max_rate" => "--rate",
        "send_buffer and recv_buffer" => "--buffer",
        "peer_timeout" | "linger" => "--timeout",
        "connect_timeout" | "rendezvous_timeout" => "--connect-timeout",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Only {
        #[command(flatten)]
        transport: Transport,
    }

    fn transport(options: &[&str]) -> Result<Transport, String> {
        let parsed = Only::try_parse_from(["x"].iter().chain(options));
        parsed.map(|only| only.transport).map_err(|error| error.to_string())
    }

    #[test]
    fn protocols_and_their_default_controllers_are_those_of_the_registry() {
        let command = Transport::augment_args(Command::new("x"));
        let option = command.get_arguments().find(|arg| arg.get_id() == "protocol").unwrap();
        let listed: Vec<_> = option.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
        assert_eq!(listed, protocols().iter().map(|entry| entry.name).collect::<Vec<_>>());
        for entry in protocols() {
            let transport = transport(&["--protocol", entry.name]).unwrap();
            assert_eq!(transport.protocol.to_string(), entry.name);
            assert_eq!(transport.controller_name(), entry.controller.unwrap_or("none"));
        }
        assert_eq!(transport(&[]).unwrap().protocol.to_string(), protocols()[0].name);
    }

    #[test]
    fn a_protocol_has_options_and_keeps_its_default_controller() {
        let transport = transport(&["--protocol", "udt-2004:delay-warnings=off"]).unwrap();
        assert_eq!(transport.protocol.to_string(), "udt-2004:delay-warnings=off");
        assert_eq!(transport.controller_name(), "udt-2004");
    }

    #[test]
    fn an_unknown_protocol_or_option_is_refused_with_the_known_ones() {
        let message = transport(&["--protocol", "udp"]).unwrap_err();
        for entry in protocols() {
            assert!(message.contains(entry.name), "{message}");
        }
        let message = transport(&["--protocol", "udt-2004:blast=rtt"]).unwrap_err();
        assert!(message.contains("blast") && message.contains("delay-warnings=on"), "{message}");
        let message = transport(&["--protocol", "udt:blast=rtt"]).unwrap_err();
        assert!(message.contains("takes none"), "{message}");
    }

    #[test]
    fn packets_that_no_peer_agrees_to_are_refused_with_the_reason() {
        for (size, words) in [("575", "576"), ("65536", "65535"), ("1.5kB", "whole number")] {
            let message = packet_size(size).unwrap_err();
            assert!(message.contains(words), "{message}");
        }
        assert_eq!((packet_size("576"), packet_size("65535")), (Ok(576), Ok(65_535)));
    }
}
