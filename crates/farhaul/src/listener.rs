//! Accepts the connections that peers open.

use std::fmt;
use std::iter;
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::canceller::{CancelFlag, Canceller};
use crate::connection::Connection;
#[cfg(feature = "tokio")]
use crate::driver::TaskWait;
use crate::driver::{CancelFlags, Core, WaitPlace};
use crate::error::Error;
use crate::kind::ConnectionKind;
use crate::port::{Attempt, Port};
use crate::readiness::{self, Readiness, Watch};
use crate::stream::Stream;

/// Accepts connections on an endpoint: streams or [`MessageSocket`](crate::MessageSocket)s.
///
/// Dropping it refuses further connections. Accepted connections live on.
pub struct Listener<S = Stream> {
    port: Arc<Port>,
    cancelled: Arc<CancelFlag>,
    closed: AtomicBool,
    newest_first: bool,
    accepts: PhantomData<fn() -> S>,
}

impl<S: ConnectionKind> Listener<S> {
    pub(crate) fn open(port: &Arc<Port>) -> Result<Self, Error> {
        port.driver.learn_destinations()?;
        port.under_lock(|core, now| {
            core.open_acceptor()?;
            core.transport.listen(S::MODE).map_err(|error| {
                core.close_acceptor(now);
                Error::from(error)
            })
        })??;
        let (cancelled, closed) = (Arc::default(), AtomicBool::new(false));
        Ok(Self { port: Arc::clone(port), cancelled, closed, newest_first: false, accepts: PhantomData })
    }

    /// Waits for the next connection.
    ///
    /// # Errors
    /// The listener was closed, a canceller ended the call, or the driver thread is gone. A peer cannot make it fail.
    pub fn accept(&self) -> Result<(S, SocketAddr), Error> {
        self.port.driver.wait_for(WaitPlace::Accept, self.flags(), None, self.next())
    }

    /// [`accept`](Listener::accept) for tasks, which returns an [`AsyncStream`](crate::AsyncStream) or an
    /// [`AsyncMessageSocket`](crate::AsyncMessageSocket). Dropping the future loses no connection.
    ///
    /// # Errors
    /// The listener was closed, or a canceller ended the call.
    #[cfg(feature = "tokio")]
    pub async fn accept_async(&self) -> Result<(S::Async, SocketAddr), Error> {
        let (connection, peer) = TaskWait::new(&self.port.driver, WaitPlace::Accept, self.flags(), self.next()).await?;
        Ok((connection.into(), peer))
    }

    /// Accepts the connection that has waited shortest first, as libudt does. Default: longest first.
    #[must_use]
    pub fn newest_first(mut self) -> Self {
        self.newest_first = true;
        self
    }

    /// [`accept`](Listener::accept) without waiting: `None` if no connection waits.
    ///
    /// # Errors
    /// The listener was closed, or the driver thread is gone.
    pub fn try_accept(&self) -> Result<Option<(S, SocketAddr)>, Error> {
        self.port.under_lock(self.next())?
    }

    /// Whether [`accept`](Listener::accept) returns at once: a connection waits (`readable`), or the listener was closed
    /// (`ended`).
    ///
    /// # Errors
    /// The driver thread is gone.
    pub fn readiness(&self) -> Result<Readiness, Error> {
        Ok(readiness::of_acceptor(&*self.port.driver.lock()?))
    }

    /// A watch of this listener, for an event loop.
    pub fn watch(&self) -> Watch {
        Watch::of_listener(&self.port)
    }

    /// The accepted connections in order. It ends when the listener is closed or cancelled.
    pub fn incoming(&self) -> impl Iterator<Item = S> + '_ {
        iter::from_fn(|| self.accept().ok().map(|(connection, _)| connection))
    }

    /// The address of the UDP port.
    pub fn local_addr(&self) -> SocketAddr {
        self.port.driver.local_addr()
    }

    /// Refuses further connections and those not accepted yet. Blocked [`accept`](Listener::accept)s return.
    pub fn close(&self) {
        close(&self.port, &self.closed);
    }

    /// Returns a handle that ends blocked [`accept`](Listener::accept)s from another thread. Until
    /// [`reset`](Canceller::reset), later calls that would wait end too.
    pub fn canceller(&self) -> Canceller {
        Canceller::new(&self.cancelled, self.port.driver.cancellation())
    }

    fn flags(&self) -> CancelFlags<'_> {
        [&self.cancelled, &self.port.cancelled]
    }

    /// The next connection: an attempt for [`WaitPlace::Accept`].
    fn next(&self) -> impl Attempt<(S, SocketAddr)> {
        |core: &mut Core<_>, _| {
            if self.closed.load(Ordering::Acquire) {
                return Err(Error::ListenerClosed);
            }
            Ok(Connection::accept(&self.port, core, self.newest_first).map(|connection| {
                let peer = connection.first_peer();
                (S::of_connection(connection), peer)
            }))
        }
    }
}

impl<S> Drop for Listener<S> {
    fn drop(&mut self) {
        close(&self.port, &self.closed);
    }
}

fn close(port: &Port, closed: &AtomicBool) {
    if closed.swap(true, Ordering::AcqRel) {
        return;
    }
    // Without a driver thread there is nobody left to refuse.
    let _ = port.under_lock(|core, now| {
        core.transport.stop_listening();
        core.close_acceptor(now);
    });
}

impl<S> fmt::Debug for Listener<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener").field("local", &self.port.driver.local_addr()).finish_non_exhaustive()
    }
}
