//! Futures of Rust on an event loop of Python, without a runtime.
//!
//! ```text
//! a thread of Farhaul ── Waker ──▶ Notifier: a list and one byte ──▶ the loop's reader ── poll ──▶ asyncio.Future
//! ```
//!
//! The loop itself polls. A waker takes no lock of the interpreter: it runs on the threads that move packets, which must not wait
//! for Python. So it leaves a number in a list, and writes a byte to a socket that the loop watches.

use std::collections::HashMap;
use std::future::Future;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyCFunction;

use crate::fork::OfProcess;

/// The result of a future, before it is an object of Python.
pub(crate) type Outcome = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send>;

type Driven = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// The futures that were woken, and the byte that tells the loop.
struct Notifier {
    woken: Mutex<Vec<u64>>,
    /// A byte is on its way, so that a second one is not needed.
    is_notified: AtomicBool,
    sender: UnixStream,
}

/// A waker of one future.
struct FutureWaker {
    notifier: Arc<Notifier>,
    number: u64,
}

/// A future that is not ready yet.
struct Pending {
    future: Driven,
    waker: Waker,
    /// The `asyncio.Future` that gets the result.
    promise: Py<PyAny>,
}

/// The futures of one event loop.
#[pyclass(module = "farhaul._farhaul", frozen, weakref)]
pub(crate) struct LoopDriver(OfProcess<Futures>);

struct Futures {
    notifier: Arc<Notifier>,
    receiver: UnixStream,
    pending: Mutex<(u64, HashMap<u64, Pending>)>,
}

impl Wake for FutureWaker {
    fn wake(self: Arc<Self>) {
        self.notifier.woken().push(self.number);
        if !self.notifier.is_notified.swap(true, Ordering::AcqRel) {
            // A full socket wakes the loop as well. Without a loop there is nobody to wake.
            let _ = (&self.notifier.sender).write(&[0]);
        }
    }
}

impl Notifier {
    /// The list, even after a panic: it is always consistent.
    fn woken(&self) -> MutexGuard<'_, Vec<u64>> {
        self.woken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Futures {
    fn open() -> std::io::Result<Self> {
        let (sender, receiver) = UnixStream::pair()?;
        sender.set_nonblocking(true)?;
        receiver.set_nonblocking(true)?;
        let notifier = Notifier { woken: Mutex::default(), is_notified: AtomicBool::new(false), sender };
        Ok(Self { notifier: Arc::new(notifier), receiver, pending: Mutex::default() })
    }

    fn pending(&self) -> MutexGuard<'_, (u64, HashMap<u64, Pending>)> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Polls a future for the first time. Keeps it if it is not ready.
    fn begin(&self, py: Python<'_>, future: Driven, promise: &Bound<'_, PyAny>) -> PyResult<Option<u64>> {
        let number = {
            let mut pending = self.pending();
            pending.0 += 1;
            pending.0
        };
        let waker = Waker::from(Arc::new(FutureWaker { notifier: Arc::clone(&self.notifier), number }));
        let waiting = Pending { future, waker, promise: promise.clone().unbind() };
        Ok(self.poll(py, number, waiting)?.then_some(number))
    }

    /// Polls a future. Returns whether it waits on.
    fn poll(&self, py: Python<'_>, number: u64, mut waiting: Pending) -> PyResult<bool> {
        let ready = py.detach(|| waiting.future.as_mut().poll(&mut Context::from_waker(&waiting.waker)));
        match ready {
            Poll::Pending => {
                self.pending().1.insert(number, waiting);
                Ok(true)
            }
            Poll::Ready(outcome) => {
                let Pending { future, promise, .. } = waiting;
                // Its drop may lock what other threads hold for a while.
                py.detach(|| drop(future));
                settle(promise.bind(py), outcome(py))?;
                Ok(false)
            }
        }
    }

    /// Takes what was woken since.
    fn take_woken(&self) -> Vec<u64> {
        let mut bytes = [0; 64];
        while matches!((&self.receiver).read(&mut bytes), Ok(len) if len == bytes.len()) {}
        // Before the list is taken: a waker that comes between both writes another byte.
        self.notifier.is_notified.store(false, Ordering::Release);
        std::mem::take(&mut *self.notifier.woken())
    }
}

#[pymethods]
impl LoopDriver {
    /// Polls the futures that were woken. The loop calls it when the socket has bytes.
    fn poll_woken(&self, py: Python<'_>) -> PyResult<()> {
        let futures = self.0.get()?;
        for number in futures.take_woken() {
            // A future may have been woken twice, or given up meanwhile.
            let waiting = futures.pending().1.remove(&number);
            if let Some(waiting) = waiting {
                futures.poll(py, number, waiting)?;
            }
        }
        Ok(())
    }
}

/// Runs `future` on the running event loop of Python, and returns an `asyncio.Future` of its result. To cancel that drops `future`.
///
/// # Errors
/// No event loop runs.
pub(crate) fn on_loop<'py, F>(py: Python<'py>, future: F) -> PyResult<Bound<'py, PyAny>>
where
    F: Future<Output = Outcome> + Send + 'static,
{
    static RUNNING: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let event_loop = RUNNING.import(py, "asyncio", "get_running_loop")?.call0()?;
    let driver = driver_of(py, &event_loop)?;
    let promise = event_loop.call_method0(intern!(py, "create_future"))?;
    let futures = driver.get().0.get()?;
    if let Some(number) = futures.begin(py, Box::pin(future), &promise)? {
        let driver = driver.unbind();
        let abandon = PyCFunction::new_closure(py, None, None, move |arguments, _| {
            let py = arguments.py();
            let given_up = driver.get().0.get().ok().and_then(|futures| futures.pending().1.remove(&number));
            // Its drop may lock what other threads hold for a while.
            if let Some(Pending { future, .. }) = given_up {
                py.detach(|| drop(future));
            }
        })?;
        promise.call_method1(intern!(py, "add_done_callback"), (abandon,))?;
    }
    Ok(promise)
}

/// The driver of an event loop, which is made for its first future.
fn driver_of<'py>(py: Python<'py>, event_loop: &Bound<'py, PyAny>) -> PyResult<Bound<'py, LoopDriver>> {
    static ALL: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let all =
        ALL.get_or_try_init(py, || py.import("weakref")?.getattr("WeakKeyDictionary")?.call0().map(Bound::unbind))?;
    let all = all.bind(py);
    let found = all.call_method1(intern!(py, "get"), (event_loop,))?;
    if let Ok(driver) = found.cast_into::<LoopDriver>() {
        // One of the parent process is of no use.
        if driver.get().0.get().is_ok() {
            return Ok(driver);
        }
    }
    let futures = Futures::open()?;
    let receiver = futures.receiver.as_raw_fd();
    let driver = Bound::new(py, LoopDriver(OfProcess::new(futures)))?;
    let poll_woken = driver.getattr(intern!(py, "poll_woken"))?;
    event_loop.call_method1(intern!(py, "add_reader"), (receiver, poll_woken))?;
    all.set_item(event_loop, &driver)?;
    Ok(driver)
}

/// Gives a promise its result, unless somebody cancelled it.
fn settle(promise: &Bound<'_, PyAny>, result: PyResult<Py<PyAny>>) -> PyResult<()> {
    let py = promise.py();
    if promise.call_method0(intern!(py, "done"))?.is_truthy()? {
        return Ok(());
    }
    match result {
        Ok(value) => promise.call_method1(intern!(py, "set_result"), (value,)),
        Err(error) => promise.call_method1(intern!(py, "set_exception"), (error.into_value(py),)),
    }
    .map(drop)
}
