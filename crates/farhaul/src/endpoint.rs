//! A UDP port with any number of connections on it.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Weak};

use farhaul_proto::Mode;
use farhaul_proto::probe::StableConfig;
use farhaul_proto::secure::Protection;
use farhaul_proto::udt::ConnectOptions;

use crate::addresses::{Attempted, any_port_for, first_that_works, resolve};
use crate::builder::Builder;
use crate::canceller::Canceller;
use crate::connection::Connection;
use crate::control_stream::ControlStream;
use crate::driver::UdpPort;
use crate::error::Error;
use crate::listener::Listener;
use crate::message::MessageSocket;
use crate::other_clients::OtherClients;
use crate::port::Port;
use crate::probe::ProbePayload;
use crate::reach::{Patience, Reaching};
use crate::security::{Network, PublicKey, Security};
use crate::stream::Stream;

/// The warning about a port that writes down secrets.
const SECRETS: &str = "the secrets of all connections are written down: whoever has them can read and forge everything; use this for \
                       debugging alone, and delete them";

/// A UDP port that opens and accepts any number of connections, in both directions.
///
/// A clone is a second handle of the same port. The port stays open while any handle of it lives: endpoint, listener,
/// stream or message socket. Dropping the last one returns at once. The port's thread tells the peers, which takes
/// about two RTTs, and then closes the port: see [`wait_idle`](crate::wait_idle).
#[derive(Clone)]
pub struct Endpoint {
    port: Arc<Port>,
}

/// A handle of a port that does not keep it open.
#[derive(Clone)]
pub struct WeakEndpoint {
    port: Weak<Port>,
}

impl WeakEndpoint {
    /// The endpoint. `None` once its last handle is gone.
    pub fn upgrade(&self) -> Option<Endpoint> {
        self.port.upgrade().map(|port| Endpoint { port })
    }
}

impl Endpoint {
    /// A handle that does not keep the port open.
    pub fn downgrade(&self) -> WeakEndpoint {
        WeakEndpoint { port: Arc::downgrade(&self.port) }
    }

    /// Settings for a port, before it is opened.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Opens the UDP port at `address` with default settings, and encrypts all its connections, as [`Builder::secure`]; port
    /// 0 lets the system choose.
    ///
    /// # Errors
    /// The address cannot be resolved, or its port not be opened.
    pub fn secure(address: impl ToSocketAddrs, security: Security) -> Result<Self, Error> {
        first_that_works(&resolve(address)?, |to| Self::builder().secure(security.clone()).bind(to.peer))
    }

    /// Opens the UDP port at `address` with default settings and without encryption, as [`Builder::plain`]; port 0 lets
    /// the system choose.
    ///
    /// # Errors
    /// The address cannot be resolved, or its port not be opened.
    pub fn plain(address: impl ToSocketAddrs) -> Result<Self, Error> {
        first_that_works(&resolve(address)?, |to| Self::builder().plain().bind(to.peer))
    }

    fn open(builder: Builder, port: UdpPort) -> Result<Self, Error> {
        Ok(Self { port: Arc::new(builder.open(port)?) })
    }

    /// The address of the UDP port.
    pub fn local_addr(&self) -> SocketAddr {
        self.port.driver.local_addr()
    }

    /// Configuration problems that cost speed on this machine, and [secrets](Security::unsafe_key_log) that are written down. Each
    /// line names one and what helps. Empty if there are none.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = self.port.driver.warnings();
        if self.port.logs_secrets {
            warnings.push(SECRETS.to_owned());
        }
        warnings
    }

    /// Datagrams that the system dropped since the port was opened, because this process was too slow to receive them.
    /// `None` if the system does not tell. Wraps at 2^32.
    pub fn recv_drops(&self) -> Option<u32> {
        self.port.driver.recv_drops()
    }

    /// Datagrams that arrived since the port was opened and were invalid or belonged to no connection. Empty datagrams
    /// do not count. Some are harmless, such as those of a peer that has not yet learned of the end of its connection.
    /// Many suggest an attacker who guesses or scans.
    ///
    /// # Errors
    /// The endpoint's driver thread is gone.
    pub fn invalid_datagrams(&self) -> Result<u64, Error> {
        Ok(self.port.driver.lock()?.transport.invalid_datagrams())
    }

    /// Admits plain clients from these networks alone from now on, instead of those of [`Builder::plain_clients`]. Plain
    /// connections from other networks end at once.
    ///
    /// # Errors
    /// The port was opened without plain clients. The endpoint's driver thread is gone.
    pub fn admit_plain(&self, networks: impl IntoIterator<Item = Network>) -> Result<(), Error> {
        let networks: Vec<Network> = networks.into_iter().collect();
        let has_plain = self.port.under_lock(|core, now| core.transport.admit_plain(now, &networks))?;
        if has_plain { Ok(()) } else { Err(Error::NoPlainClients) }
    }

    /// Aborts the encrypted connections of clients that `admits` refuses, and returns their number. Its arguments are the address
    /// from which a client called, and its key. A [`Trust`](crate::security::Trust) whose answers have changed decides about
    /// new connections alone, so call this after the change.
    ///
    /// # Errors
    /// The endpoint's driver thread is gone.
    pub fn end_clients(&self, mut admits: impl FnMut(SocketAddr, PublicKey) -> bool) -> Result<usize, Error> {
        let is_welcome = |from, protection: &Protection| {
            PublicKey::from_spki(&protection.peer_key).is_some_and(|key| admits(from, key))
        };
        self.port.under_lock(|core, now| core.transport.end_callers(now, is_welcome))
    }

    /// Answers measured streams from now on, as [`Builder::answer_probes`].
    ///
    /// # Errors
    /// The endpoint's driver thread is gone.
    pub fn answer_probes(&self) -> Result<(), Error> {
        self.port.driver.lock()?.answer_probes();
        Ok(())
    }

    /// Answers measured streams from now on, as [`Builder::answer_probes`], and gives their payloads to the caller. The
    /// latest call receives them.
    ///
    /// They come as datagrams come: not at all, twice, or in another order. While 1024 wait, further ones are lost.
    ///
    /// # Errors
    /// The endpoint's driver thread is gone.
    pub fn probe_payloads(&self) -> Result<Receiver<ProbePayload>, Error> {
        Ok(self.port.driver.lock()?.answer_probes().payloads())
    }

    /// The clients of other programs that open a TCP connection to this port, from now on until its listener is closed.
    /// The latest call receives them. A protocol without a control channel has none, and neither has a secure port.
    ///
    /// Call it before [`listen`](Self::listen), which opens the TCP port: a client that comes in between is refused.
    ///
    /// # Errors
    /// The endpoint's driver thread is gone.
    pub fn other_clients(&self) -> Result<OtherClients, Error> {
        let callers = self.port.driver.lock()?.other_clients();
        // Without a sender, a receiver is at its end.
        let callers = callers.unwrap_or_else(|| sync_channel(0).1);
        Ok(OtherClients::new(callers, Arc::clone(&self.port.driver.socket)))
    }

    /// Datagrams of measured streams that this port has counted since it answers them, and their bytes of UDP payload.
    /// Questions for the counts are none. Zero while the port answers no streams.
    ///
    /// # Errors
    /// The endpoint's driver thread is gone.
    pub fn probe_totals(&self) -> Result<(u64, u64), Error> {
        Ok(self.port.driver.lock()?.answering.as_ref().map_or((0, 0), |answering| answering.totals()))
    }

    /// Begins a control stream to `peer`, beside the connections of this endpoint and on the same port.
    ///
    /// For plain ports. On a port with encryption, a stream needs a secure connection:
    /// [`Connection::control_stream`](crate::Connection::control_stream).
    ///
    /// # Errors
    /// The port has encryption ([`Error::NeedsConnection`]). The endpoint has a control stream. Its driver thread is gone. The system has no randomness.
    pub fn control_stream(&self, peer: SocketAddr, config: StableConfig) -> Result<ControlStream, Error> {
        ControlStream::begin(&self.port, peer, None, config)
    }

    /// Connects to `peer`, which must be listening for streams.
    ///
    /// If a name has several addresses, they are tried in guard. Addresses of another family than this port's are
    /// skipped; a port at `[::]` has both families. If the network reports an address as unreachable, the next one is
    /// tried at once.
    ///
    /// # Errors
    /// The name cannot be resolved, or has only addresses of the other family ([`Error::WrongFamily`]). The peer does
    /// not answer within the connect time-out ([`Error::Unreachable`] if the network says why), or refuses. A canceller
    /// ended the call.
    pub fn connect(&self, peer: impl ToSocketAddrs) -> Result<Stream, Error> {
        self.established(peer, ConnectOptions { mode: Mode::Stream, rendezvous: false }).map(Stream::from_connection)
    }

    /// Connects to `peer`, which calls this port at the same time (`UDT_RENDEZVOUS`). Neither side listens, and each
    /// must know the other's port beforehand. Rendezvous passes most address translators. If `peer` has several
    /// addresses, each is tried for the whole time-out, because the peer may call later than this side.
    ///
    /// On a port that [encrypts](Builder::secure), both sides must do so. Each judges the key of the other one by
    /// [`Trust::admits_server`](crate::security::Trust::admits_server), because it calls. A rendezvous is for UDT4 alone.
    ///
    /// # Errors
    /// As [`connect`](Endpoint::connect), with the rendezvous time-out.
    pub fn rendezvous(&self, peer: impl ToSocketAddrs) -> Result<Stream, Error> {
        self.established(peer, ConnectOptions { mode: Mode::Stream, rendezvous: true }).map(Stream::from_connection)
    }

    /// Connects to `peer`, which must be listening for messages.
    ///
    /// # Errors
    /// As [`connect`](Endpoint::connect).
    pub fn connect_for_messages(&self, peer: impl ToSocketAddrs) -> Result<MessageSocket, Error> {
        let options = ConnectOptions { mode: Mode::Message, rendezvous: false };
        self.established(peer, options).map(MessageSocket::from_connection)
    }

    /// [`rendezvous`](Endpoint::rendezvous) for messages. Both sides must call for messages.
    ///
    /// # Errors
    /// As [`rendezvous`](Endpoint::rendezvous).
    pub fn rendezvous_for_messages(&self, peer: impl ToSocketAddrs) -> Result<MessageSocket, Error> {
        let options = ConnectOptions { mode: Mode::Message, rendezvous: true };
        self.established(peer, options).map(MessageSocket::from_connection)
    }

    /// Begins to connect to `peer` and returns at once. The stream is not established yet.
    ///
    /// [`Connection::readiness`] tells when it is, and [`Connection::ending`] why it never will be. Until then, reads and writes
    /// wait, and `try_read` and `try_write` give nothing. Unlike [`connect`](Endpoint::connect), it does not ask the network
    /// for the reason of a silence, so an attempt at a closed port lasts the whole time-out.
    ///
    /// # Errors
    /// The address is of the other family ([`Error::WrongFamily`]). There are too many connections. The driver thread is gone.
    pub fn begin_connect(&self, peer: SocketAddr) -> Result<Stream, Error> {
        self.begun(peer, ConnectOptions { mode: Mode::Stream, rendezvous: false }).map(Stream::from_connection)
    }

    /// [`begin_connect`](Endpoint::begin_connect) for a [rendezvous](Endpoint::rendezvous).
    ///
    /// # Errors
    /// As [`begin_connect`](Endpoint::begin_connect). A second rendezvous with the same address is refused.
    pub fn begin_rendezvous(&self, peer: SocketAddr) -> Result<Stream, Error> {
        self.begun(peer, ConnectOptions { mode: Mode::Stream, rendezvous: true }).map(Stream::from_connection)
    }

    /// [`begin_connect`](Endpoint::begin_connect) for messages.
    ///
    /// # Errors
    /// As [`begin_connect`](Endpoint::begin_connect).
    pub fn begin_connect_for_messages(&self, peer: SocketAddr) -> Result<MessageSocket, Error> {
        let options = ConnectOptions { mode: Mode::Message, rendezvous: false };
        self.begun(peer, options).map(MessageSocket::from_connection)
    }

    /// [`begin_rendezvous`](Endpoint::begin_rendezvous) for messages.
    ///
    /// # Errors
    /// As [`begin_rendezvous`](Endpoint::begin_rendezvous).
    pub fn begin_rendezvous_for_messages(&self, peer: SocketAddr) -> Result<MessageSocket, Error> {
        let options = ConnectOptions { mode: Mode::Message, rendezvous: true };
        self.begun(peer, options).map(MessageSocket::from_connection)
    }

    fn begun(&self, peer: SocketAddr, options: ConnectOptions) -> Result<Connection, Error> {
        self.reachable(vec![peer])?;
        let (connection, _) = self.begin(Attempted { peer, has_alternative: false }, options)?;
        Ok(connection)
    }

    /// Accepts streams that peers open to this port.
    ///
    /// # Errors
    /// This endpoint already has a listener.
    pub fn listen(&self) -> Result<Listener, Error> {
        Listener::open(&self.port)
    }

    /// Accepts message sockets that peers open to this port.
    ///
    /// # Errors
    /// This endpoint already has a listener.
    pub fn listen_for_messages(&self) -> Result<Listener<MessageSocket>, Error> {
        Listener::open(&self.port)
    }

    /// Returns a handle that ends every blocked call of this endpoint, its listener and its connections. Until
    /// [`reset`](Canceller::reset), later calls that would wait end too.
    pub fn canceller(&self) -> Canceller {
        self.port.canceller()
    }

    /// Begins to connect; the connection is not established yet.
    pub(crate) fn begin(
        &self,
        Attempted { peer, has_alternative }: Attempted,
        options: ConnectOptions,
    ) -> Result<(Connection, Reaching), Error> {
        let longest = self.port.connect_timeouts[usize::from(options.rendezvous)];
        let mut guard = self.port.driver.lock()?;
        let now = guard.now();
        let id = guard.transport.connect_with(now, peer, options)?;
        guard.open(id);
        drop(guard);
        let patience = match has_alternative {
            // The peer of a rendezvous may open its port later.
            _ if options.rendezvous => Patience::Whole,
            true => Patience::NextAddress,
            false => Patience::of(longest),
        };
        let reaching = Reaching::begin(peer, now, longest, patience);
        Ok((Connection::new(Arc::clone(&self.port), id, peer), reaching))
    }

    /// Connects to one address of a peer.
    pub(crate) fn connect_to(&self, to: Attempted, options: ConnectOptions) -> Result<Connection, Error> {
        let (connection, reaching) = self.begin(to, options)?;
        connection.wait_until_connected(reaching)?;
        Ok(connection)
    }

    fn established(&self, peer: impl ToSocketAddrs, options: ConnectOptions) -> Result<Connection, Error> {
        let peers = self.reachable(resolve(peer)?)?;
        first_that_works(&peers, |to| self.connect_to(to, options))
    }

    /// Keeps the `peers` whose family this port can reach.
    pub(crate) fn reachable(&self, mut peers: Vec<SocketAddr>) -> Result<Vec<SocketAddr>, Error> {
        let (local, peer) = (self.local_addr(), peers[0]);
        peers.retain(|peer| self.port.driver.is_of_family(*peer));
        if peers.is_empty() { Err(Error::WrongFamily { local, peer }) } else { Ok(peers) }
    }
}

impl Builder {
    /// Opens the UDP port at `address`; port 0 lets the system choose.
    ///
    /// # Errors
    /// Neither [`secure`](Self::secure) nor [`plain`](Self::plain) was called, a setting is out of its range, or the port cannot
    /// be opened. [`plain_clients`](Self::plain_clients) was called without [`secure`](Self::secure), or with another protocol than
    /// UDT4.
    pub fn bind(self, address: SocketAddr) -> Result<Endpoint, Error> {
        Endpoint::open(self, address.into())
    }

    /// Takes a UDP port that somebody else has bound, for instance the service manager (socket activation).
    ///
    /// # Errors
    /// As [`bind`](Self::bind); or the socket is none of UDP.
    pub fn adopt(self, socket: UdpSocket) -> Result<Endpoint, Error> {
        let unknown = |source| Error::System { what: "the address of the socket", source };
        let address = socket.local_addr().map_err(unknown)?;
        Endpoint::open(self, UdpPort::Socket(address, socket))
    }
}

impl Stream {
    /// Connects to `peer` from a new port, with default settings and without encryption. For other settings, see
    /// [`Endpoint::builder`].
    ///
    /// # Errors
    /// The name cannot be resolved, the peer does not answer, or it refuses.
    pub fn connect_plain(peer: impl ToSocketAddrs) -> Result<Self, Error> {
        first_that_works(&resolve(peer)?, |to| {
            let endpoint = Endpoint::plain(any_port_for(to.peer))?;
            endpoint.connect_to(to, ConnectOptions::default()).map(Self::from_connection)
        })
    }
}

impl Listener {
    /// Opens the UDP port at `address` and accepts streams there, with default settings and without encryption. For other
    /// settings, see [`Endpoint::builder`] and [`Endpoint::listen`].
    ///
    /// # Errors
    /// The address cannot be resolved, or its port not be opened.
    pub fn plain(address: impl ToSocketAddrs) -> Result<Self, Error> {
        first_that_works(&resolve(address)?, |to| Endpoint::plain(to.peer)?.listen())
    }
}

impl fmt::Debug for WeakEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakEndpoint").finish_non_exhaustive()
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("local", &self.local_addr()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bind(builder: Builder) -> Result<Endpoint, Error> {
        builder.bind(SocketAddr::from(([127, 0, 0, 1], 0)))
    }

    #[test]
    fn a_port_is_never_plain_by_oversight() {
        let error = Endpoint::builder().bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap_err();
        assert!(matches!(error, Error::NoProtection), "{error}");
    }

    #[test]
    fn an_unknown_controller_is_refused_with_the_known_ones() {
        let message = bind(Endpoint::builder().plain().controller("warp")).unwrap_err().to_string();
        assert!(message.contains("warp") && message.contains("udt"), "{message}");
    }

    #[test]
    fn a_taken_port_is_an_error_that_names_it() {
        let first = bind(Endpoint::builder().plain()).unwrap();
        let error = Endpoint::builder().plain().bind(first.local_addr()).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
        assert!(error.to_string().contains(&first.local_addr().to_string()), "{error}");
    }
}
