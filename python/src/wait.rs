//! Waiting without the interpreter's lock, with a look for signals.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use farhaul::units::{Duration, Instant};
use farhaul_udp::Clock;
use pyo3::prelude::*;

use crate::error::timed_out;
use crate::gate::detach;
use crate::log;

/// Longest time between two looks for signals. Ctrl-C must end every wait within 500 ms.
const SLICE: Duration = Duration::from_millis(50);

/// A thread that waits for a future.
struct Waiting {
    thread: Thread,
    is_woken: AtomicBool,
}

impl Wake for Waiting {
    fn wake(self: Arc<Self>) {
        self.is_woken.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

/// Waits for `future`, for at most `limit`. The interpreter's lock is free meanwhile. An abandoned future is dropped.
///
/// # Errors
/// A signal handler raised, for instance `KeyboardInterrupt`. The time is over.
pub(crate) fn wait<F>(py: Python<'_>, limit: Option<Duration>, future: F) -> PyResult<F::Output>
where
    F: Future + Send,
    F::Output: Send,
{
    let waited = wait_for(py, limit, future)?;
    waited.ok_or_else(|| timed_out(limit.unwrap_or_default()))
}

/// The same, with `None` once the time is over.
///
/// # Errors
/// A signal handler raised.
pub(crate) fn wait_for<F>(py: Python<'_>, limit: Option<Duration>, future: F) -> PyResult<Option<F::Output>>
where
    F: Future + Send,
    F::Output: Send,
{
    // It goes without the interpreter's lock: to give up a wait takes the lock of a port.
    let mut future = pin!(Some(future));
    let waiting = Arc::new(Waiting { thread: thread::current(), is_woken: AtomicBool::new(false) });
    let waker = Waker::from(Arc::clone(&waiting));
    let clock = Clock::start();
    loop {
        let slice_ends = clock.now() + SLICE;
        let ready = detach(py, || {
            loop {
                let polled = future.as_mut().as_pin_mut()?.poll(&mut Context::from_waker(&waker));
                if let Poll::Ready(value) = polled {
                    future.set(None);
                    return Some(value);
                }
                loop {
                    let left = slice_ends.saturating_since(clock.now());
                    if left.is_zero() {
                        return None;
                    }
                    if waiting.is_woken.swap(false, Ordering::AcqRel) {
                        break;
                    }
                    thread::park_timeout(left);
                }
            }
        });
        // What is ready is returned, whatever a signal says: a byte that was read must not be lost.
        if let Some(value) = ready {
            log::pass_on_beside_result(py);
            return Ok(Some(value));
        }
        // The handler of a signal may run while lines are passed on.
        let signalled = log::pass_on(py).and_then(|()| py.check_signals());
        let is_over = limit.is_some_and(|limit| clock.now() >= Instant::ZERO + limit);
        if signalled.is_err() || is_over {
            detach(py, || future.set(None));
            return signalled.map(|()| None);
        }
    }
}
