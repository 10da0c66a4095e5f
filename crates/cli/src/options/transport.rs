//! Options of every verb that opens connections, and the endpoint that they configure.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::BoolishValueParser;
use farhaul::Protocol;
use farhaul::registry::protocols;
use farhaul_cc::Spec;
use farhaul_transfer::Settings;
use farhaul_units::{ByteSize, Rate};

use super::SecurityOptions;
use super::protocol::{ProtocolChoice, ProtocolParser};
use crate::exit::Fault;
use crate::output::Output;
use crate::output::json::Start;
use crate::output::trace::Trace;
use crate::values::{some_rate, some_time};

/// Options of every verb that opens connections.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Connection")]
pub(crate) struct Transport {
    /// Congestion controller and its options; `farhaul controllers` lists them [default: the protocol's]
    #[arg(long, env = "FARHAUL_CONTROLLER", value_name = "NAME[:K=V,…]", hide_short_help = true)]
    controller: Option<Spec>,
    /// Wire protocol and its options; `farhaul protocols` lists them
    #[arg(
        long,
        env = "FARHAUL_PROTOCOL",
        value_name = "NAME[:K=V,…]",
        default_value = protocols()[0].name,
        value_parser = ProtocolParser,
        hide_short_help = true
    )]
    protocol: ProtocolChoice,
    /// Cap on the rate, headers and retransmissions included: 950mbit [default: auto]
    ///
    /// Who sends the files of a copy keeps it. For protocols without congestion control it is the rate of this side, and auto finds
    /// it.
    #[arg(long, visible_alias = "bwlimit", env = "FARHAUL_RATE", value_name = "RATE", value_parser = cap, help_heading = None)]
    rate: Option<Cap>,
    /// Give way to all other traffic, in both directions: the controller ledbat in place of --controller, and a low priority for processor and disk
    #[arg(long, env = "FARHAUL_BACKGROUND", value_parser = BoolishValueParser::new(), help_heading = None, hide_short_help = true)]
    pub(crate) background: bool,
    /// Largest packet in bytes, IP and UDP headers included; the smaller value of the two sides applies [default: found by
    /// probes]
    #[arg(long, env = "FARHAUL_MTU", value_name = "BYTES", value_parser = packet_size, hide_short_help = true)]
    mtu: Option<u32>,
    /// Cap on each buffer: 64MiB [default: sized to the path]
    #[arg(long, env = "FARHAUL_BUFFER", value_name = "SIZE", hide_short_help = true)]
    pub(crate) buffer: Option<ByteSize>,
    /// Give up a connection after the peer has been silent this long
    #[arg(long, env = "FARHAUL_TIMEOUT", value_name = "TIME", default_value = "30s", value_parser = some_time, hide_short_help = true)]
    pub(crate) timeout: Duration,
    /// Give up connecting after this long
    #[arg(long, env = "FARHAUL_CONNECT_TIMEOUT", value_name = "TIME", default_value = "5s", value_parser = some_time, hide_short_help = true)]
    pub(crate) connect_timeout: Duration,
    /// Begin every connection anew, without what the last one found of its path, and keep nothing for the next
    #[arg(long, env = "FARHAUL_NO_PATH_MEMORY", value_parser = BoolishValueParser::new(), hide_short_help = true)]
    no_path_memory: bool,
    /// Write the connection's metrics to this file 50 times a second, as a qlog-like JSON sequence
    #[arg(long, env = "FARHAUL_TRACE", value_name = "FILE", hide_short_help = true)]
    pub(crate) trace: Option<PathBuf>,
    /// Print one JSON record per line: start, interval, file, warning, end
    #[arg(long, env = "FARHAUL_JSON", value_parser = BoolishValueParser::new(), help_heading = None)]
    pub(crate) json: bool,
    /// Write the secrets of connections to this file, in the NSS key log format. For debugging alone: whoever has the file can read
    /// and forge everything. Without it, the variable SSLKEYLOGFILE names one for encrypted connections
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) unsafe_keylog: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) security: SecurityOptions,
}

/// Smallest packet that two sides agree on: every IPv4 host accepts it (RFC 791, section 3.1).
const LEAST_PACKET: u32 = 576;
/// Largest value of the length field in an IP header.
const LONGEST_PACKET: u32 = 65_535;

/// The largest packet of most paths: that of Ethernet.
const USUAL_PACKET: u32 = 1_500;

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

impl Transport {
    /// The wire protocol with the options of its original programs.
    pub(crate) const fn choice(&self) -> &ProtocolChoice {
        &self.protocol
    }

    /// The wire protocol with all its options.
    pub(crate) fn protocol(&self) -> Protocol {
        self.protocol.protocol.clone()
    }

    /// The settings of connections that they mean, without the keys of peers.
    pub(crate) fn settings(&self) -> Settings {
        Settings {
            protocol: self.protocol(),
            controller: self.controller.clone(),
            background: self.background,
            rate: self.rate(),
            mtu: self.mtu,
            buffer: self.buffer,
            timeout: self.timeout,
            connect_timeout: self.connect_timeout,
            remembers_paths: !self.no_path_memory,
            key_log: self.key_log(),
            security: self.security.settings(),
        }
    }

    /// The file of secrets: the user's, or that of the environment, which may be meant for other programs.
    fn key_log(&self) -> Option<PathBuf> {
        let of_environment =
            || std::env::var_os("SSLKEYLOGFILE").filter(|file| !file.is_empty() && !self.security.plain);
        self.unsafe_keylog.clone().or_else(|| of_environment().map(PathBuf::from))
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
        let default = self.protocol.protocol.controller()?;
        if self.background {
            return self.settings().effective_controller();
        }
        Some(self.controller.clone().unwrap_or(default))
    }

    /// The effective congestion controller in records.
    pub(crate) fn controller_name(&self) -> String {
        self.controller().map_or_else(|| "none".to_owned(), |controller| controller.to_string())
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

#[cfg(test)]
mod tests {
    use clap::{Command, Parser};
    use farhaul::registry::protocols;

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
            assert_eq!(transport.protocol().to_string(), entry.name);
            assert_eq!(transport.controller_name(), entry.controller.unwrap_or("none"));
        }
        assert_eq!(transport(&[]).unwrap().protocol().to_string(), protocols()[0].name);
    }

    #[test]
    fn a_protocol_has_options_and_keeps_its_default_controller() {
        let transport = transport(&["--protocol", "udt-2004:delay-warnings=off"]).unwrap();
        assert_eq!(transport.protocol().to_string(), "udt-2004:delay-warnings=off");
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
