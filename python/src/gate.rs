//! The gate by which threads return to the interpreter, and which its end closes.
//!
//! An interpreter that has ended (up to Python 3.13) ends a thread that waits for its lock, by an unwinding that functions of Rust
//! answer with an abort of the process. So whoever takes the lock, or calls Python on behalf of a function of Rust, passes this gate.
//! `atexit` closes it, and waits for those who are passing. Whoever comes later sleeps until the process ends: only threads that the
//! program does not wait for come later, such as daemon threads.
//!
//! ```text
//! a thread of Python ── detach ──▶ waits, polls, drops ──▶ gate ──▶ goes on in Python
//! a thread of Farhaul ────────── callback of a controller ──▶ gate ──▶ Python ──▶ goes on without Python
//! ```

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, ThreadId};

use farhaul::units::{Duration, Instant};
use farhaul_udp::Clock;
use pyo3::prelude::*;

/// Whether the gate is closed, in the lowest bit, and the number of those who are passing, in the others.
static STATE: AtomicUsize = AtomicUsize::new(0);
const CLOSED: usize = 1;
const ONE_MORE: usize = 2;
/// This process was forked. What its parent closes at that moment nobody closes here.
static IS_FORKED: AtomicBool = AtomicBool::new(false);
/// The thread that ends the interpreter, which it never ends itself.
static CLOSER: OnceLock<ThreadId> = OnceLock::new();
/// Longest wait for those who are passing. A callback that never returns must not keep the process from ending.
const LONGEST: Duration = Duration::from_secs(5);
/// Time between two looks at them.
const LOOK: Duration = Duration::from_millis(1);

thread_local! {
    /// How often this thread is passing: what it calls meanwhile may pass as well.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// Somebody who is passing, on the thread where it is dropped.
pub(crate) struct Passing(());

impl Passing {
    fn begin() -> Self {
        DEPTH.set(DEPTH.get() + 1);
        Self(())
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
        STATE.fetch_sub(ONE_MORE, Ordering::AcqRel);
    }
}

/// Passes the gate, for a thread that goes on without Python if it is closed.
pub(crate) fn try_pass() -> Option<Passing> {
    let before = STATE.fetch_add(ONE_MORE, Ordering::AcqRel);
    let passes = before & CLOSED == 0 || DEPTH.get() > 0 || CLOSER.get() == Some(&thread::current().id());
    if passes {
        return Some(Passing::begin());
    }
    STATE.fetch_sub(ONE_MORE, Ordering::AcqRel);
    None
}

/// Passes the gate, for a thread without the interpreter's lock that needs it to go on.
fn pass() -> Passing {
    try_pass().unwrap_or_else(|| {
        loop {
            thread::park();
        }
    })
}

/// Passes the gate with the interpreter's lock, for calls of Python during which it may be lost to another thread.
pub(crate) fn hold(py: Python<'_>) -> Passing {
    // The thread would come back from this wait never.
    try_pass().unwrap_or_else(|| {
        py.detach(|| {
            loop {
                thread::park()
            }
        })
    })
}

/// Runs `work` without the interpreter's lock.
pub(crate) fn detach<T, F>(py: Python<'_>, work: F) -> T
where
    F: Send + FnOnce() -> T,
    T: Send,
{
    // It ends behind the lock.
    let (result, _passing) = py.detach(|| {
        let result = work();
        (result, pass())
    });
    result
}

/// Closes the gate, and waits for those who are passing, for closed connections whose peers do not know it yet, and for closed ports.
/// The interpreter calls it before it ends.
#[pyfunction(name = "_end")]
pub(crate) fn end(py: Python<'_>) {
    STATE.fetch_or(CLOSED, Ordering::AcqRel);
    CLOSER.get_or_init(|| thread::current().id());
    detach(py, || {
        let clock = Clock::start();
        while STATE.load(Ordering::Acquire) >= ONE_MORE && clock.now() < Instant::ZERO + LONGEST {
            thread::park_timeout(LOOK);
        }
        if !IS_FORKED.load(Ordering::Acquire) {
            farhaul::wait_idle();
        }
    });
}

/// Whether the gate is closed: then other threads than the one that ends the interpreter do not come back to Python.
#[pyfunction(name = "_has_ended")]
pub(crate) fn has_ended() -> bool {
    STATE.load(Ordering::Acquire) & CLOSED != 0
}

/// Forgets those who are passing, which a fork does not copy.
#[pyfunction(name = "_begin_child")]
pub(crate) fn begin_child() {
    STATE.store(DEPTH.get() * ONE_MORE, Ordering::Release);
    IS_FORKED.store(true, Ordering::Release);
}

/// Waits for closed connections and ports, as `farhaul::wait_idle` does.
#[pyfunction(name = "_wait_idle")]
pub(crate) fn wait_idle(py: Python<'_>) {
    detach(py, farhaul::wait_idle);
}
