//! Messages: a plain connection that keeps their boundaries.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use farhaul::{
    AsyncMessageSocket, ConnectOptions, ConnectionLost, Error as ConnectionError, Listener as Port,
    MessageSocket as Connection, Received, SendOptions, Stats as ConnectionStats,
};
use farhaul_transfer::internal::HostPort;
use farhaul_transfer::{Code, Environment, Error, Settings};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::async_call::{AsyncCall, Outcome, async_call};
use crate::buffer::Readable;
use crate::detached::Detached;
use crate::error::{of_connection, raised, usage};
use crate::fork::OfProcess;
use crate::gate::detach;
use crate::log;
use crate::off_thread::OffThread;
use crate::settings::{Keywords, limit, settings, time};
use crate::stream::Stats;
use crate::unclosed::warn_unclosed;
use crate::wait::wait;

/// Sends and receives whole messages over a plain connection.
#[pyclass(module = "farhaul", frozen, weakref)]
pub(crate) struct MessageSocket(OfProcess<Arc<Inner>>);

struct Inner {
    state: Mutex<SocketState>,
    /// Messages that had arrived when the connection was finished, and were not received.
    unread: Mutex<VecDeque<Vec<u8>>>,
    peer: String,
}

/// A connection until this side ends it: then its port, descriptors and thread are free, although the object lives on.
enum SocketState {
    Open(Connection),
    Ended { stats: Box<ConnectionStats>, is_finished: bool },
}

/// A port to which others connect for messages.
#[pyclass(module = "farhaul", frozen, weakref)]
pub(crate) struct MessageListener(OfProcess<ListenerInner>);

struct ListenerInner {
    /// `None` once it is closed.
    port: Mutex<Option<Arc<Port<Connection>>>>,
    address: SocketAddr,
}

#[pymethods]
impl MessageSocket {
    /// Connects to a listener for messages. The connection is plain.
    #[staticmethod]
    #[pyo3(signature = (address, **options))]
    fn connect(py: Python<'_>, address: &str, options: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let (host, settings) = arguments(py, address, options)?;
        let environment = log::environment();
        let cancellation = environment.cancellation.clone();
        let connecting = OffThread::begin("connect", cancellation, move || connect(&host, &settings, &environment));
        let connected = wait(py, None, connecting.map_err(raised)?)?;
        connected.and_then(|connected| connected).map(|connected| Self::of(py, connected)).map_err(raised)
    }

    /// Opens the UDP port at `address`. Its connections are plain.
    #[staticmethod]
    #[pyo3(signature = (address, **options))]
    fn listen(py: Python<'_>, address: &str, options: Option<&Bound<'_, PyDict>>) -> PyResult<MessageListener> {
        let (host, settings) = arguments(py, address, options)?;
        let opened = detach(py, || -> Result<_, Error> {
            let at = host.listening()?;
            let endpoint = settings.bind_with(at, None)?;
            endpoint.listen_for_messages().map_err(|error| Error::of_connection(&error, &at))
        });
        let port = opened.map_err(raised)?;
        let address = port.local_addr();
        Ok(MessageListener(OfProcess::new(ListenerInner { port: Mutex::new(Some(Arc::new(port))), address })))
    }

    /// Sends a message whole, and waits for room if there is none. With `ttl` it is dropped if it was not delivered within so many
    /// seconds.
    #[pyo3(signature = (message, /, *, ttl = None, in_order = false, timeout = None))]
    fn send(
        &self,
        py: Python<'_>,
        message: Readable,
        ttl: Option<f64>,
        in_order: bool,
        timeout: Option<f64>,
    ) -> PyResult<()> {
        let inner = self.0.get()?;
        let (socket, options) = (inner.opened()?, options_of(ttl, in_order)?);
        let sent = wait(py, limit(timeout)?, socket.send_with(message.bytes(), options))?;
        sent.map_err(|error| of_connection(&error, &inner.peer))
    }

    /// Receives the next message; `None` at the end.
    #[pyo3(signature = (size = 1048576, /, *, timeout = None))]
    fn recv<'py>(&self, py: Python<'py>, size: usize, timeout: Option<f64>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let inner = self.0.get()?;
        let mut room = vec![0; size];
        let received = match inner.waiting() {
            Ok(socket) => wait(py, limit(timeout)?, Detached::new(socket).recv(&mut room))?,
            Err(ConnectionError::Finished) => Ok(None),
            Err(error) => Err(error),
        };
        let received = received.map(|received| received.or_else(|| inner.kept(&mut room)));
        let message = message(received, &inner.peer, &room)?;
        Ok(message.map(|message| PyBytes::new(py, message)))
    }

    /// `send` for tasks. A call that was cancelled has sent nothing.
    #[pyo3(signature = (message, /, *, ttl = None, in_order = false))]
    fn send_async<'py>(
        &self,
        py: Python<'py>,
        message: Readable,
        ttl: Option<f64>,
        in_order: bool,
    ) -> PyResult<Bound<'py, AsyncCall>> {
        let inner = self.0.get()?;
        let (socket, options, peer) = (inner.opened()?, options_of(ttl, in_order)?, inner.peer.clone());
        async_call(py, async move {
            let sent = socket.send_with(message.bytes(), options).await;
            Box::new(move |py: Python<'_>| {
                drop(message);
                sent.map_err(|error| of_connection(&error, &peer))?;
                Ok(py.None())
            }) as Outcome
        })
    }

    /// `recv` for tasks.
    #[pyo3(signature = (size = 1048576, /))]
    fn recv_async<'py>(&self, py: Python<'py>, size: usize) -> PyResult<Bound<'py, AsyncCall>> {
        let inner = Arc::clone(self.0.get()?);
        let (socket, mut room) = (inner.waiting(), vec![0; size]);
        async_call(py, async move {
            let received = match socket {
                Ok(socket) => socket.recv(&mut room).await,
                Err(ConnectionError::Finished) => Ok(None),
                Err(error) => Err(error),
            };
            let received = received.map(|received| received.or_else(|| inner.kept(&mut room)));
            Box::new(move |py: Python<'_>| {
                let message = message(received, &inner.peer, &room)?;
                Ok(message.map_or_else(|| py.None(), |message| PyBytes::new(py, message).into_any().unbind()))
            }) as Outcome
        })
    }

    /// Waits until the peer has acknowledged everything, then closes the connection.
    #[pyo3(signature = (timeout = None))]
    fn finish(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<()> {
        let inner = self.0.get()?;
        if matches!(inner.waiting(), Err(ConnectionError::Finished)) {
            return Ok(());
        }
        let finished = wait(py, limit(timeout)?, inner.opened()?.finish())?;
        finished.map_err(|error| of_connection(&error, &inner.peer))?;
        detach(py, || inner.let_go(true));
        Ok(())
    }

    /// Ends the connection at once. Messages that were not acknowledged are lost.
    fn abort(&self, py: Python<'_>) -> PyResult<()> {
        let inner = self.0.get()?;
        detach(py, || {
            if let Ok(socket) = inner.waiting() {
                socket.as_blocking().abort();
                inner.let_go(false);
            }
        });
        Ok(())
    }

    /// The address of the peer, `host:port`.
    #[getter]
    fn peer(&self) -> PyResult<&str> {
        Ok(&self.0.get()?.peer)
    }

    /// Counters and estimates.
    fn stats(&self, py: Python<'_>) -> PyResult<Stats> {
        let inner = self.0.get()?;
        let stats = detach(py, || inner.stats());
        stats.map(|stats| Stats::of(&stats)).map_err(|error| of_connection(&error, &inner.peer))
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        kind: Option<&Bound<'_, PyAny>>,
        _error: Option<&Bound<'_, PyAny>>,
        _trace: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        if kind.is_some() { self.abort(py) } else { self.finish(py, None) }
    }

    fn __repr__(&self) -> String {
        match self.0.here() {
            Some(inner) => inner.shown(),
            None => "<farhaul.MessageSocket of the parent process>".to_owned(),
        }
    }
}

impl Drop for MessageSocket {
    fn drop(&mut self) {
        if let Some(inner) = self.0.here().filter(|inner| inner.is_open()) {
            warn_unclosed(&inner.shown());
        }
    }
}

#[pymethods]
impl MessageListener {
    /// Waits for the next connection, for at most so many seconds.
    #[pyo3(signature = (timeout = None))]
    fn accept(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<MessageSocket> {
        let inner = self.0.get()?;
        let closed = || of_connection(&ConnectionError::ListenerClosed, &inner.address);
        let port = Detached::new(inner.place().clone().ok_or_else(closed)?);
        let accepted = wait(py, limit(timeout)?, port.accept_async())?;
        let (socket, _) = accepted.map_err(|error| of_connection(&error, &inner.address))?;
        Ok(MessageSocket::of(py, socket.as_blocking().clone()))
    }

    /// Its address, `host:port`.
    #[getter]
    fn address(&self) -> PyResult<String> {
        Ok(self.0.get()?.address.to_string())
    }

    /// Refuses further connections. Calls that wait end. Connections go on, and without them the port is free.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let port = self.0.get()?.place().take();
        detach(py, || port.inspect(|port| port.close()));
        Ok(())
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: Option<&Bound<'_, PyAny>>,
        _error: Option<&Bound<'_, PyAny>>,
        _trace: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        self.close(py)
    }

    fn __repr__(&self) -> String {
        match self.0.here() {
            Some(inner) => inner.shown(),
            None => "<farhaul.MessageListener of the parent process>".to_owned(),
        }
    }
}

impl Drop for MessageListener {
    fn drop(&mut self) {
        if let Some(inner) = self.0.here().filter(|inner| inner.place().is_some()) {
            warn_unclosed(&inner.shown());
        }
    }
}

impl ListenerInner {
    fn shown(&self) -> String {
        let closed = if self.place().is_some() { "" } else { ", closed" };
        format!("<farhaul.MessageListener at {}{closed}>", self.address)
    }

    fn place(&self) -> MutexGuard<'_, Option<Arc<Port<Connection>>>> {
        lock(&self.port)
    }
}

impl MessageSocket {
    fn of(py: Python<'_>, connection: Connection) -> Self {
        let peer = detach(py, || connection.peer_addr()).to_string();
        let state = Mutex::new(SocketState::Open(connection));
        Self(OfProcess::new(Arc::new(Inner { state, unread: Mutex::default(), peer })))
    }
}

impl Inner {
    fn shown(&self) -> String {
        let closed = if self.is_open() { "" } else { ", closed" };
        format!("<farhaul.MessageSocket to {}{closed}>", self.peer)
    }

    fn is_open(&self) -> bool {
        matches!(&*lock(&self.state), SocketState::Open(_))
    }

    /// A handle of the connection, which goes without the interpreter's lock.
    fn opened(&self) -> PyResult<Detached<AsyncMessageSocket>> {
        self.waiting().map(Detached::new).map_err(|error| of_connection(&error, &self.peer))
    }

    /// The same for futures, and for calls without that lock.
    fn waiting(&self) -> Result<AsyncMessageSocket, ConnectionError> {
        match &*lock(&self.state) {
            SocketState::Open(connection) => Ok(connection.clone().into()),
            SocketState::Ended { is_finished: true, .. } => Err(ConnectionError::Finished),
            SocketState::Ended { .. } => Err(ConnectionError::Lost(ConnectionLost::ClosedLocally)),
        }
    }

    fn stats(&self) -> Result<ConnectionStats, ConnectionError> {
        let connection = match &*lock(&self.state) {
            SocketState::Open(connection) => connection.clone(),
            SocketState::Ended { stats, .. } => return Ok(**stats),
        };
        connection.stats()
    }

    /// Lets the connection go, which this side has ended. What had arrived can still be received, if it was finished.
    fn let_go(&self, is_finished: bool) {
        let Ok(socket) = self.waiting() else { return };
        let connection = socket.as_blocking();
        let stats = connection.stats().unwrap_or_default();
        if is_finished {
            // No message is longer than all that is there.
            let mut room = vec![0; usize::try_from(stats.memory).unwrap_or(0)];
            while let Ok(Some(Some(received))) = connection.try_recv(&mut room) {
                lock(&self.unread).push_back(room[..received.len].to_vec());
            }
        }
        let ended = SocketState::Ended { stats: Box::new(stats), is_finished };
        let open = std::mem::replace(&mut *lock(&self.state), ended);
        // Behind the lock, because it takes that of the port.
        drop(open);
    }

    /// Receives a message that was kept.
    fn kept(&self, room: &mut [u8]) -> Option<Received> {
        let message = lock(&self.unread).pop_front()?;
        let len = message.len().min(room.len());
        room[..len].copy_from_slice(&message[..len]);
        Some(Received { len, truncated: len < message.len() })
    }
}

/// The content, even after a panic: each is consistent at any time.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn connect(host: &HostPort, settings: &Settings, environment: &Environment) -> Result<Connection, Error> {
    let mut failed = None;
    for peer in host.resolve()? {
        let endpoint = settings.bind_for(peer, None)?;
        environment.cancellation.cancels(endpoint.canceller());
        match endpoint.connect_with(peer, ConnectOptions::messages()) {
            Ok(connection) => return Ok(connection),
            Err(error) => failed = Some(environment.connection_error(&error, &peer)),
        }
        if environment.cancellation.is_cancelled() {
            break;
        }
    }
    Err(failed.unwrap_or_else(|| Error::new(Code::NoRoute, format!("{host} has no address"))))
}

fn arguments(py: Python<'_>, address: &str, options: Option<&Bound<'_, PyDict>>) -> PyResult<(HostPort, Settings)> {
    let keywords = Keywords::of(py, options)?;
    let settings = settings(&keywords)?;
    keywords.end("MessageSocket")?;
    if !settings.security.plain {
        return Err(usage(
            "messages need a plain connection, which everybody on the path can read and change: plain=True",
        ));
    }
    Ok((HostPort::with_default(address, 0).map_err(usage)?, settings))
}

fn options_of(ttl: Option<f64>, in_order: bool) -> PyResult<SendOptions> {
    let mut options = SendOptions::default();
    if let Some(seconds) = ttl {
        options = options.time_to_live(time("ttl", seconds)?);
    }
    Ok(if in_order { options.in_order() } else { options })
}

/// The message in `room`; `None` at the end.
fn message<'a>(
    received: Result<Option<Received>, ConnectionError>,
    peer: &str,
    room: &'a [u8],
) -> PyResult<Option<&'a [u8]>> {
    match received.map_err(|error| of_connection(&error, &peer))? {
        Some(Received { truncated: true, .. }) => {
            let (size, code) = (room.len(), Code::Failed);
            let error = Error::new(code, format!("a message is longer than {size} bytes, and was dropped"));
            Err(raised(error.remedy("receive with a larger size")))
        }
        Some(Received { len, .. }) => Ok(Some(&room[..len])),
        None => Ok(None),
    }
}
