//! The interpreter's lock on threads that the interpreter does not know.
//!
//! The interpreter keeps a state for each thread that calls it. A thread of Farhaul makes one for each call, before it waits for the
//! interpreter's lock, and holds a lock of the list of states meanwhile. A child that is forked at this moment finds that lock
//! taken for ever: it hangs in its first steps (seen with Python 3.11). So no thread makes a state while another one forks.

use std::cell::Cell;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::ffi;
use pyo3::prelude::*;

use crate::gate::{hold, try_pass};

/// Held by the thread that makes its state, until it has the interpreter's lock, and by the thread that forks. A thread that the
/// interpreter knows does not wait for it with the interpreter's lock in hand.
static MAKING: Mutex<()> = Mutex::new(());

thread_local! {
    /// What this thread holds while it forks. Its copy in the child lets the copied lock go.
    static FORKING: Cell<Option<MutexGuard<'static, ()>>> = const { Cell::new(None) };
}

fn lock() -> MutexGuard<'static, ()> {
    MAKING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether the interpreter has a state for this thread.
fn is_known() -> bool {
    #[expect(unsafe_code, reason = "the border to Python")]
    // SAFETY: any thread may ask, at any time. The pointer is compared, and not followed.
    let state = unsafe { ffi::PyGILState_GetThisThreadState() };
    !state.is_null()
}

/// Passes the gate, and runs `work` with the interpreter's lock. `None` if the interpreter ends or has ended.
pub(crate) fn attach<R>(work: impl FnOnce(Python<'_>) -> R) -> Option<R> {
    let _passing = try_pass()?;
    let making = (!is_known()).then(lock);
    Python::try_attach(|py| {
        drop(making);
        work(py)
    })
}

/// Waits for threads that make their states, and keeps others from it until the fork is over.
#[pyfunction(name = "_before_fork")]
pub(crate) fn before_fork(py: Python<'_>) {
    let _passing = hold(py);
    // They wait for the interpreter's lock.
    py.detach(|| FORKING.set(Some(lock())));
}

/// Lets threads make their states again, in the parent and in the child.
#[pyfunction(name = "_after_fork")]
pub(crate) fn after_fork() {
    FORKING.take();
}
