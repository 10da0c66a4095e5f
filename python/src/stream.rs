//! Streams: a connection that carries bytes in both directions.

mod files;
mod held;
mod stats;

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use farhaul::units::Duration;
use farhaul::{AsyncStream, Stream as Connection};
use farhaul_transfer::Error;
use farhaul_transfer::internal::HostPort;
use farhaul_transfer::internal::connect::Calling;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use tokio::io::AsyncWrite;

use self::held::{Held, Reading};
pub(crate) use self::stats::Stats;
use crate::async_call::{AsyncCall, Outcome, async_call, async_write};
use crate::buffer::{Readable, Writable};
use crate::detached::Detached;
use crate::error::{of_connection, of_io, raised, usage};
use crate::fork::OfProcess;
use crate::gate::detach;
use crate::log;
use crate::off_thread::OffThread;
use crate::settings::{Keywords, limit, settings};
use crate::unclosed::warn_unclosed;
use crate::wait::wait;

/// Most bytes that one call of the library moves.
const BLOCK: usize = 256 << 10;
/// Bytes that a write hands over between two looks for signals.
const BETWEEN_LOOKS: usize = 16 << 20;

/// A reliable stream of bytes in both directions.
#[pyclass(module = "farhaul", frozen, weakref)]
pub(crate) struct Stream(OfProcess<Inner>);

struct Inner {
    held: Arc<Held>,
    local: String,
    peer: String,
    /// The place to which it was connected, if that has a name.
    host: Option<String>,
    timeout: Mutex<Option<Duration>>,
    is_closed: Arc<AtomicBool>,
    /// Memory for the next read.
    block: Mutex<Vec<u8>>,
}

impl Stream {
    pub(crate) fn of(py: Python<'_>, connection: Connection, host: Option<&HostPort>) -> Self {
        let peer = detach(py, || connection.peer_addr()).to_string();
        let (local, held) = (connection.local_addr().to_string(), Arc::new(Held::new(connection)));
        let (timeout, is_closed, block) = Default::default();
        let host = host.map(ToString::to_string).filter(|host| *host != peer);
        log::say(log::Level::Debug, format!("connected to {}", host.as_ref().unwrap_or(&peer)));
        log::pass_on_beside_result(py);
        Self(OfProcess::new(Inner { held, local, peer, host, timeout, is_closed, block }))
    }
}

/// Begins to connect, on a thread of its own: names are resolved, and keys are read.
fn connecting(
    py: Python<'_>,
    address: &str,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<(HostPort, OffThread<Result<Connection, Error>>)> {
    let keywords = Keywords::of(py, options)?;
    let settings = settings(&keywords)?;
    keywords.end("connect")?;
    let host: HostPort = address.parse().map_err(usage)?;
    let environment = log::environment();
    let cancellation = environment.cancellation.clone();
    let to = host.clone();
    let work = move || Calling::to(&environment, &settings, &to)?.connect(&to);
    Ok((host, OffThread::begin("connect", cancellation, work).map_err(raised)?))
}

#[pymethods]
impl Stream {
    /// Connects to a listener.
    #[staticmethod]
    #[pyo3(signature = (address, **options))]
    fn connect(py: Python<'_>, address: &str, options: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let (host, connecting) = connecting(py, address, options)?;
        wait(py, None, connecting)?
            .and_then(|connected| connected)
            .map(|connected| Self::of(py, connected, Some(&host)))
            .map_err(raised)
    }

    /// `connect` for tasks. The connection of a call that was cancelled is closed.
    #[staticmethod]
    #[pyo3(signature = (address, **options))]
    fn connect_async<'py>(
        py: Python<'py>,
        address: &str,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, AsyncCall>> {
        let (host, connecting) = connecting(py, address, options)?;
        async_call(py, async move {
            let connected = connecting.await.and_then(|connected| connected);
            Box::new(move |py: Python<'_>| {
                let stream = Self::of(py, connected.map_err(raised)?, Some(&host));
                Ok(Py::new(py, stream)?.into_any())
            }) as Outcome
        })
    }

    /// Reads at most `size` bytes, and waits for the first; without a size, all bytes up to the end.
    #[pyo3(signature = (size = None, /))]
    fn read<'py>(&self, py: Python<'py>, size: Option<isize>) -> PyResult<Bound<'py, PyBytes>> {
        let Some(size) = size.and_then(|size| usize::try_from(size).ok()) else { return self.readall(py) };
        let inner = self.0.get()?;
        let mut block = inner.take_block(size);
        let len = inner.read_into(py, &mut block);
        let bytes = len.map(|len| PyBytes::new(py, &block[..len]));
        inner.give_block(block);
        bytes
    }

    /// Reads all bytes up to the end. Behind an exception, a later read begins where this one did.
    fn readall<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let inner = self.0.get()?;
        let (mut all, mut block) = (Vec::new(), inner.take_block(BLOCK));
        let read = loop {
            match inner.read_into(py, &mut block) {
                Ok(0) => break Ok(PyBytes::new(py, &all)),
                Ok(len) => all.extend_from_slice(&block[..len]),
                Err(error) => break Err(error),
            }
        };
        if read.is_err() {
            inner.held.put_back(all);
        }
        inner.give_block(block);
        read
    }

    /// Reads into `buffer`, and returns the number of bytes. Zero is the end of the stream.
    #[pyo3(signature = (buffer, /))]
    fn readinto(&self, py: Python<'_>, mut buffer: Writable) -> PyResult<usize> {
        self.0.get()?.read_into(py, buffer.bytes())
    }

    /// At most `size` bytes, for tasks; none are the end. A call that was cancelled has read nothing.
    fn read_async<'py>(&self, py: Python<'py>, size: usize) -> PyResult<Bound<'py, AsyncCall>> {
        let inner = self.0.get()?;
        let (mut reading, peer) = (inner.reading()?, inner.peer.clone());
        let mut block = inner.take_block(size);
        async_call(py, async move {
            let read = std::future::poll_fn(|cx| reading.poll(cx, &mut block)).await;
            Box::new(move |py: Python<'_>| match read {
                Ok(len) => Ok(PyBytes::new(py, &block[..len]).into_any().unbind()),
                Err(error) => Err(of_io(&error, &peer)),
            }) as Outcome
        })
    }

    /// The same into `buffer`, with the number of bytes.
    fn readinto_async<'py>(&self, py: Python<'py>, mut buffer: Writable) -> PyResult<Bound<'py, AsyncCall>> {
        let inner = self.0.get()?;
        let (mut reading, peer) = (inner.reading()?, inner.peer.clone());
        async_call(py, async move {
            let read = std::future::poll_fn(|cx| reading.poll(cx, buffer.bytes())).await;
            Box::new(move |py: Python<'_>| {
                drop(buffer);
                let len = read.map_err(|error| of_io(&error, &peer))?;
                Ok(len.into_pyobject(py)?.into_any().unbind())
            }) as Outcome
        })
    }

    /// Takes all of `data`, and returns its number of bytes. They leave as the path permits.
    #[pyo3(signature = (data, /))]
    fn write(&self, py: Python<'_>, data: Readable) -> PyResult<usize> {
        let inner = self.0.get()?;
        inner.write_all(py, data.bytes(), 0)?;
        Ok(data.bytes().len())
    }

    /// `write` for tasks. A call that was cancelled has taken as many bytes as its `taken` says.
    fn write_async<'py>(&self, py: Python<'py>, data: Readable) -> PyResult<Bound<'py, AsyncCall>> {
        let inner = self.0.get()?;
        let (mut stream, peer) = (inner.waiting()?, inner.peer.clone());
        let taken = Arc::<AtomicU64>::default();
        async_write(py, Arc::clone(&taken), async move {
            let written = write_all(&mut stream, data.bytes(), &taken).await;
            Box::new(move |py: Python<'_>| {
                drop(data);
                written.map_err(|error| of_io(&error, &peer))?;
                Ok(py.None())
            }) as Outcome
        })
    }

    /// Sends bytes of a file. Returns their number.
    #[pyo3(signature = (file, offset = 0, count = None))]
    fn sendfile(&self, py: Python<'_>, file: &Bound<'_, PyAny>, offset: u64, count: Option<u64>) -> PyResult<u64> {
        files::send(self.0.get()?, py, file, (offset, count))
    }

    /// Receives bytes into a file, from its position on: `count`, or all up to the end. Returns their number.
    #[pyo3(signature = (file, count = None))]
    fn recvfile(&self, py: Python<'_>, file: &Bound<'_, PyAny>, count: Option<u64>) -> PyResult<u64> {
        files::receive(self.0.get()?, py, file, count)
    }

    /// Waits until the peer has acknowledged everything, then closes the connection.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        let inner = self.0.get()?;
        if inner.held.is_finished() {
            return Ok(());
        }
        let stream = Detached::new(inner.waiting()?);
        let finished = wait(py, inner.timeout(), stream.finish())?;
        finished.map_err(|error| of_connection(&error, &inner.peer))?;
        inner.set_closed();
        detach(py, || inner.held.let_go(true));
        Ok(())
    }

    /// The same for tasks. A call that was cancelled can be made again.
    fn finish_async<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, AsyncCall>> {
        let inner = self.0.get()?;
        let stream = if inner.held.is_finished() { None } else { Some(inner.waiting()?) };
        let (held, is_closed, peer) = (Arc::clone(&inner.held), Arc::clone(&inner.is_closed), inner.peer.clone());
        async_call(py, async move {
            is_closed.store(true, Ordering::Release);
            let finished = match stream {
                Some(stream) => stream.finish().await.inspect(|()| held.let_go(true)),
                None => Ok(()),
            };
            Box::new(move |py: Python<'_>| {
                finished.map_err(|error| of_connection(&error, &peer))?;
                Ok(py.None())
            }) as Outcome
        })
    }

    /// Ends this side's direction, and returns at once. The peer reads everything, and then the end.
    fn finish_sending(&self, py: Python<'_>) -> PyResult<()> {
        let inner = self.0.get()?;
        let connection = Detached::new(inner.connection()?);
        let ended = detach(py, || connection.finish_sending());
        ended.map_err(|error| of_connection(&error, &inner.peer))
    }

    /// Ends the connection at once. The peer does not take what it got for the whole stream.
    fn abort(&self, py: Python<'_>) -> PyResult<()> {
        let inner = self.0.get()?;
        inner.set_closed();
        detach(py, || inner.held.abort());
        Ok(())
    }

    /// Finishes the connection, unless it has ended.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        if self.closed()? { Ok(()) } else { self.finish(py) }
    }

    /// Does nothing: what was written leaves without it.
    fn flush(&self) -> PyResult<()> {
        self.0.get().map(drop)
    }

    fn readable(&self) -> bool {
        true
    }

    fn writable(&self) -> bool {
        true
    }

    fn seekable(&self) -> bool {
        false
    }

    /// There are no places in a stream: as for every raw file, this raises `io.UnsupportedOperation`.
    #[pyo3(signature = (_offset, _whence=0, /))]
    fn seek(&self, py: Python<'_>, _offset: i64, _whence: i32) -> PyResult<u64> {
        Err(unsupported(py))
    }

    /// As `seek`.
    fn tell(&self, py: Python<'_>) -> PyResult<u64> {
        Err(unsupported(py))
    }

    /// As `seek`.
    #[pyo3(signature = (_size=None, /))]
    fn truncate(&self, py: Python<'_>, _size: Option<i64>) -> PyResult<u64> {
        Err(unsupported(py))
    }

    /// Whether this side has ended the connection.
    #[getter]
    fn closed(&self) -> PyResult<bool> {
        Ok(self.0.get()?.is_closed.load(Ordering::Acquire))
    }

    /// The address of the peer, `host:port`.
    #[getter]
    fn peer(&self, py: Python<'_>) -> PyResult<String> {
        let inner = self.0.get()?;
        let now = inner.held.connection().ok().map(Detached::new);
        let now = now.map(|connection| detach(py, || connection.peer_addr()).to_string());
        Ok(now.unwrap_or_else(|| inner.peer.clone()))
    }

    /// The address of this side, `host:port`.
    #[getter]
    fn local(&self) -> PyResult<String> {
        Ok(self.0.get()?.local.clone())
    }

    /// The fingerprint of the peer's key; `None` if the connection is plain.
    #[getter]
    fn peer_key(&self, py: Python<'_>) -> PyResult<Option<String>> {
        let inner = self.0.get()?;
        let key = detach(py, || inner.held.peer_key());
        Ok(key.map_err(|error| of_connection(&error, &inner.peer))?.map(|key| key.fingerprint()))
    }

    /// Longest wait of a call, in seconds; `None` for ever.
    #[getter]
    fn timeout(&self) -> PyResult<Option<f64>> {
        Ok(self.0.get()?.timeout().map(|time| time.as_secs_f64()))
    }

    #[setter]
    fn set_timeout(&self, seconds: Option<f64>) -> PyResult<()> {
        let inner = self.0.get()?;
        let limit = limit(seconds)?;
        *inner.timeout.lock().unwrap_or_else(PoisonError::into_inner) = limit;
        Ok(())
    }

    /// Caps the sending rate from now on; `None` takes the cap away.
    fn set_rate(&self, py: Python<'_>, rate: Option<crate::settings::RateArgument>) -> PyResult<()> {
        let inner = self.0.get()?;
        let set = detach(py, || inner.held.while_open(|connection| connection.set_max_rate(rate.map(|rate| rate.0))));
        set.map_err(|error| of_connection(&error, &inner.peer))
    }

    /// Replaces the congestion controller of this side, while the stream goes on: a name, or what makes controllers.
    fn set_controller(&self, py: Python<'_>, controller: &Bound<'_, PyAny>) -> PyResult<()> {
        let inner = self.0.get()?;
        let (spec, seed) = (crate::controller::controller(controller)?, RandomState::new().hash_one(0));
        // It is made before the port is locked.
        let set = detach(py, || inner.held.while_open(|connection| connection.set_controller_with(spec.build(seed))));
        set.map_err(|error| of_connection(&error, &inner.peer))
    }

    /// Counters and estimates.
    fn stats(&self, py: Python<'_>) -> PyResult<Stats> {
        let inner = self.0.get()?;
        let stats = detach(py, || inner.held.stats());
        stats.map(|stats| Stats::of(&stats)).map_err(|error| of_connection(&error, &inner.peer))
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    /// Finishes the connection. Behind an exception it aborts it, so that the peer does not take what it got for all.
    fn __exit__(
        &self,
        py: Python<'_>,
        kind: Option<&Bound<'_, PyAny>>,
        _error: Option<&Bound<'_, PyAny>>,
        _trace: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        if kind.is_some() { self.abort(py) } else { self.close(py) }
    }

    fn __repr__(&self) -> String {
        match self.0.here() {
            Some(inner) => inner.shown(),
            None => "<farhaul.Stream of the parent process>".to_owned(),
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if let Some(inner) = self.0.here().filter(|inner| inner.held.is_open()) {
            warn_unclosed(&inner.shown());
        }
    }
}

/// The exception of the standard library for what a raw file cannot do.
fn unsupported(py: Python<'_>) -> PyErr {
    let raised = py.import("io").and_then(|io| io.getattr("UnsupportedOperation")?.call1(("a stream has no places",)));
    raised.map_or_else(|error| error, PyErr::from_value)
}

impl Inner {
    /// Its kind and its peer, and whether it was closed.
    fn shown(&self) -> String {
        let (host, peer) = (self.host.as_deref(), &self.peer);
        let peer = host.map_or_else(|| peer.clone(), |host| format!("{host} ({peer})"));
        let closed = if self.held.is_open() { "" } else { ", closed" };
        format!("<farhaul.Stream to {peer}{closed}>")
    }

    /// The connection, unless this side has ended it.
    fn connection(&self) -> PyResult<Connection> {
        self.held.connection().map_err(|error| of_connection(&error, &self.peer))
    }

    /// The same for calls that wait.
    fn waiting(&self) -> PyResult<AsyncStream> {
        self.connection().map(Into::into)
    }

    fn reading(&self) -> PyResult<Reading> {
        Reading::of(&self.held).map_err(|error| of_connection(&error, &self.peer))
    }

    fn timeout(&self) -> Option<Duration> {
        *self.timeout.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_closed(&self) {
        self.is_closed.store(true, Ordering::Release);
    }

    /// Memory for a read of `size` bytes, as far as one call moves them.
    fn take_block(&self, size: usize) -> Vec<u8> {
        let mut block = std::mem::take(&mut *self.block.lock().unwrap_or_else(PoisonError::into_inner));
        block.resize(size.min(BLOCK), 0);
        block
    }

    fn give_block(&self, block: Vec<u8>) {
        *self.block.lock().unwrap_or_else(PoisonError::into_inner) = block;
    }

    fn read_into(&self, py: Python<'_>, out: &mut [u8]) -> PyResult<usize> {
        let mut reading = Detached::new(self.reading()?);
        let read = wait(py, self.timeout(), std::future::poll_fn(|cx| reading.poll(cx, out)))?;
        read.map_err(|error| of_io(&error, &self.peer))
    }

    /// Writes all of `data`. An exception has the number of bytes that were taken, together with `earlier` ones.
    fn write_all(&self, py: Python<'_>, data: &[u8], earlier: u64) -> PyResult<()> {
        let (mut stream, taken) = (Detached::new(self.waiting()?), AtomicU64::new(earlier));
        let written = data.chunks(BETWEEN_LOOKS).try_for_each(|part| {
            py.check_signals()?;
            let written = wait(py, self.timeout(), write_all(&mut stream, part, &taken))?;
            written.map_err(|error| of_io(&error, &self.peer))
        });
        written.inspect_err(|error| {
            // Without it, the exception says less.
            let _ = error.value(py).setattr("taken", taken.into_inner());
        })
    }
}

/// Writes all of `data`, and counts the bytes that were taken.
async fn write_all(stream: &mut AsyncStream, mut data: &[u8], taken: &AtomicU64) -> io::Result<()> {
    while !data.is_empty() {
        let len = std::future::poll_fn(|cx| Pin::new(&mut *stream).poll_write(cx, data)).await?;
        taken.fetch_add(len as u64, Ordering::Release);
        data = &data[len..];
    }
    Ok(())
}
