//! The command line: verbs, the options that several of them share, and how values are read.

mod address;
mod help;
mod path;
mod quantity;
pub(crate) mod refusal;

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::BoolishValueParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
use farhaul::{Builder, Endpoint, Error, MinProgress};
use farhaul_cc::Spec;
use farhaul_units::{ByteSize, Rate};
use serde_json::{Value, json};

use crate::cmd;
use crate::exit::Fault;
use crate::fault;
use crate::host::measure::Caps;
use crate::output::json::{End, Record, Start};
use crate::output::trace::Trace;
use crate::output::{JsonTo, Output};

pub(crate) use address::{HostPort, Location, Place};
pub(crate) use help::{LITERAL, command};
pub(crate) use path::{PathOptions, loss_share, way as path_record};
pub(crate) use quantity::{share, some_rate, some_time};

const UNITS: &str = "\
Units: link rates in bits (10gbit, 950mbit), sizes in bytes (64MiB, 4GB), times with a unit (50ms, 2s).
Options of connections and of `serve` can be set in the environment too: FARHAUL_TIMEOUT=1min, FARHAUL_PLAIN=1; and all
that are worth keeping in ~/.config/farhaul/config.toml: timeout = \"1min\", also below [VERB] and [host.\"NAME\"].

Exit codes: 0 done and verified, 1 failed, 2 usage, 3 some files failed, 4 network or UDP path dead,
5 not allowed, 6 integrity mismatch, 7 local disk, 8 peer lost or timed out, 9 protocol mismatch, 126/127 command of
`emulate` not runnable or not found, 130/143 signals.";

/// Reliable bulk data transfer over UDP for long fat networks.
#[derive(Parser)]
#[command(name = "farhaul", version, after_long_help = UNITS, max_term_width = 110)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) verb: Verb,
    /// Print the settings that hold and where each is from, and do nothing else
    #[arg(long, global = true)]
    show_config: bool,
}

#[derive(Subcommand)]
pub(crate) enum Verb {
    Copy(cmd::copy::CopyArgs),
    Serve(cmd::serve::ServeArgs),
    Pipe(cmd::pipe::PipeArgs),
    Bench(cmd::bench::BenchArgs),
    Relay(cmd::relay::RelayArgs),
    Emulate(cmd::emulate::EmulateArgs),
    Demo(cmd::demo::DemoArgs),
    Lab(cmd::lab::LabArgs),
    Controllers(cmd::controllers::ControllersArgs),
    Version(cmd::version::VersionArgs),
    Completions(cmd::manual::CompletionsArgs),
    Man(cmd::manual::ManArgs),
}

/// Options of every verb that opens connections.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Connection")]
pub(crate) struct Transport {
    /// Do not encrypt: needed for now, because encryption is not built yet and nothing falls back silently
    #[arg(long, env = "FARHAUL_PLAIN", value_parser = BoolishValueParser::new())]
    pub(crate) plain: bool,
    /// Congestion controller with its options; `farhaul controllers` lists them
    #[arg(
        long,
        env = "FARHAUL_CONTROLLER",
        value_name = "NAME[:K=V,…]",
        default_value = "udt",
        default_value_if("protocol", "udt-2004", "udt-2004")
    )]
    pub(crate) controller: Spec,
    /// Wire protocol
    #[arg(long, env = "FARHAUL_PROTOCOL", value_enum, default_value = "udt")]
    pub(crate) protocol: Protocol,
    /// Cap of the sending rate on the wire, retransmissions included: 950mbit [default: none]
    #[arg(long, env = "FARHAUL_RATE", value_name = "RATE", value_parser = some_rate)]
    pub(crate) rate: Option<Rate>,
    /// Largest packet in bytes, IP and UDP headers included; the smaller of both sides holds
    #[arg(long, env = "FARHAUL_MTU", value_name = "BYTES", default_value_t = 1500, value_parser = packet_size)]
    pub(crate) mtu: u32,
    /// Largest size of each buffer: 64MiB [default: automatic, as the path needs]
    #[arg(long, env = "FARHAUL_BUFFER", value_name = "SIZE")]
    pub(crate) buffer: Option<ByteSize>,
    /// Silence of the peer after which the connection is given up
    #[arg(long, env = "FARHAUL_TIMEOUT", value_name = "TIME", default_value = "30s", value_parser = some_time)]
    pub(crate) timeout: Duration,
    /// How long to wait for the first answer
    #[arg(long, env = "FARHAUL_CONNECT_TIMEOUT", value_name = "TIME", default_value = "5s", value_parser = some_time)]
    pub(crate) connect_timeout: Duration,
    /// Write what the connection did into this file, 50 times a second, as a JSON sequence in the manner of qlog
    #[arg(long, env = "FARHAUL_TRACE", value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// Print one JSON record per line: start, interval, file, warning, end
    #[arg(long, env = "FARHAUL_JSON", value_parser = BoolishValueParser::new())]
    pub(crate) json: bool,
}

/// Smallest packet that two sides agree on: what every IPv4 host takes (RFC 791, section 3.1).
const LEAST_PACKET: u32 = 576;
/// Longest packet that the length field of an IP header can tell.
const LONGEST_PACKET: u32 = 65_535;

/// Reads the size of a packet, in bytes.
fn packet_size(text: &str) -> Result<u32, String> {
    let bytes = text.parse().map_err(|_| format!("'{text}' is no whole number of bytes"))?;
    match bytes {
        ..LEAST_PACKET => Err(format!(
            "no peer agrees to less than {LEAST_PACKET} bytes, which every IPv4 host takes (RFC 791): the headers' share grows"
        )),
        LEAST_PACKET..=LONGEST_PACKET => Ok(bytes),
        _ => Err(format!("no IP packet is longer than {LONGEST_PACKET} bytes")),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Protocol {
    /// UDT4, as libudt speaks it
    Udt,
    /// The protocol of the 2004 paper, with its controller unless another is chosen; for experiments
    #[value(name = "udt-2004")]
    Udt2004,
}

impl Protocol {
    /// All of them, the default first.
    pub(crate) const ALL: [Self; 2] = [Self::Udt, Self::Udt2004];

    /// As it is chosen and as records call it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Udt => "udt",
            Self::Udt2004 => "udt-2004",
        }
    }

    const fn of_library(self) -> farhaul::Protocol {
        match self {
            Self::Udt => farhaul::Protocol::Udt,
            Self::Udt2004 => farhaul::Protocol::Udt2004,
        }
    }
}

impl Transport {
    /// Opens a UDP port with these settings.
    pub(crate) fn bind(&self, address: SocketAddr) -> Result<Endpoint, Fault> {
        open(self.builder(), address)
    }

    /// Opens the port of a daemon, whose peers may not hold a connection by taking a byte now and then.
    pub(crate) fn bind_daemon(&self, address: SocketAddr) -> Result<Endpoint, Fault> {
        open(self.builder().min_progress(MinProgress::DAEMON), address)
    }

    fn builder(&self) -> Builder {
        let mut builder = Endpoint::builder()
            .protocol(self.protocol.of_library())
            .mss(self.mtu)
            .connect_timeout(self.connect_timeout)
            .peer_timeout(self.timeout)
            .linger(self.timeout)
            .controller(self.controller.to_string());
        if let Some(rate) = self.rate {
            builder = builder.max_rate(rate);
        }
        if let Some(ByteSize(bytes)) = self.buffer {
            builder = builder.send_buffer(bytes).recv_buffer(bytes);
        }
        builder
    }

    /// Opens any port that reaches `peer`.
    pub(crate) fn bind_for(&self, peer: SocketAddr) -> Result<Endpoint, Fault> {
        self.bind(match peer {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        })
    }

    /// Nobody is to believe that data is encrypted when it is not.
    pub(crate) fn require_plain(&self) -> Result<(), Fault> {
        if self.plain {
            return Ok(());
        }
        Err(Fault::usage(
            "connections are not encrypted yet, and Farhaul never leaves that out silently: repeat the command with \
             --plain if everybody on the path may read and change the data",
        ))
    }

    /// What may hold a sender because it was asked for.
    pub(crate) const fn caps(&self) -> Caps {
        Caps { rate: self.rate, buffer: self.buffer, fed: false }
    }

    /// The file of events, if one is wanted.
    pub(crate) fn begin_trace(&self, verb: &str, output: &Output) -> Result<Option<Trace>, Fault> {
        Trace::begin(self.trace.as_deref(), verb, output)
    }

    /// The settings as the `start` record shows them.
    pub(crate) fn start(&self, verb: &'static str) -> Start {
        Start {
            protocol: self.protocol.name(),
            controller: self.controller.to_string(),
            rate_bps: self.rate.map(Rate::bits_per_second),
            mtu_bytes: self.mtu,
            buffer_bytes: self.buffer.map(|ByteSize(bytes)| bytes),
            timeout_seconds: self.timeout.as_secs_f64(),
            connect_timeout_seconds: self.connect_timeout.as_secs_f64(),
            trace: self.trace.as_ref().map(|path| path.to_string_lossy().into_owned()),
            ..Start::of(verb)
        }
    }
}

fn open(builder: Builder, address: SocketAddr) -> Result<Endpoint, Fault> {
    builder.bind(address).map_err(|error| match error {
        Error::InvalidOption { option, range } => Fault::usage(format!("{} must be {range}", option_of(option))),
        error => fault::of_connection(&error, &address),
    })
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

impl Verb {
    /// Its name, and its connection if it has one.
    fn connection(&self) -> (&'static str, Option<&Transport>) {
        match self {
            Self::Copy(args) => ("copy", Some(&args.transport)),
            Self::Serve(args) => ("serve", Some(&args.transport)),
            Self::Pipe(args) => ("pipe", Some(&args.transport)),
            Self::Bench(args) => ("bench", Some(&args.transport)),
            Self::Relay(_) => ("relay", None),
            Self::Emulate(_) => ("emulate", None),
            Self::Demo(_) => ("demo", None),
            Self::Lab(_) => ("lab", None),
            Self::Controllers(_) => ("controllers", None),
            Self::Version(_) => ("version", None),
            Self::Completions(_) => ("completions", None),
            Self::Man(_) => ("man", None),
        }
    }

    /// Whether it may have use for networks of its own.
    pub(crate) fn makes_networks(&self) -> bool {
        match self {
            Self::Emulate(_) | Self::Demo(_) => true,
            Self::Lab(args) => args.emulates(),
            _ => false,
        }
    }

    /// Where its records go.
    pub(crate) fn json_to(&self) -> JsonTo {
        let wants = match self {
            Self::Relay(args) => args.json,
            Self::Emulate(args) => args.json,
            Self::Demo(args) => args.json,
            Self::Lab(args) => args.json(),
            _ => self.connection().1.is_some_and(|transport| transport.json),
        };
        match self {
            _ if !wants => JsonTo::Nowhere,
            Self::Pipe(_) | Self::Emulate(_) => JsonTo::Stderr,
            Self::Copy(args) if args.is_to_stdout() => JsonTo::Stderr,
            _ => JsonTo::Stdout,
        }
    }

    /// The first record, where the verb fails before it knows more.
    pub(crate) fn start(&self) -> Value {
        match self.connection() {
            (verb, Some(transport)) => json!(Record::Start(Box::new(transport.start(verb)))),
            (verb, None) => json!({
                "event": "start",
                "verb": verb,
                "version": env!("CARGO_PKG_VERSION"),
                "process_id": std::process::id(),
            }),
        }
    }

    /// The same for the last one.
    pub(crate) fn end(&self) -> End {
        let transport = self.connection().1;
        End {
            controller: transport.map_or_else(String::new, |transport| transport.controller.to_string()),
            protocol: transport.map_or(Protocol::Udt, |transport| transport.protocol).name(),
            security: "none",
            ..End::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
        command().debug_assert();
    }

    #[test]
    fn every_verb_and_option_is_explained() {
        for verb in Cli::command().get_subcommands() {
            assert!(verb.get_about().is_some(), "{}", verb.get_name());
            for option in verb.get_arguments() {
                assert!(option.get_help().is_some(), "{} {}", verb.get_name(), option.get_id());
            }
        }
    }

    #[test]
    fn packets_that_no_peer_agrees_to_are_refused_with_the_reason() {
        for (size, words) in [("575", "576"), ("65536", "65535"), ("1.5kB", "whole number")] {
            let parsed = Cli::try_parse_from(["farhaul", "bench", "--connect", "h:1", "--mtu", size]);
            let message = parsed.err().unwrap().to_string();
            assert!(message.contains(words), "{message}");
        }
        assert_eq!((packet_size("576"), packet_size("65535")), (Ok(576), Ok(65_535)));
    }

    #[test]
    fn a_bare_number_is_refused_with_both_readings() {
        let parsed = Cli::try_parse_from(["farhaul", "bench", "--connect", "h:1", "--rate", "100"]);
        let message = parsed.err().unwrap().to_string();
        assert!(message.contains("100mbit") && message.contains("100MB/s"), "{message}");
    }
}
