//! The interpreter's lock in callbacks.

use std::cell::Cell;
use std::process;
use std::sync::{OnceLock, PoisonError, RwLock};

use pyo3::exceptions::PyException;
use pyo3::prelude::*;

thread_local! {
    static IN_CALLBACK: Cell<bool> = const { Cell::new(false) };
}

/// Whether callbacks may run. Whoever makes one holds it for reading.
static PERMITTED: RwLock<bool> = RwLock::new(true);

/// The process of the first callback. In a child that it forks, nobody gives back what its threads held.
static PROCESS: OnceLock<u32> = OnceLock::new();

/// Whether this thread is in a callback, and so holds the lock of a port.
pub(crate) fn is_in_callback() -> bool {
    IN_CALLBACK.get()
}

/// Resets the mark of a callback, however it ends.
struct Mark;

impl Drop for Mark {
    fn drop(&mut self) {
        IN_CALLBACK.set(false);
    }
}

/// Makes a callback. `None` if the interpreter ends, and so makes no calls any more.
pub(super) fn call<R>(callback: impl FnOnce(Python<'_>) -> R) -> Option<R> {
    PROCESS.get_or_init(process::id);
    let permitted = PERMITTED.read().unwrap_or_else(PoisonError::into_inner);
    if !*permitted {
        return None;
    }
    Python::try_attach(|py| {
        IN_CALLBACK.set(true);
        let _mark = Mark;
        callback(py)
    })
}

/// Passes Ctrl-C on to the main thread, if `error` is of that kind: a callback is not where a program ends. Returns whether it was.
pub(super) fn pass_on(py: Python<'_>, error: &PyErr) -> bool {
    if error.is_instance_of::<PyException>(py) {
        return false;
    }
    // Without it, the signal is lost, and nothing else.
    let _ = py.import("_thread").and_then(|thread| thread.call_method0("interrupt_main"));
    true
}

/// Waits for callbacks that run, and makes none from now on. The interpreter calls it before it ends, because threads that wait for
/// its lock then never return.
#[pyfunction(name = "_forbid_callbacks")]
pub(crate) fn forbid_callbacks(py: Python<'_>) {
    if PROCESS.get().is_none_or(|id| *id != process::id()) {
        return;
    }
    py.detach(|| *PERMITTED.write().unwrap_or_else(PoisonError::into_inner) = false);
}
