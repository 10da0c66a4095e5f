//! The interpreter's lock in callbacks.

use std::cell::Cell;

use pyo3::exceptions::PyException;
use pyo3::prelude::*;

use crate::attach::attach;

thread_local! {
    static IN_CALLBACK: Cell<bool> = const { Cell::new(false) };
}

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
    attach(|py| {
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
