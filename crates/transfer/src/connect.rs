//! Connecting to a server, or to a program that ssh started.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread;

use farhaul::security::SecurityFault;
use farhaul::{ConnectionLost, Endpoint, Error as ConnectionError, Stream};
use farhaul_bond::Further;
use farhaul_keys::Server;

use crate::environment::Environment;
use crate::error::{Code, Error};
use crate::event::{Event, Waiting};
use crate::location::HostPort;
use crate::settings::Settings;

/// Marks the warnings about receive buffers.
const RECEIVE_LIMIT: &str = "net.core.rmem_max";

/// How a client connects to one server.
#[derive(Debug)]
pub struct Calling<'a> {
    /// The clock, the cancellation, the events.
    pub(crate) environment: &'a Environment,
    /// The settings of the connection.
    pub(crate) settings: &'a Settings,
    /// What is expected of the server; `None` for plain connections.
    pub(crate) server: Option<Arc<Server>>,
    /// This side only sends data.
    pub(crate) only_sends: bool,
}

impl<'a> Calling<'a> {
    /// Calls to the server at `to`.
    ///
    /// # Errors
    /// A file of keys cannot be read, or others than its owner may have written it.
    pub fn to(environment: &'a Environment, settings: &'a Settings, to: &HostPort) -> Result<Self, Error> {
        let server = settings.security.server(to.to_string(), &environment.events)?;
        Ok(Self::with(environment, settings, server))
    }

    /// The same for a side that only sends data. Small answers need no large receive buffer, so nothing warns of a small one.
    #[must_use]
    pub const fn only_sending(mut self, only_sends: bool) -> Self {
        self.only_sends = only_sends;
        self
    }

    /// Calls to a server of which this is expected.
    pub(crate) fn with(environment: &'a Environment, settings: &'a Settings, server: Option<Server>) -> Self {
        let server = server.map(Arc::new);
        Self { environment, settings, server, only_sends: false }
    }

    /// Connects to the first address of `to` that answers.
    ///
    /// # Errors
    /// None answers, or it refuses.
    pub fn connect(&self, to: &HostPort) -> Result<Stream, Error> {
        let mut failed = None;
        for peer in to.resolve()? {
            match self.connect_to(peer) {
                Err(error) if self.environment.cancellation.is_cancelled() => return Err(error),
                Err(error) => failed = Some(error),
                connected => return connected,
            }
        }
        Err(failed.expect("a name that was resolved has an address, and it failed"))
    }

    fn connect_to(&self, peer: SocketAddr) -> Result<Stream, Error> {
        check_route(peer)?;
        let endpoint = self.bind(peer)?;
        self.announce(&endpoint, peer);
        self.environment.events.send(&Event::Waiting(Waiting::Answer(peer)));
        self.begin(&endpoint, peer)
    }

    /// Opens one more connection to the peer of the first one, from its own port.
    ///
    /// # Errors
    /// It does not answer, or refuses.
    pub fn connect_again(&self, peer: SocketAddr) -> Result<Stream, Error> {
        self.begin(&self.bind(peer)?, peer)
    }

    /// What opens further flows to the peer of `first`, which this has connected.
    pub fn further(&self, first: &Stream) -> Further {
        let (settings, server, peer) = (self.settings.clone(), self.server.clone(), first.peer_addr());
        let (environment, events) = (self.environment.clone(), self.environment.events.clone());
        let cancellation = environment.cancellation.clone();
        let opens = move || {
            let calling = Calling { server: server.clone(), ..Calling::with(&environment, &settings, None) };
            calling.connect_again(peer).map_err(|error| error.to_string())
        };
        let warns = move |why: &str| {
            if !cancellation.is_requested() {
                events.warn(why);
            }
        };
        Further::new(opens, warns)
    }

    /// Connects to all of `peers` at once, from a port each. The first one that answers wins. Returns its port, too.
    pub(crate) fn first_of(&self, peers: &[SocketAddr]) -> Result<(Endpoint, Stream), Error> {
        let no_address = || Error::new(Code::NoRoute, "the remote host has no known address");
        let (say, heard) = sync_channel(peers.len());
        thread::scope(|scope| {
            let (mut ports, mut failed) = (Vec::new(), None);
            for &peer in peers {
                let Ok(endpoint) =
                    check_route(peer).and_then(|()| self.bind(peer)).map_err(|error| failed = Some(error))
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
                    Err(error) => failed = Some(error),
                }
            }
            let Some((at, stream)) = winner else { return Err(failed.unwrap_or_else(no_address)) };
            let (won, lost): (Vec<_>, Vec<_>) = ports.into_iter().partition(|(peer, _)| *peer == at);
            lost.iter().for_each(|(_, endpoint)| endpoint.canceller().cancel());
            let (_, endpoint) = won.into_iter().next().ok_or_else(no_address)?;
            Ok((endpoint, stream))
        })
    }

    fn bind(&self, peer: SocketAddr) -> Result<Endpoint, Error> {
        let endpoint = self.settings.bind_for(peer, self.server.as_deref().map(Server::security))?;
        self.environment.cancellation.cancels(endpoint.canceller());
        Ok(endpoint)
    }

    /// Connects. Asks about a server that is not known, and remembers it.
    fn begin(&self, endpoint: &Endpoint, peer: SocketAddr) -> Result<Stream, Error> {
        let connected = match (endpoint.connect(peer), &self.server) {
            (Err(ConnectionError::Lost(ConnectionLost::Insecure(SecurityFault::UnknownKey))), Some(server)) => {
                let accepted = server.fetch_key()?;
                let again = self.settings.bind_for(peer, Some(server.security_with(accepted)))?;
                self.environment.cancellation.cancels(again.canceller());
                again.connect(peer)
            }
            (connected, _) => connected,
        };
        // Inside an encrypted connection, the channel needs no TCP.
        let needs_channel = self.server.is_none() && self.settings.protocol.entry().needs_control_channel;
        let failed = |error| Error::of_connect_attempt(&error, &peer, needs_channel);
        let stream =
            connected.map_err(|error| self.environment.cancellation.reason().unwrap_or_else(|| failed(error)))?;
        if let Some(server) = &self.server {
            server.remember(&self.environment.events);
        }
        // Until a session has its first answer, a read waits no longer than connecting may take.
        stream.set_read_timeout(Some(self.settings.answer_timeout()));
        Ok(stream)
    }

    /// Tells of the open port, and warns of limits to speed.
    pub(crate) fn announce(&self, endpoint: &Endpoint, peer: SocketAddr) {
        let events = &self.environment.events;
        let first_rate = self.settings.profiled(peer).map(|known| (known.first_rate(), known.measured));
        let (local, peer) = (Some(endpoint.local_addr()), Some(peer));
        events.send(&Event::Connecting { local, peer, first_rate, carrier: None });
        let concerns = |warning: &&String| !(self.only_sends && warning.contains(RECEIVE_LIMIT));
        endpoint.warnings().iter().filter(concerns).for_each(|warning| events.warn(warning));
    }
}

/// Fails at once if this machine has no route to `peer`, instead of after a time-out.
///
/// # Errors
/// There is none.
pub fn check_route(peer: SocketAddr) -> Result<(), Error> {
    let any: SocketAddr = if peer.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0u16; 8], 0).into() };
    let routed = UdpSocket::bind(any).and_then(|socket| socket.connect(peer));
    routed.map_err(|error| {
        Error::new(Code::NoRoute, format!("no route to {peer}: {error}"))
            .remedy(format!("`ip route get {}` shows the attempt of this machine", peer.ip()))
    })
}

/// Whether `peer` is an address of this machine.
pub fn is_here(peer: SocketAddr) -> bool {
    let any: SocketAddr = if peer.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0u16; 8], 0).into() };
    // Packets to a local address have it as their source, too.
    let near = UdpSocket::bind(any).and_then(|socket| socket.connect(peer).and_then(|()| socket.local_addr()));
    near.is_ok_and(|near| near.ip() == peer.ip() || peer.ip().is_loopback())
}
