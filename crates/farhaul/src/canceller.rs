//! Ending blocked calls from elsewhere.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use farhaul_udp::Waker;

/// Ends blocked calls of a stream, a listener or a whole endpoint, from another thread or from a signal handler.
///
/// Every call that waits, and every later call that would have to wait, returns [`Error::Cancelled`](crate::Error::Cancelled),
/// until somebody calls [`reset`](Canceller::reset). So it does not matter whether a call waits just now or will in a
/// moment: none slips through. Nothing is closed: calls that need not wait still work, and dropping the handles cleans up
/// as always.
#[derive(Clone)]
pub struct Canceller {
    flag: Arc<CancelFlag>,
    notice: Arc<AtomicBool>,
    driver: Waker,
}

/// Whether calls are to end, and how often that was asked for: the lowest bit and the others.
#[derive(Debug, Default)]
pub(crate) struct CancelFlag(AtomicUsize);

/// The state of a [`CancelFlag`] when a call began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SeenFlag(usize);

const RAISED: usize = 1;
const ONE_MORE: usize = 2;

impl CancelFlag {
    /// A flag that is not raised.
    pub(crate) const fn new() -> Self {
        Self(AtomicUsize::new(0))
    }

    /// What a call remembers when it begins.
    pub(crate) fn seen(&self) -> SeenFlag {
        SeenFlag(self.0.load(Ordering::Acquire))
    }

    /// Whether a call that began at `seen` is to end: the flag is raised, or was meanwhile.
    pub(crate) fn ends(&self, seen: SeenFlag) -> bool {
        let now = self.0.load(Ordering::Acquire);
        now & RAISED != 0 || now / ONE_MORE != seen.0 / ONE_MORE
    }

    fn raise(&self) {
        self.0.fetch_add(ONE_MORE, Ordering::Release);
        self.0.fetch_or(RAISED, Ordering::Release);
    }
}

impl Canceller {
    pub(crate) fn new(flag: &Arc<CancelFlag>, (notice, driver): (Arc<AtomicBool>, Waker)) -> Self {
        Self { flag: Arc::clone(flag), notice, driver }
    }

    /// Ends the calls, now and until [`reset`](Canceller::reset).
    ///
    /// Atomic operations and one `write` to an eventfd: allowed in a signal handler.
    pub fn cancel(&self) {
        self.flag.raise();
        self.notice.store(true, Ordering::Release);
        self.driver.wake();
    }

    /// Lets calls wait again. A thread that was waiting when somebody cancelled still gets
    /// [`Error::Cancelled`](crate::Error::Cancelled), however soon the reset follows; a task that was not polled in between
    /// goes on waiting.
    pub fn reset(&self) {
        self.flag.0.fetch_and(!RAISED, Ordering::Release);
    }

    /// Whether somebody cancelled and nobody reset it since.
    pub fn is_cancelled(&self) -> bool {
        self.flag.seen().0 & RAISED != 0
    }
}

impl fmt::Debug for Canceller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Canceller").field("is_cancelled", &self.is_cancelled()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_was_under_way_ends_even_if_the_reset_comes_first() {
        let flag = CancelFlag::new();
        let before = flag.seen();
        assert!(!flag.ends(before));
        flag.raise();
        assert!(flag.ends(before) && flag.ends(flag.seen()), "now and from now on");
        flag.0.fetch_and(!RAISED, Ordering::Release);
        assert!(flag.ends(before));
        assert!(!flag.ends(flag.seen()), "calls after the reset wait again");
    }
}
