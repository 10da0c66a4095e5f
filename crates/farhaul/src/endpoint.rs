//! A UDP port with any number of connections on it.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;

use farhaul_proto::Mode;
use farhaul_proto::udt::ConnectOptions;

use crate::builder::Builder;
use crate::canceller::Canceller;
use crate::connection::{Connection, Port};
use crate::error::Error;
use crate::listener::Listener;
use crate::message::MessageSocket;
use crate::reach::Reaching;
use crate::stream::Stream;

/// A UDP port on which connections are opened and accepted, any number of them, in both directions.
///
/// A clone is a second handle of the same port. The port stays open while any handle of it lives: endpoint, listener,
/// stream or message socket. Dropping the last one returns at once; the port's thread closes it when the peers have been told
/// good-bye, which takes some two round trips: see [`wait_for_farewells`](crate::wait_for_farewells).
#[derive(Clone)]
pub struct Endpoint {
    port: Arc<Port>,
}

impl Endpoint {
    /// Settings to choose from before the port is opened.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Opens the UDP port at `address` with default settings; port 0 lets the system choose.
    ///
    /// # Errors
    /// The address cannot be resolved, or its port not be opened.
    pub fn bind(address: impl ToSocketAddrs) -> Result<Self, Error> {
        first_that_works(&resolve(address)?, |to| Self::builder().bind(to.peer))
    }

    pub(crate) fn from_port(port: Port) -> Self {
        Self { port: Arc::new(port) }
    }

    /// The address of the UDP port.
    pub fn local_addr(&self) -> SocketAddr {
        self.port.driver.local_addr()
    }

    /// What costs speed on this machine, one line for people each, with the command that helps. Empty if nothing does.
    pub fn warnings(&self) -> Vec<String> {
        self.port.driver.warnings()
    }

    /// Datagrams that the system threw away since the port was opened because this process was too slow to take them;
    /// `None` if the system does not tell. Wraps at 2^32.
    pub fn recv_drops(&self) -> Option<u32> {
        self.port.driver.recv_drops()
    }

    /// Datagrams, empty ones aside, that arrived since the port was opened and made no sense or belonged to no connection.
    /// Some are harmless, such as those of a peer that has not heard yet that its connection is over; many mean that
    /// somebody guesses or scans.
    ///
    /// # Errors
    /// The endpoint's driver thread is gone.
    pub fn invalid_datagrams(&self) -> Result<u64, Error> {
        Ok(self.port.driver.turn()?.transport.invalid_datagrams())
    }

    /// Connects to `peer`, which must be listening for streams.
    ///
    /// A name with several addresses is tried one address after the other. Those of the other family than this port's are
    /// passed over (a port at `[::]` is of both), and if the network says that one cannot be reached the next one gets its
    /// turn at once.
    ///
    /// # Errors
    /// The name cannot be resolved, or only to addresses of the other family ([`Error::WrongFamily`]); nobody answers within
    /// the connect time-out ([`Error::Unreachable`] if the network says why); the peer refuses; somebody cancelled.
    pub fn connect(&self, peer: impl ToSocketAddrs) -> Result<Stream, Error> {
        self.established(peer, ConnectOptions { mode: Mode::Stream, rendezvous: false }).map(Stream::from_connection)
    }

    /// Connects to `peer`, which connects to us at the same time (`UDT_RENDEZVOUS`): nobody listens, and both ports
    /// must be known beforehand. Gets through most address translators. If `peer` has several addresses, each is tried for
    /// the whole time-out, since whom it calls need not be there yet.
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

    /// [`rendezvous`](Endpoint::rendezvous) for messages: both sides must call for these.
    ///
    /// # Errors
    /// As [`rendezvous`](Endpoint::rendezvous).
    pub fn rendezvous_for_messages(&self, peer: impl ToSocketAddrs) -> Result<MessageSocket, Error> {
        let options = ConnectOptions { mode: Mode::Message, rendezvous: true };
        self.established(peer, options).map(MessageSocket::from_connection)
    }

    /// Accepts streams that peers open to this port.
    ///
    /// # Errors
    /// There is a listener on this endpoint already.
    pub fn listen(&self) -> Result<Listener, Error> {
        Listener::open(&self.port)
    }

    /// Accepts message sockets that peers open to this port.
    ///
    /// # Errors
    /// There is a listener on this endpoint already.
    pub fn listen_for_messages(&self) -> Result<Listener<MessageSocket>, Error> {
        Listener::open(&self.port)
    }

    /// Ends every blocked call on this port from elsewhere, and later ones until [`reset`](Canceller::reset): of this
    /// endpoint, its listener and its connections.
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
        let mut turn = self.port.driver.turn()?;
        let now = turn.now();
        let id = turn.transport.connect_with(now, peer, options)?;
        turn.open(id);
        drop(turn);
        // Whom a rendezvous calls need not have opened its port yet.
        let reaching = Reaching::begin(peer, now, longest, has_alternative && !options.rendezvous);
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

    /// Those of `peers` that are of a family of this port.
    pub(crate) fn reachable(&self, mut peers: Vec<SocketAddr>) -> Result<Vec<SocketAddr>, Error> {
        let (local, peer) = (self.local_addr(), peers[0]);
        peers.retain(|peer| self.port.driver.is_of_family(*peer));
        if peers.is_empty() { Err(Error::WrongFamily { local, peer }) } else { Ok(peers) }
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("local", &self.local_addr()).finish_non_exhaustive()
    }
}

/// Any port of the family that reaches `peer`.
pub(crate) fn any_port_for(peer: SocketAddr) -> SocketAddr {
    match peer {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    }
}

/// One of the addresses of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attempted {
    pub(crate) peer: SocketAddr,
    /// There are others to try after it.
    pub(crate) has_alternative: bool,
}

/// The addresses of `name`, at least one.
pub(crate) fn resolve(name: impl ToSocketAddrs) -> Result<Vec<SocketAddr>, Error> {
    let addresses: Vec<SocketAddr> = name.to_socket_addrs().map_err(Error::Resolve)?.map(without_mapping).collect();
    if addresses.is_empty() {
        return Err(Error::Resolve(io::Error::new(io::ErrorKind::NotFound, "the name has no address")));
    }
    Ok(addresses)
}

/// An IPv4 address as such, also if it came mapped into IPv6 (RFC 4291 §2.5.5.2).
fn without_mapping(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        ip if ip.is_ipv4() => (ip, address.port()).into(),
        _ => address,
    }
}

/// Tries addresses one after the other; the last error counts.
pub(crate) fn first_that_works<R>(
    addresses: &[SocketAddr],
    mut attempt: impl FnMut(Attempted) -> Result<R, Error>,
) -> Result<R, Error> {
    let mut result = Err(Error::Resolve(io::ErrorKind::NotFound.into()));
    for (index, &peer) in addresses.iter().enumerate() {
        result = attempt(Attempted { peer, has_alternative: index + 1 < addresses.len() });
        if matches!(result, Ok(_) | Err(Error::Cancelled)) {
            break;
        }
    }
    result
}
