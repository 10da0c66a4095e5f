//! A UDP port with any number of connections on it.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;

use farhaul_proto::Mode;
use farhaul_proto::udt::ConnectOptions;

use crate::builder::Builder;
use crate::canceller::Canceller;
use crate::connection::{Connection, Host};
use crate::error::Error;
use crate::listener::Listener;
use crate::message::MessageSocket;
use crate::stream::Stream;

/// A UDP port on which connections are opened and accepted, any number of them, in both directions.
///
/// A clone is a second handle of the same port. The port stays open while any handle of it lives: endpoint, listener,
/// stream or message socket. Dropping the last one returns at once; the port's thread closes it when the peers have been told
/// good-bye, after a quarter of a second at most: see [`wait_for_farewells`](crate::wait_for_farewells).
#[derive(Clone)]
pub struct Endpoint {
    host: Arc<Host>,
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
        first_that_works(address, |address| Self::builder().bind(address))
    }

    pub(crate) fn from_host(host: Host) -> Self {
        Self { host: Arc::new(host) }
    }

    /// The address of the UDP port.
    pub fn local_addr(&self) -> SocketAddr {
        self.host.driver.local_addr()
    }

    /// What costs speed on this machine, one line for people each, with the command that helps. Empty if nothing does.
    pub fn warnings(&self) -> Vec<String> {
        self.host.driver.warnings()
    }

    /// Datagrams that the system threw away since the port was opened because this process was too slow to take them;
    /// `None` if the system does not tell. Wraps at 2^32.
    pub fn recv_drops(&self) -> Option<u32> {
        self.host.driver.recv_drops()
    }

    /// Connects to `peer`, which must be listening for streams.
    ///
    /// # Errors
    /// The name cannot be resolved, nobody answers within the connect time-out ([`Error::Unreachable`] if the network says
    /// why), the peer refuses, or somebody cancelled.
    pub fn connect(&self, peer: impl ToSocketAddrs) -> Result<Stream, Error> {
        self.established(peer, ConnectOptions { mode: Mode::Stream, rendezvous: false }).map(Stream::from_connection)
    }

    /// Connects to `peer`, which connects to us at the same time (`UDT_RENDEZVOUS`): nobody listens, and both ports
    /// must be known beforehand. Gets through most address translators.
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

    /// Accepts streams that peers open to this port.
    ///
    /// # Errors
    /// There is a listener on this endpoint already.
    pub fn listen(&self) -> Result<Listener, Error> {
        Listener::open(&self.host)
    }

    /// Accepts message sockets that peers open to this port.
    ///
    /// # Errors
    /// There is a listener on this endpoint already.
    pub fn listen_for_messages(&self) -> Result<Listener<MessageSocket>, Error> {
        Listener::open(&self.host)
    }

    /// Ends every blocked call on this port from elsewhere, and later ones until [`reset`](Canceller::reset): of this
    /// endpoint, its listener and its connections.
    pub fn canceller(&self) -> Canceller {
        self.host.canceller()
    }

    /// Begins to connect; the connection is not established yet.
    pub(crate) fn begin(&self, peer: SocketAddr, options: ConnectOptions) -> Result<Connection, Error> {
        let mut turn = self.host.driver.turn()?;
        let now = turn.now();
        let id = turn.transport.connect_with(now, peer, options)?;
        turn.open(id);
        drop(turn);
        Ok(Connection::new(Arc::clone(&self.host), id, peer))
    }

    fn established(&self, peer: impl ToSocketAddrs, options: ConnectOptions) -> Result<Connection, Error> {
        first_that_works(peer, |peer| {
            let connection = self.begin(peer, options)?;
            connection.wait_until_connected(self.host.connect_timeouts[usize::from(options.rendezvous)])?;
            Ok(connection)
        })
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

/// Resolves `name` and tries its addresses one after the other; the last error counts.
pub(crate) fn first_that_works<R>(
    name: impl ToSocketAddrs,
    mut attempt: impl FnMut(SocketAddr) -> Result<R, Error>,
) -> Result<R, Error> {
    let mut error = Error::Resolve(io::Error::new(io::ErrorKind::NotFound, "the name has no address"));
    for address in name.to_socket_addrs().map_err(Error::Resolve)? {
        match attempt(address) {
            Err(Error::Cancelled) => return Err(Error::Cancelled),
            Err(its) => error = its,
            done => return done,
        }
    }
    Err(error)
}
