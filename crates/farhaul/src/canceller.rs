//! Ending blocked calls from elsewhere.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use farhaul_udp::Waker;

/// Ends blocked calls of a stream, a listener or a whole endpoint, from another thread or from a signal handler.
///
/// Every call that waits, and every later call that would have to wait, returns [`Error::Cancelled`](crate::Error::Cancelled).
/// Nothing is closed: calls that need not wait still work, and dropping the handles cleans up as always.
#[derive(Clone)]
pub struct Canceller {
    flag: Arc<AtomicBool>,
    notice: Arc<AtomicBool>,
    driver: Waker,
}

impl Canceller {
    pub(crate) fn new(flag: &Arc<AtomicBool>, (notice, driver): (Arc<AtomicBool>, Waker)) -> Self {
        Self { flag: Arc::clone(flag), notice, driver }
    }

    /// Ends the calls, now and from now on.
    ///
    /// Two stores and one `write` to an eventfd: allowed in a signal handler.
    pub fn cancel(&self) {
        self.flag.store(true, Ordering::Release);
        self.notice.store(true, Ordering::Release);
        self.driver.wake();
    }

    /// Whether somebody cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.flag.load(Ordering::Acquire)
    }
}

impl fmt::Debug for Canceller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Canceller").field("is_cancelled", &self.is_cancelled()).finish_non_exhaustive()
    }
}
