//! Connecting to a listener or by rendezvous, and waiting for that or not.

use std::marker::PhantomData;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;

use farhaul_proto::udt;

use super::Endpoint;
use crate::addresses::{Attempted, any_port_for, first_that_works, resolve};
use crate::connect_attempt::{ConnectAttempt, Patience};
use crate::connection::Connection;
use crate::error::Error;
use crate::kind::ConnectionKind;
use crate::message::MessageSocket;
use crate::stream::Stream;

/// How to connect, and what the connection carries: a [`Stream`], or messages ([`MessageSocket`]).
///
/// ```no_run
/// use farhaul::{ConnectOptions, Endpoint};
/// # fn main() -> Result<(), farhaul::Error> {
/// let endpoint = Endpoint::plain("0.0.0.0:9000")?;
/// let messages = endpoint.connect_with("192.0.2.7:9000", ConnectOptions::messages().rendezvous())?;
/// messages.send(b"over the hills")?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ConnectOptions<C = Stream> {
    rendezvous: bool,
    carries: PhantomData<fn() -> C>,
}

impl ConnectOptions {
    /// A stream to a peer that listens for streams.
    pub const fn stream() -> Self {
        Self { rendezvous: false, carries: PhantomData }
    }
}

impl ConnectOptions<MessageSocket> {
    /// Messages to a peer that listens for messages.
    pub const fn messages() -> Self {
        Self { rendezvous: false, carries: PhantomData }
    }
}

impl<C: ConnectionKind> ConnectOptions<C> {
    /// The peer calls this port at the same time (`UDT_RENDEZVOUS`). Neither side listens, and each must know the other's port
    /// beforehand. Both must call for the same: streams or messages.
    ///
    /// Rendezvous passes most address translators. If the peer has several addresses, each is tried for the whole
    /// [time-out](crate::Builder::rendezvous_timeout), because the peer may call later than this side. A second rendezvous with the
    /// same address is refused.
    ///
    /// On a port that [encrypts](crate::Builder::secure), both sides must do so. Each judges the key of the other one by
    /// [`Trust::admits_server`](crate::security::Trust::admits_server), because it calls. A rendezvous is for UDT4 alone.
    #[must_use]
    pub const fn rendezvous(mut self) -> Self {
        self.rendezvous = true;
        self
    }

    pub(super) const fn of_protocol(&self) -> udt::ConnectOptions {
        udt::ConnectOptions { mode: C::MODE, rendezvous: self.rendezvous }
    }
}

impl Endpoint {
    /// Connects to `peer`, which must be listening for streams: [`connect_with`](Endpoint::connect_with) with
    /// [`ConnectOptions::stream`].
    ///
    /// # Errors
    /// As [`connect_with`](Endpoint::connect_with).
    pub fn connect(&self, peer: impl ToSocketAddrs) -> Result<Stream, Error> {
        self.connect_with(peer, ConnectOptions::stream())
    }

    /// Connects to `peer` and waits until it answers.
    ///
    /// If a name has several addresses, they are tried in order. Addresses of another family than this port's are
    /// skipped; a port at `[::]` has both families. If the network reports an address as unreachable, the next one is
    /// tried at once.
    ///
    /// # Errors
    /// The name cannot be resolved, or has only addresses of the other family ([`Error::WrongFamily`]). The peer does
    /// not answer within the connect time-out ([`Error::Unreachable`] if the network says why), or refuses. A canceller
    /// ended the call.
    pub fn connect_with<C: ConnectionKind>(
        &self,
        peer: impl ToSocketAddrs,
        options: ConnectOptions<C>,
    ) -> Result<C, Error> {
        let peers = self.reachable(resolve(peer)?)?;
        first_that_works(&peers, |to| self.connect_to(to, options.of_protocol())).map(C::of_connection)
    }

    /// Begins to connect to `peer` and returns at once. The connection is not established yet.
    ///
    /// [`Connection::readiness`] tells when it is, and [`Connection::ending`] why it never will be. Until then, reads and writes
    /// wait, and `try_read` and `try_write` give nothing. Unlike [`connect_with`](Endpoint::connect_with), it does not ask the
    /// network for the reason of a silence, so an attempt at a closed port lasts the whole time-out.
    ///
    /// # Errors
    /// The address is of the other family ([`Error::WrongFamily`]). There are too many connections. The driver thread is gone.
    pub fn begin_connect<C: ConnectionKind>(&self, peer: SocketAddr, options: ConnectOptions<C>) -> Result<C, Error> {
        self.reachable(vec![peer])?;
        let (connection, _) = self.begin(Attempted { peer, has_alternative: false }, options.of_protocol())?;
        Ok(C::of_connection(connection))
    }

    /// Begins to connect; the connection is not established yet.
    pub(super) fn begin(
        &self,
        Attempted { peer, has_alternative }: Attempted,
        options: udt::ConnectOptions,
    ) -> Result<(Connection, ConnectAttempt), Error> {
        let longest = self.port.connect_timeouts[usize::from(options.rendezvous)];
        if options.rendezvous {
            self.port.driver.learn_destinations()?;
        }
        let (id, now) = self.port.under_lock(|core, now| {
            let id = core.transport.connect_with(now, peer, options)?;
            core.open(id);
            Ok::<_, Error>((id, now))
        })??;
        let patience = match has_alternative {
            // The peer of a rendezvous may open its port later.
            _ if options.rendezvous => Patience::Whole,
            true => Patience::NextAddress,
            false => Patience::of(longest),
        };
        let attempt = ConnectAttempt::begin(peer, now, longest, patience);
        Ok((Connection::new(Arc::clone(&self.port), id, peer), attempt))
    }

    /// Connects to one address of a peer.
    fn connect_to(&self, to: Attempted, options: udt::ConnectOptions) -> Result<Connection, Error> {
        let (connection, attempt) = self.begin(to, options)?;
        connection.wait_until_connected(attempt)?;
        Ok(connection)
    }

    /// Keeps the `peers` whose family this port can reach.
    pub(super) fn reachable(&self, mut peers: Vec<SocketAddr>) -> Result<Vec<SocketAddr>, Error> {
        let (local, peer) = (self.local_addr(), peers[0]);
        peers.retain(|peer| self.port.driver.is_of_family(*peer));
        if peers.is_empty() { Err(Error::WrongFamily { local, peer }) } else { Ok(peers) }
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
            endpoint.connect_to(to, udt::ConnectOptions::default()).map(Self::from_connection)
        })
    }
}
