//! Connecting without blocking a task: a separate thread resolves names.

use std::any::Any;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::thread;

use farhaul_proto::Mode;
use farhaul_proto::udt::ConnectOptions;
use tokio::sync::oneshot;

use super::{AsyncMessageSocket, AsyncStream};
use crate::addresses::{Attempted, resolve};
use crate::connection::Connection;
use crate::driver::{Core, WaitPlace};
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::message::MessageSocket;
use crate::stream::Stream;

impl Endpoint {
    /// [`connect`](Endpoint::connect) for tasks. Dropping the future abandons the attempt.
    ///
    /// A thread resolves the name and ends with that. So `peer` must own its data or be `'static`.
    ///
    /// # Errors
    /// As [`connect`](Endpoint::connect).
    pub async fn connect_async(&self, peer: impl ToSocketAddrs + Send + 'static) -> Result<AsyncStream, Error> {
        let options = ConnectOptions { mode: Mode::Stream, rendezvous: false };
        Ok(Stream::from_connection(self.established_async(peer, options).await?).into())
    }

    /// [`rendezvous`](Endpoint::rendezvous) for tasks, as [`connect_async`](Endpoint::connect_async).
    ///
    /// # Errors
    /// As [`rendezvous`](Endpoint::rendezvous).
    pub async fn rendezvous_async(&self, peer: impl ToSocketAddrs + Send + 'static) -> Result<AsyncStream, Error> {
        let options = ConnectOptions { mode: Mode::Stream, rendezvous: true };
        Ok(Stream::from_connection(self.established_async(peer, options).await?).into())
    }

    /// [`connect_for_messages`](Endpoint::connect_for_messages) for tasks, as [`connect_async`](Endpoint::connect_async).
    ///
    /// # Errors
    /// As [`connect`](Endpoint::connect).
    pub async fn connect_for_messages_async(
        &self,
        peer: impl ToSocketAddrs + Send + 'static,
    ) -> Result<AsyncMessageSocket, Error> {
        let options = ConnectOptions { mode: Mode::Message, rendezvous: false };
        Ok(MessageSocket::from_connection(self.established_async(peer, options).await?).into())
    }

    /// [`rendezvous_for_messages`](Endpoint::rendezvous_for_messages) for tasks, as
    /// [`connect_async`](Endpoint::connect_async).
    ///
    /// # Errors
    /// As [`rendezvous`](Endpoint::rendezvous).
    pub async fn rendezvous_for_messages_async(
        &self,
        peer: impl ToSocketAddrs + Send + 'static,
    ) -> Result<AsyncMessageSocket, Error> {
        let options = ConnectOptions { mode: Mode::Message, rendezvous: true };
        Ok(MessageSocket::from_connection(self.established_async(peer, options).await?).into())
    }

    async fn established_async(
        &self,
        peer: impl ToSocketAddrs + Send + 'static,
        options: ConnectOptions,
    ) -> Result<Connection, Error> {
        let peers = self.reachable(resolve_elsewhere(peer).await?)?;
        for (index, &peer) in peers.iter().enumerate() {
            let has_alternative = index + 1 < peers.len();
            match self.connect_to_async(Attempted { peer, has_alternative }, options).await {
                Err(error) if has_alternative && !matches!(error, Error::Cancelled) => {}
                done => return done,
            }
        }
        unreachable!("there is an address, and the last one is returned")
    }

    async fn connect_to_async(&self, to: Attempted, options: ConnectOptions) -> Result<Connection, Error> {
        let (connection, mut reaching) = self.begin(to, options)?;
        let id = connection.id();
        let look = |core: &mut Core<_>, now| reaching.look(core, now, id);
        connection.wait(WaitPlace::Settle(id), look).await?;
        Ok(connection)
    }
}

/// [`resolve`] for tasks.
async fn resolve_elsewhere(name: impl ToSocketAddrs + Send + 'static) -> Result<Vec<SocketAddr>, Error> {
    // An address needs no resolving.
    if let Some(address) = (&name as &dyn Any).downcast_ref::<SocketAddr>() {
        return resolve(*address);
    }
    let (sender, found) = oneshot::channel();
    thread::Builder::new()
        .name("farhaul:names".into())
        // A task that gave up has dropped its end.
        .spawn(move || drop(sender.send(resolve(name))))
        .map_err(|source| Error::System { what: "a thread", source })?;
    // A thread that panicked has dropped its end as well.
    found.await.unwrap_or_else(|_| Err(Error::Resolve(io::Error::other("the name resolution ended without a result"))))
}
