//! Readiness of connections and listeners, for event loops: asked without waiting, and announced by a waker.

use std::fmt;
use std::sync::{Arc, Weak};
use std::task::Waker;

use farhaul_proto::{ConnectionId, ConnectionLost, Endpoint};

use crate::driver::{Core, Registration, WaitPlace};
use crate::error::Error;
use crate::port::Port;

pub use farhaul_proto::Readiness;

/// Watches one connection or listener for an event loop. It does not keep the port open.
///
/// Each [`check`](Watch::check) tells the present state, and has a waker called once when the rest may have changed. The
/// check and the registration are one step under the port's lock, so no change is lost between them. After a wake-up, check
/// again.
///
/// ```
/// use std::sync::Arc;
/// use std::task::{Wake, Waker};
/// use std::thread::{self, Thread};
///
/// struct Unpark(Thread);
///
/// impl Wake for Unpark {
///     fn wake(self: Arc<Self>) {
///         self.0.unpark();
///     }
/// }
///
/// # fn main() -> Result<(), farhaul::Error> {
/// let listener = farhaul::Listener::plain("127.0.0.1:0")?;
/// let endpoint = farhaul::Endpoint::plain("127.0.0.1:0")?;
/// let stream = endpoint.begin_connect(listener.local_addr(), farhaul::ConnectOptions::stream())?;
/// let waker = Waker::from(Arc::new(Unpark(thread::current())));
/// let (mut connecting, mut listening) = (stream.watch(), listener.watch());
/// while !(connecting.check(&waker)?.connected && listening.check(&waker)?.readable) {
///     thread::park();
/// }
/// assert!(listener.try_accept()?.is_some());
/// # Ok(())
/// # }
/// ```
pub struct Watch {
    port: Weak<Port>,
    watched: Watched,
    /// One for each place of a connection; the first one of a listener.
    registrations: [Registration; PLACES],
}

#[derive(Clone, Copy, Debug)]
enum Watched {
    Connection(ConnectionId),
    Listener,
}

/// Places at which the waker of a connection may be registered.
const PLACES: usize = 3;

impl Watch {
    pub(crate) fn of_connection(port: &Arc<Port>, id: ConnectionId) -> Self {
        Self::new(port, Watched::Connection(id))
    }

    pub(crate) fn of_listener(port: &Arc<Port>) -> Self {
        Self::new(port, Watched::Listener)
    }

    fn new(port: &Arc<Port>, watched: Watched) -> Self {
        Self { port: Arc::downgrade(port), watched, registrations: Default::default() }
    }

    /// The present state. `waker` is called once when something that is false may have become true. It replaces the waker
    /// of the previous check, and may be called although nothing has changed.
    ///
    /// The waker runs without locks on a thread that uses the port, often the port's own. It must return soon.
    ///
    /// # Errors
    /// The connection was dropped, or the driver thread is gone.
    pub fn check(&mut self, waker: &Waker) -> Result<Readiness, Error> {
        let port = self.port.upgrade().ok_or(Error::Lost(ConnectionLost::ClosedLocally))?;
        // Declared before the lock and so dropped behind it, because wakers are foreign code.
        let mut replaced: [Option<Waker>; PLACES] = Default::default();
        let mut guard = port.driver.lock()?;
        let readiness = match self.watched {
            Watched::Connection(id) => of_connection(&mut guard, id)?,
            Watched::Listener => of_acceptor(&guard),
        };
        let places = self.watched.places(readiness).into_iter().flatten();
        for (((place, is_ready), registration), replaced) in places.zip(&mut self.registrations).zip(&mut replaced) {
            if let Some(queue) = guard.wait_queue(place).filter(|_| !is_ready) {
                *replaced = queue.register(registration, waker);
            }
        }
        Ok(readiness)
    }
}

impl Watched {
    /// The places that announce a change, and whether nothing is to be announced there.
    fn places(self, readiness: Readiness) -> [Option<(WaitPlace, bool)>; PLACES] {
        match self {
            Self::Connection(id) => [
                Some((WaitPlace::Read(id), readiness.readable)),
                Some((WaitPlace::Write(id), readiness.writable)),
                Some((WaitPlace::Change(id), readiness.ended)),
            ],
            Self::Listener => [Some((WaitPlace::Accept, readiness.readable)), None, None],
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let Some(port) = self.port.upgrade() else { return };
        let places = self.watched.places(Readiness::default()).into_iter().flatten();
        for ((place, _), registration) in places.zip(&mut self.registrations) {
            port.driver.withdraw(place, registration);
        }
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("watched", &self.watched).finish_non_exhaustive()
    }
}

/// The state of a connection, under the lock.
pub(crate) fn of_connection(core: &mut Core<Endpoint>, id: ConnectionId) -> Result<Readiness, Error> {
    let status = core.status(id).ok_or(Error::Lost(ConnectionLost::ClosedLocally))?;
    let mut readiness = core.transport.readiness(id)?;
    readiness.connected = status.connected;
    Ok(readiness)
}

/// The state of a port's listener, under the lock.
pub(crate) fn of_acceptor(core: &Core<Endpoint>) -> Readiness {
    let (is_open, is_awaited) = core.acceptor();
    let mut readiness = Readiness::default();
    readiness.connected = is_open;
    readiness.readable = is_awaited || !is_open;
    readiness.ended = !is_open;
    readiness
}
