//! Connecting to an address of the command line.

use std::net::{SocketAddr, UdpSocket};
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;

use farhaul::security::SecurityFault;
use farhaul::{ConnectionLost, Endpoint, Error, Stream, probe};

use super::Context;
use crate::exit::{Code, Fault};
use crate::far::tunnel::Entrance;
use crate::fault;
use crate::options::Transport;
use crate::output::json::{FirstRate, Record, Start};
use crate::output::{Output, human};
use crate::trust::Server;
use crate::values::HostPort;

/// Marks the warnings about receive buffers.
const RECEIVE_LIMIT: &str = "net.core.rmem_max";

/// How a verb connects to one server.
pub(super) struct Calling<'a> {
    pub(super) context: &'a Context,
    pub(super) output: &'a Output,
    pub(super) transport: &'a Transport,
    /// What is expected of the server; `None` for plain connections.
    pub(super) server: Option<Server>,
}

impl<'a> Calling<'a> {
    /// Calls to the server at `to`.
    pub(super) fn to(
        context: &'a Context,
        output: &'a Output,
        transport: &'a Transport,
        to: &HostPort,
    ) -> Result<Self, Fault> {
        let server = transport.security.server(to.to_string(), output)?;
        Ok(Self { context, output, transport, server })
    }

    /// Connects to the first address of `to` that answers.
    pub(super) fn connect(&self, to: &HostPort, start: Start) -> Result<Stream, Fault> {
        connect(self, to, start)
    }

    /// Opens one more connection to the peer of the first one, from its own port.
    pub(super) fn connect_again(&self, peer: SocketAddr) -> Result<Stream, Fault> {
        self.begin(&self.bind(peer)?, peer)
    }

    /// Connects to all of `peers` at once, from a port each. The first one that answers wins.
    pub(super) fn first_of(&self, peers: &[SocketAddr], start: Start) -> Result<Stream, Fault> {
        let no_address = || Fault::new(Code::NoRoute, "the far host has no known address");
        let (say, heard) = sync_channel(peers.len());
        thread::scope(|scope| {
            let (mut ports, mut failed) = (Vec::new(), None);
            for &peer in peers {
                let Ok(endpoint) =
                    check_route(peer).and_then(|()| self.bind(peer)).map_err(|fault| failed = Some(fault))
                else {
                    continue;
                };
                ports.push((peer, endpoint.clone()));
                let say = say.clone();
                let thread = thread::Builder::new().name("connect".into());
                thread.spawn_scoped(scope, move || say.send((peer, self.begin(&endpoint, peer))))?;
            }
            drop(say);
            let mut winner = None;
            for (peer, connected) in &heard {
                match connected {
                    Ok(stream) => {
                        winner = Some((peer, stream));
                        break;
                    }
                    Err(fault) => failed = Some(fault),
                }
            }
            let Some((at, stream)) = winner else { return Err(failed.unwrap_or_else(no_address)) };
            for (peer, endpoint) in &ports {
                match *peer == at {
                    true => announce(self.context, self.output, endpoint, Some(at), start.clone()),
                    false => endpoint.canceller().cancel(),
                }
            }
            Ok(stream)
        })
    }

    /// Connects through a tunnel, which takes the datagrams of this side's port and of no other one.
    pub(super) fn through(&self, tunnel: &Entrance, start: Start) -> Result<Stream, Fault> {
        let peer = tunnel.address();
        let endpoint = self.bind(peer)?;
        tunnel.admit(endpoint.local_addr().port())?;
        let stream = self.begin(&endpoint, peer)?;
        announce(self.context, self.output, &endpoint, Some(peer), start);
        Ok(stream)
    }

    fn bind(&self, peer: SocketAddr) -> Result<Endpoint, Fault> {
        let endpoint = self.transport.bind_for(peer, self.server.as_ref().map(Server::security))?;
        self.context.interrupt.cancels(endpoint.canceller());
        Ok(endpoint)
    }

    /// Connects. Asks about a server that is not known, and remembers it.
    fn begin(&self, endpoint: &Endpoint, peer: SocketAddr) -> Result<Stream, Fault> {
        let connected = match (endpoint.connect(peer), &self.server) {
            (Err(Error::Lost(ConnectionLost::Insecure(SecurityFault::UnknownKey))), Some(server)) => {
                let accepted = server.ask(self.output)?;
                let again = self.transport.bind_for(peer, Some(server.security_with(accepted)))?;
                self.context.interrupt.cancels(again.canceller());
                again.connect(peer)
            }
            (connected, _) => connected,
        };
        // Inside an encrypted connection, the channel needs no TCP.
        let needs_channel = self.server.is_none() && self.transport.protocol().entry().needs_control_channel;
        let fault = |error| fault::of_opening(&error, &peer, needs_channel);
        let stream = connected.map_err(|error| self.context.interrupt.fault().unwrap_or_else(|| fault(error)))?;
        if let Some(server) = &self.server {
            server.remember(self.output);
        }
        // Until a session has its first answer, a read waits no longer than connecting may take.
        stream.set_read_timeout(Some(self.transport.connect_timeout.min(self.transport.timeout)));
        Ok(stream)
    }
}

fn connect(calling: &Calling<'_>, to: &HostPort, start: Start) -> Result<Stream, Fault> {
    let mut failed = None;
    for peer in to.resolve()? {
        match connect_to(calling, peer, &start) {
            Err(fault) if calling.context.interrupt.is_stopping() => return Err(fault),
            Err(fault) => failed = Some(fault),
            connected => return connected,
        }
    }
    Err(failed.expect("a name that was resolved has an address, and it failed"))
}

fn connect_to(calling: &Calling<'_>, peer: SocketAddr, start: &Start) -> Result<Stream, Fault> {
    let Calling { context, output, transport, .. } = *calling;
    check_route(peer)?;
    let endpoint = calling.bind(peer)?;
    let mut start = start.clone();
    if let Some(known) = transport.profiled(peer) {
        let (rate_bps, measured) = (known.first_rate().bits_per_second(), known.measured);
        start.first_rate = Some(FirstRate { rate_bps, measured_unix_seconds: measured.as_secs() });
        if start.for_people && start.only_sends {
            let (rate, age) = (human::rate(Some(rate_bps)), days(probe::now().saturating_sub(measured)));
            output.say(&format!("the search for the rate begins at {rate}, from a profile {age}"));
        }
    }
    announce(context, output, &endpoint, Some(peer), start);
    calling.begin(&endpoint, peer)
}

/// The age of a profile.
fn days(age: Duration) -> String {
    match age.as_secs() / 86_400 {
        0 => "of the last 24 hours".to_owned(),
        1 => "1 day old".to_owned(),
        days => format!("{days} days old"),
    }
}

/// Writes the `start` record, warns of limits to speed, and lets signals cancel waiting calls.
pub(super) fn announce(
    context: &Context,
    output: &Output,
    endpoint: &Endpoint,
    peer: Option<SocketAddr>,
    mut start: Start,
) {
    context.interrupt.cancels(endpoint.canceller());
    start.local = Some(endpoint.local_addr().to_string());
    start.peer = peer.map(|peer| peer.to_string());
    let concerns = |warning: &&String| !(start.only_sends && warning.contains(RECEIVE_LIMIT));
    let warnings = endpoint.warnings();
    output.record(&Record::Start(Box::new(start.clone())));
    warnings.iter().filter(concerns).for_each(|warning| output.warn(warning));
}

/// Fails at once if this machine has no route to `peer`, instead of after a time-out.
pub(super) fn check_route(peer: SocketAddr) -> Result<(), Fault> {
    let any: SocketAddr = if peer.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0u16; 8], 0).into() };
    let routed = UdpSocket::bind(any).and_then(|socket| socket.connect(peer));
    routed.map_err(|error| {
        Fault::new(
            Code::NoRoute,
            format!("no route to {peer}: {error}; `ip route get {}` shows the attempt of this machine", peer.ip()),
        )
    })
}

/// Whether `peer` is an address of this machine.
pub(super) fn is_here(peer: SocketAddr) -> bool {
    let any: SocketAddr = if peer.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0u16; 8], 0).into() };
    // Packets to a local address have it as their source, too.
    let near = UdpSocket::bind(any).and_then(|socket| socket.connect(peer).and_then(|()| socket.local_addr()));
    near.is_ok_and(|near| near.ip() == peer.ip() || peer.ip().is_loopback())
}
