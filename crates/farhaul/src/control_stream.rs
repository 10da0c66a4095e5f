//! A stable control stream beside the connections of an endpoint.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

pub use farhaul_proto::CeilingFigures;
use farhaul_proto::probe::{Delays, StableConfig, StableFigures, StableStream};
use farhaul_proto::{ConnectionId, ConnectionLost, ControlPath, Endpoint, Streams, Transport};

use crate::driver::EndpointGuard;
use crate::error::Error;
use crate::port::Port;
use crate::randomness::session;

/// A stable control stream on an endpoint's own port, beside its connections.
///
/// Its goodput settles at a target. Its datagrams leave before those of the connections. And while it lives, the
/// connections have a ceiling: they fill the path as far as no queue delays the stream. So the stream keeps a low jitter
/// beside a bulk transfer.
///
/// Datagrams may be lost, and are not repeated. The peer's port must answer:
/// [`answer_probes`](crate::Builder::answer_probes). It receives payloads by
/// [`probe_payloads`](crate::Endpoint::probe_payloads). If nobody answers, the ceiling ends after 3 s.
///
/// The ceiling holds for all connections of the endpoint, so they should lead to the same peer. It needs a path without
/// other traffic: a queue that others fill is not the connections' to empty.
///
/// Dropping the stream ends it, and the ceiling.
///
/// ```no_run
/// use std::io::Write;
///
/// use farhaul::{Rate, Stream, probe::StableConfig};
///
/// # fn main() -> Result<(), farhaul::Error> {
/// let mut bulk = Stream::connect_plain("192.0.2.7:9000")?;
/// let control = bulk.control_stream(StableConfig::new(Rate::from_megabits_per_second(1)))?;
/// for _ in 0..1_000 {
///     bulk.write_all(&[0; 1 << 20]).expect("the peer reads");
///     println!("jitter {:.2} %", 100.0 * control.take_delays()?.jitter());
/// }
/// # Ok(())
/// # }
/// ```
pub struct ControlStream {
    port: Arc<Port>,
    peer: SocketAddr,
}

impl ControlStream {
    /// Begins a stream to the responder at `peer`, inside `connection` if the port has encryption.
    pub(crate) fn begin(
        port: &Arc<Port>,
        peer: SocketAddr,
        connection: Option<ConnectionId>,
        config: StableConfig,
    ) -> Result<Self, Error> {
        let session = session()?;
        let mut guard = port.driver.lock()?;
        if guard.transport.control().is_some() {
            return Err(Error::HasControlStream);
        }
        let now = guard.now();
        let path = match guard.transport.datagrams().is_some() {
            false => ControlPath::Plain(peer),
            true => {
                let is_plain = |id: &ConnectionId| guard.transport.is_plain(*id);
                let id = connection.filter(|id| !is_plain(id)).ok_or(Error::NeedsConnection)?;
                let inside = guard.transport.peer(id).map(|peer| ControlPath::Inside(id, peer));
                inside.ok_or(Error::Lost(ConnectionLost::ClosedLocally))?
            }
        };
        guard.transport.begin_control(now, path, config, session);
        drop(guard);
        Ok(Self { port: Arc::clone(port), peer })
    }

    /// The address of the responder.
    pub const fn peer_addr(&self) -> SocketAddr {
        self.peer
    }

    /// The figures so far.
    ///
    /// # Errors
    /// The endpoint's driver thread is gone.
    pub fn figures(&self) -> Result<StableFigures, Error> {
        self.read(|stream, guard| stream.figures(guard.now()))
    }

    /// The round trips so far.
    ///
    /// # Errors
    /// The endpoint's driver thread is gone.
    pub fn delays(&self) -> Result<Delays, Error> {
        self.read(|stream, _| stream.delays().clone())
    }

    /// The round trips since the last call.
    ///
    /// # Errors
    /// The endpoint's driver thread is gone.
    pub fn take_delays(&self) -> Result<Delays, Error> {
        self.change(StableStream::take_delays)
    }

    /// Whether the peer has acknowledged nothing for three seconds, although datagrams left.
    ///
    /// # Errors
    /// The endpoint's driver thread is gone.
    pub fn is_alone(&self) -> Result<bool, Error> {
        self.read(|stream, guard| stream.is_alone(guard.now()))
    }

    /// The ceiling of the endpoint's connections.
    ///
    /// # Errors
    /// The endpoint's driver thread is gone.
    pub fn ceiling(&self) -> Result<CeilingFigures, Error> {
        let guard = self.port.driver.lock()?;
        guard.transport.ceiling(guard.now()).ok_or(Error::DriverStopped)
    }

    /// Bytes of payload in each datagram.
    ///
    /// # Errors
    /// The endpoint's driver thread is gone.
    pub fn payload_len(&self) -> Result<usize, Error> {
        self.read(|stream, _| stream.payload_len())
    }

    /// Has `fill` write the payload of each datagram from now on: see [`StableStream::fill_with`]. It runs under the
    /// endpoint's lock, so it must be short and must not call this library.
    ///
    /// # Errors
    /// The endpoint's driver thread is gone.
    pub fn fill_with(&self, fill: impl FnMut(u64, &mut [u8]) + Send + 'static) -> Result<(), Error> {
        self.change(|stream| stream.fill_with(fill))
    }

    fn read<R>(&self, ask: impl FnOnce(&StableStream, &EndpointGuard<'_, Endpoint>) -> R) -> Result<R, Error> {
        let guard = self.port.driver.lock()?;
        guard.transport.control().map(|stream| ask(stream, &guard)).ok_or(Error::DriverStopped)
    }

    fn change<R>(&self, act: impl FnOnce(&mut StableStream) -> R) -> Result<R, Error> {
        self.port.driver.lock()?.transport.control_mut().map(act).ok_or(Error::DriverStopped)
    }
}

impl Drop for ControlStream {
    fn drop(&mut self) {
        if let Ok(mut guard) = self.port.driver.lock() {
            guard.transport.end_control();
        }
    }
}

impl fmt::Debug for ControlStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControlStream").field("peer", &self.peer).finish_non_exhaustive()
    }
}
