//! Shared by `stream` and `profile`: the port, the records, a run that signals end.

use std::net::SocketAddr;
use std::time::Duration;

use farhaul::probe::{
    Blaster, BlasterConfig, BlasterFigures, EnclosureConfig, PROTECTION_OVERHEAD, ProbeSocket, Probing as _,
};
use farhaul::security::{Protection, Security, SecurityFault};
use farhaul::{ConnectionLost, Error, PeerIncompatible};
use farhaul_transfer::Events;
use farhaul_transfer::internal::connect::check_route;
use farhaul_transfer::internal::keys::Server;
use farhaul_transfer::internal::settings::of_port;
use serde_json::{Value, json};

use super::Context;
use crate::exit::{Code, Fault};
use crate::options::Probing;
use crate::output::Output;
use crate::output::json::{end_record, start_record};
use crate::output::observer::{Reporter, Shown};

/// A signal ends a run after this time at the latest.
const SLICE: Duration = Duration::from_millis(50);

/// A port for measured streams to a remote end that answers.
pub(super) struct Port<'a> {
    pub(super) context: &'a Context,
    pub(super) output: Output,
    pub(super) socket: ProbeSocket,
    pub(super) peer: SocketAddr,
    /// Bytes of each datagram of a stream.
    pub(super) datagram: u16,
    /// The protection of the streams; `None` in plain.
    protection: Option<Protection>,
}

impl<'a> Port<'a> {
    /// Opens a port towards the first address that answers, and writes the `start` record.
    pub(super) fn open(options: &Probing, context: &'a Context, verb: &str, settings: Value) -> Result<Self, Fault> {
        let output = Output::from_flag(options.json);
        let peers = options.connect.resolve()?;
        let events = Events::to(Reporter::new(output.clone(), Shown::default()));
        let mut security = options.security.settings();
        options.server_keys.set(&mut security, &output);
        let server = security.server(options.connect.to_string(), &events)?;
        let fields = json!({
            "security": options.security.name(),
            "address": options.connect.to_string(),
            "mtu_bytes": options.mtu,
            "settings": settings,
        });
        output.record_value(&start_record(verb, fields));
        let mut failed = None;
        for peer in peers {
            match Self::at((options, server.as_ref()), (context, &events), output.clone(), peer) {
                Err(fault) if !context.interrupt.is_stopping() => failed = Some(fault),
                result => return result,
            }
        }
        Err(failed.unwrap_or_else(|| Fault::usage("the name has no address")))
    }

    fn at(
        (options, server): (&Probing, Option<&Server>),
        (context, events): (&'a Context, &Events),
        output: Output,
        peer: SocketAddr,
    ) -> Result<Self, Fault> {
        check_route(peer)?;
        let socket = match server {
            None => ProbeSocket::towards(peer).map_err(|error| fault_of_stream(error, peer))?,
            Some(server) => enclosed(options, server, (context, events), peer)?,
        };
        let protection = socket.protection();
        let mut port = Self { context, output, socket, peer, datagram: options.datagram(peer), protection };
        let question = BlasterConfig {
            datagram: port.datagram,
            window: 1,
            sleep: Duration::ZERO,
            spaced: false,
            messages: false,
            time: Duration::ZERO,
        };
        match port.blast(question)?.result() {
            Some(Some(_)) => Ok(port),
            _ => Err(port.nobody()),
        }
    }

    /// Nobody answers here.
    pub(super) fn nobody(&self) -> Fault {
        Fault::of_unanswered_stream(self.peer, self.protection.is_none())
    }

    /// Whether the streams are encrypted, in a word or two.
    pub(super) const fn protected(&self) -> &'static str {
        if self.protection.is_some() { "encrypted" } else { "not encrypted" }
    }

    /// The last line of a summary.
    pub(super) fn print_protection(&self) {
        match &self.protection {
            Some(protection) => self.output.print_line(&format!("  {protection}")),
            None => self.output.print_line("  not encrypted"),
        }
    }

    /// UDP payload of each packet, packet protection included.
    pub(super) fn udp_payload(&self) -> u16 {
        let overhead = if self.protection.is_some() { PROTECTION_OVERHEAD as u16 } else { 0 };
        self.datagram.saturating_add(overhead)
    }

    /// Runs one point of a profile, to its end.
    pub(super) fn blast(&mut self, config: BlasterConfig) -> Result<Blaster, Fault> {
        let mut blaster = self.socket.blaster(config).map_err(|error| fault_of_stream(error, self.peer))?;
        while blaster.poll_timeout().is_some() {
            self.socket.run(&mut blaster, SLICE).map_err(|error| fault_of_stream(error, self.peer))?;
            if let Some(fault) = self.context.interrupt.fault() {
                return Err(fault);
            }
        }
        Ok(blaster)
    }

    /// The figures of one point.
    pub(super) fn measure(&mut self, config: BlasterConfig) -> Result<BlasterFigures, Fault> {
        let peer = self.peer;
        let lost = || Fault::new(Code::PeerLost, format!("{peer} answers no more: it or the network is down"));
        self.blast(config)?.result().flatten().ok_or_else(lost)
    }

    /// Writes the `end` record, and gives the result back.
    pub(super) fn conclude(&self, mut end: Value, result: Result<(), Fault>) -> Result<(), Fault> {
        self.output.detach();
        end["address"] = self.peer.to_string().into();
        end["datagram_bytes"] = self.datagram.into();
        end["security"] = if self.protection.is_some() { "tls1.3" } else { "none" }.into();
        if let Some(Protection { suite, peer_key, .. }) = &self.protection {
            end["suite"] = suite.as_str().into();
            if let Some(key) = peer_key {
                end["peer_key"] = key.fingerprint().into();
            }
        }
        self.output.record_value(&end_record(end, 0, result.as_ref().err()));
        result
    }
}

/// Opens an encrypted connection for streams. Asks about a server that is not known, and remembers it.
fn enclosed(
    options: &Probing,
    server: &Server,
    (context, events): (&Context, &Events),
    peer: SocketAddr,
) -> Result<ProbeSocket, Fault> {
    let connected = match connect_with(options, context, peer, server.security())? {
        Err(Error::Lost(ConnectionLost::Insecure(SecurityFault::UnknownKey))) => {
            let accepted = server.fetch_key()?;
            connect_with(options, context, peer, server.security_with(accepted))?
        }
        connected => connected,
    };
    let socket = connected.map_err(|error| fault_of_stream(error, peer))?;
    server.remember(events);
    Ok(socket)
}

/// The fault of a stream to `peer`. A server may refuse a client that is connected already.
pub(super) fn fault_of_stream(error: Error, peer: SocketAddr) -> Fault {
    match error {
        Error::Lost(ConnectionLost::PeerIncompatible(PeerIncompatible::OtherProtocol)) => Fault::new(
            Code::Protocol,
            format!("{peer} answers no measured streams; start `farhaul bench --listen :{}` there", peer.port()),
        ),
        error => of_port(error, peer),
    }
}

/// Connects with these keys. The outer error is a signal.
fn connect_with(
    options: &Probing,
    context: &Context,
    peer: SocketAddr,
    security: Security,
) -> Result<Result<ProbeSocket, Error>, Fault> {
    let config = EnclosureConfig::default().mtu(options.mtu);
    let mut socket = match ProbeSocket::enclosed(peer, security, config) {
        Ok(socket) => socket,
        error => return Ok(error),
    };
    loop {
        match socket.connect(SLICE) {
            Ok(false) => {}
            Ok(true) => return Ok(Ok(socket)),
            Err(error) => return Ok(Err(error)),
        }
        if let Some(fault) = context.interrupt.fault() {
            return Err(fault);
        }
    }
}
