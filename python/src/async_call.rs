//! Calls of tasks: futures of Rust as coroutines of Python.
//!
//! A call that is awaited is polled by its task, in the step in which it takes the result. A cancellation comes between two steps, so a
//! call that was cancelled has taken nothing that its task did not get. Connects, and what a writer of a file sends, begin with the call.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::task::{Context, Poll};

use pyo3::exceptions::{PyBaseException, PyRuntimeError, PyStopIteration, PyValueError};
use pyo3::prelude::*;

use crate::event_loop::LoopPlace;
use crate::fork::OfProcess;
use crate::gate::{detach, hold};
use crate::log;
use crate::unclosed::warn_never_awaited;

/// The result of a future, before it is an object of Python.
pub(crate) type Outcome = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send>;

/// A call that waits. Tasks await it as they await a coroutine.
#[pyclass(module = "farhaul._farhaul", frozen, weakref)]
pub(crate) struct AsyncCall {
    /// `None` once it has ended or was given up.
    call: OfProcess<Mutex<Option<Call>>>,
    taken: Arc<AtomicU64>,
}

struct Call {
    future: Pin<Box<dyn Future<Output = Outcome> + Send>>,
    place: LoopPlace,
    is_awaited: bool,
}

/// A call of a task of the running event loop. To cancel it drops `future`.
///
/// # Errors
/// No event loop runs.
pub(crate) fn async_call<'py, F>(py: Python<'py>, future: F) -> PyResult<Bound<'py, AsyncCall>>
where
    F: Future<Output = Outcome> + Send + 'static,
{
    async_write(py, Arc::default(), future)
}

/// The same for a write, which counts the bytes that it has taken.
///
/// # Errors
/// No event loop runs.
pub(crate) fn async_write<'py, F>(py: Python<'py>, taken: Arc<AtomicU64>, future: F) -> PyResult<Bound<'py, AsyncCall>>
where
    F: Future<Output = Outcome> + Send + 'static,
{
    let call = Call { future: Box::pin(future), place: LoopPlace::here(py)?, is_awaited: false };
    Bound::new(py, AsyncCall { call: OfProcess::new(Mutex::new(Some(call))), taken })
}

#[pymethods]
impl AsyncCall {
    fn __await__(this: Py<Self>) -> Py<Self> {
        this
    }

    /// Polls once. Returns what the task gives its loop in order to wait, or raises `StopIteration` with the result.
    fn __next__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let mut place = self.lock()?;
        let Some(call) = &mut *place else {
            return Err(PyRuntimeError::new_err("this call has ended: make another one"));
        };
        if call.place.is_waiting() {
            return Err(PyRuntimeError::new_err("another task awaits this call"));
        }
        call.is_awaited = true;
        let (future, waker) = (&mut call.future, call.place.waker());
        let polled = detach(py, || future.as_mut().poll(&mut Context::from_waker(waker)));
        let _passing = hold(py);
        let Poll::Ready(outcome) = polled else { return call.place.wait(py) };
        end(py, place.take());
        log::pass_on_beside_result(py);
        Err(PyStopIteration::new_err((outcome(py)?,)))
    }

    /// The same: nobody tells a call anything.
    fn send(&self, py: Python<'_>, _value: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.__next__(py)
    }

    /// Gives the call up, and raises the exception.
    #[pyo3(signature = (kind, value = None, _trace = None, /))]
    fn throw(
        &self,
        py: Python<'_>,
        kind: Bound<'_, PyAny>,
        value: Option<Bound<'_, PyAny>>,
        _trace: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        self.close(py)?;
        let error = match value {
            Some(error) if error.is_instance_of::<PyBaseException>() => error,
            Some(argument) => kind.call1((argument,))?,
            None => kind,
        };
        Err(PyErr::from_value(error))
    }

    /// Gives the call up.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        end(py, self.lock()?.take());
        Ok(())
    }

    /// Bytes that a write has taken so far.
    #[getter]
    fn taken(&self) -> u64 {
        self.taken.load(Ordering::Acquire)
    }
}

/// Drops a call. The drop of its future may lock what other threads hold for a while.
fn end(py: Python<'_>, call: Option<Call>) {
    if let Some(Call { future, .. }) = call {
        detach(py, || drop(future));
    }
}

impl AsyncCall {
    fn lock(&self) -> PyResult<MutexGuard<'_, Option<Call>>> {
        match self.call.get()?.try_lock() {
            Ok(place) => Ok(place),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => Err(PyValueError::new_err("another thread awaits this call")),
        }
    }
}

impl Drop for AsyncCall {
    /// Reports a call that nobody awaited, as Python does for its coroutines: a write, for instance, has not happened.
    fn drop(&mut self) {
        warn_never_awaited(|| self.lock().is_ok_and(|call| call.as_ref().is_some_and(|call| !call.is_awaited)));
    }
}
