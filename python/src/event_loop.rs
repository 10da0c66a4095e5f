//! Wakes tasks of Python's event loops, without a runtime.
//!
//! ```text
//! a thread of Farhaul ── Waker ──▶ Notifier: a list and one byte ──▶ the loop's reader ──▶ asyncio.Future ──▶ the task polls
//! ```
//!
//! A task is only told that it may go on. It polls by itself ([`AsyncCall`]), so no result is under way between a thread and a task that
//! is cancelled meanwhile. A waker takes no lock of the interpreter: it runs on the threads that move packets, which must not wait
//! for Python. So it leaves a number in a list, and writes a byte to a socket that the loop watches.
//!
//! [`AsyncCall`]: crate::async_call::AsyncCall

use std::collections::HashMap;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyWeakrefReference;

use crate::fork::OfProcess;
use crate::gate::hold;

/// The calls that were woken, and the byte that tells the loop.
struct Notifier {
    woken: Mutex<Vec<u64>>,
    /// A byte is on its way, so that a second one is not needed.
    is_notified: AtomicBool,
    sender: UnixStream,
    waiting: Mutex<Waiting>,
}

/// For each call that waits, the `asyncio.Future` at which its task does.
#[derive(Default)]
struct Waiting {
    last: u64,
    promises: HashMap<u64, Py<PyAny>>,
}

/// A waker of one call.
struct CallWaker {
    notifier: Arc<Notifier>,
    number: u64,
}

/// The wakers of one event loop.
#[pyclass(module = "farhaul._farhaul", frozen, weakref)]
pub(crate) struct LoopDriver(OfProcess<Ends>);

struct Ends {
    notifier: Arc<Notifier>,
    receiver: UnixStream,
}

/// The place of one call on its event loop.
pub(crate) struct LoopPlace {
    event_loop: Py<PyAny>,
    notifier: Arc<Notifier>,
    number: u64,
    waker: Waker,
}

impl Wake for CallWaker {
    fn wake(self: Arc<Self>) {
        lock(&self.notifier.woken).push(self.number);
        if !self.notifier.is_notified.swap(true, Ordering::AcqRel) {
            // A full socket wakes the loop as well. Without a loop there is nobody to wake.
            let _ = (&self.notifier.sender).write(&[0]);
        }
    }
}

impl Ends {
    fn open() -> std::io::Result<Self> {
        let (sender, receiver) = UnixStream::pair()?;
        sender.set_nonblocking(true)?;
        receiver.set_nonblocking(true)?;
        let is_notified = AtomicBool::new(false);
        let notifier = Notifier { woken: Mutex::default(), is_notified, sender, waiting: Mutex::default() };
        Ok(Self { notifier: Arc::new(notifier), receiver })
    }

    /// Takes what was woken since.
    fn take_woken(&self) -> Vec<u64> {
        let mut bytes = [0; 64];
        while matches!((&self.receiver).read(&mut bytes), Ok(len) if len == bytes.len()) {}
        // Before the list is taken: a waker that comes between both writes another byte.
        self.notifier.is_notified.store(false, Ordering::Release);
        std::mem::take(&mut *lock(&self.notifier.woken))
    }
}

impl Drop for Ends {
    /// Lets the tasks go that wait for ever, because their loop was closed: they hold their calls, which hold the notifier.
    fn drop(&mut self) {
        let promises = std::mem::take(&mut lock(&self.notifier.waiting).promises);
        // Behind the lock, which the calls take when they are dropped.
        drop(promises);
    }
}

#[pymethods]
impl LoopDriver {
    /// Tells the tasks of the calls that were woken. The loop calls it when the socket has bytes.
    fn tell_woken(&self, py: Python<'_>) -> PyResult<()> {
        let (ends, _passing) = (self.0.get()?, hold(py));
        for number in ends.take_woken() {
            // A call may have been woken twice, or given up meanwhile.
            let promise = lock(&ends.notifier.waiting).promises.remove(&number);
            if let Some(promise) = promise
                && !promise.call_method0(py, intern!(py, "done"))?.is_truthy(py)?
            {
                promise.call_method1(py, intern!(py, "set_result"), (py.None(),))?;
            }
        }
        Ok(())
    }
}

impl LoopPlace {
    /// A place on the running event loop.
    ///
    /// # Errors
    /// No event loop runs.
    pub(crate) fn here(py: Python<'_>) -> PyResult<Self> {
        static RUNNING: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let _passing = hold(py);
        let event_loop = RUNNING.import(py, "asyncio", "get_running_loop")?.call0()?;
        let notifier = Arc::clone(&driver_of(py, &event_loop)?.get().0.get()?.notifier);
        let number = {
            let mut waiting = lock(&notifier.waiting);
            waiting.last += 1;
            waiting.last
        };
        let waker = Waker::from(Arc::new(CallWaker { notifier: Arc::clone(&notifier), number }));
        Ok(Self { event_loop: event_loop.unbind(), notifier, number, waker })
    }

    /// Wakes the call.
    pub(crate) const fn waker(&self) -> &Waker {
        &self.waker
    }

    /// Whether a task waits here.
    pub(crate) fn is_waiting(&self) -> bool {
        lock(&self.notifier.waiting).promises.contains_key(&self.number)
    }

    /// What the task gives its loop in order to wait for the waker. Call it on the loop's thread, which no waker overtakes.
    pub(crate) fn wait(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let promise = self.event_loop.call_method0(py, intern!(py, "create_future"))?;
        let waits = promise.call_method0(py, intern!(py, "__await__"))?.call_method0(py, intern!(py, "__next__"))?;
        let replaced = lock(&self.notifier.waiting).promises.insert(self.number, promise);
        drop(replaced);
        Ok(waits)
    }
}

impl Drop for LoopPlace {
    fn drop(&mut self) {
        let given_up = lock(&self.notifier.waiting).promises.remove(&self.number);
        drop(given_up);
    }
}

/// The driver of an event loop, which is made for its first call.
fn driver_of<'py>(py: Python<'py>, event_loop: &Bound<'py, PyAny>) -> PyResult<Bound<'py, LoopDriver>> {
    static ALL: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let all =
        ALL.get_or_try_init(py, || py.import("weakref")?.getattr("WeakKeyDictionary")?.call0().map(Bound::unbind))?;
    let all = all.bind(py);
    let found = all.call_method1(intern!(py, "get"), (event_loop,))?;
    let found = found.cast_into::<PyWeakrefReference>().ok().and_then(|found| found.upgrade());
    if let Some(driver) = found.and_then(|found| found.cast_into::<LoopDriver>().ok()) {
        // One of the parent process is of no use.
        if driver.get().0.get().is_ok() {
            return Ok(driver);
        }
    }
    let ends = Ends::open()?;
    let receiver = ends.receiver.as_raw_fd();
    let driver = Bound::new(py, LoopDriver(OfProcess::new(ends)))?;
    let tell_woken = driver.getattr(intern!(py, "tell_woken"))?;
    event_loop.call_method1(intern!(py, "add_reader"), (receiver, tell_woken))?;
    // The loop's reader holds it, until the loop is closed.
    all.set_item(event_loop, PyWeakrefReference::new(&driver)?)?;
    Ok(driver)
}

/// The content, even after a panic: each is consistent at any time.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
