//! Connecting without blocking a task: a separate thread resolves names.

use std::any::Any;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::thread;

use farhaul_proto::udt;
use tokio::sync::oneshot;

use super::{ConnectOptions, Endpoint};
use crate::addresses::{Attempted, resolve};
use crate::connection::Connection;
use crate::driver::{Core, WaitPlace};
use crate::error::Error;
use crate::kind::ConnectionKind;
use crate::tasks::AsyncStream;

impl Endpoint {
    /// [`connect`](Endpoint::connect) for tasks: [`connect_with_async`](Endpoint::connect_with_async) with
    /// [`ConnectOptions::stream`].
    ///
    /// # Errors
    /// As [`connect_with`](Endpoint::connect_with).
    pub async fn connect_async(&self, peer: impl ToSocketAddrs + Send + 'static) -> Result<AsyncStream, Error> {
        self.connect_with_async(peer, ConnectOptions::stream()).await
    }

    /// [`connect_with`](Endpoint::connect_with) for tasks. Dropping the future abandons the attempt.
    ///
    /// A thread resolves the name and ends with that. So `peer` must own its data or be `'static`.
    ///
    /// # Errors
    /// As [`connect_with`](Endpoint::connect_with).
    pub async fn connect_with_async<C: ConnectionKind>(
        &self,
        peer: impl ToSocketAddrs + Send + 'static,
        options: ConnectOptions<C>,
    ) -> Result<C::Async, Error> {
        let connection = self.established_async(peer, options.of_protocol()).await?;
        Ok(C::of_connection(connection).into())
    }

    async fn established_async(
        &self,
        peer: impl ToSocketAddrs + Send + 'static,
        options: udt::ConnectOptions,
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

    async fn connect_to_async(&self, to: Attempted, options: udt::ConnectOptions) -> Result<Connection, Error> {
        let (connection, mut attempt) = self.begin(to, options)?;
        let id = connection.id();
        let look = |core: &mut Core<_>, now| attempt.look(core, now, id);
        connection.wait(WaitPlace::Change(id), look).await?;
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
