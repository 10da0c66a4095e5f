//! Ending blocked calls from another thread.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use farhaul_udp::WeakWaker;

/// Ends blocked calls of a stream, a listener or a whole endpoint, from another thread or from a signal handler.
///
/// Every call that waits, and every later call that would wait, returns [`Error::Cancelled`](crate::Error::Cancelled).
/// This lasts until [`reset`](Canceller::reset) is called, so no call slips through shortly before it waits. Nothing is
/// closed. Calls that need not wait still work, and dropping the handles cleans up as usual.
#[derive(Clone)]
pub struct Canceller {
    flag: Arc<CancelFlag>,
    notice: Arc<AtomicBool>,
    waker: WeakWaker,
}

/// Whether calls must end, in the lowest bit, and the number of cancellations, in the others.
#[derive(Debug, Default)]
pub(crate) struct CancelFlag(AtomicUsize);

/// The state of a [`CancelFlag`] at the start of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SeenFlag(usize);

const RAISED: usize = 1;
const ONE_MORE: usize = 2;

impl CancelFlag {
    /// A flag that is not raised.
    pub(crate) const fn new() -> Self {
        Self(AtomicUsize::new(0))
    }

    /// The state for a call to remember when it starts.
    pub(crate) fn seen(&self) -> SeenFlag {
        SeenFlag(self.0.load(Ordering::Acquire))
    }

    /// Whether a call that started at `seen` must end: the flag is raised, or was meanwhile.
    pub(crate) fn ends(&self, seen: SeenFlag) -> bool {
        let now = self.0.load(Ordering::Acquire);
        now & RAISED != 0 || now / ONE_MORE != seen.0 / ONE_MORE
    }

    pub(crate) fn is_raised(&self) -> bool {
        self.seen().0 & RAISED != 0
    }

    fn raise(&self) {
        self.0.fetch_add(ONE_MORE, Ordering::Release);
        self.0.fetch_or(RAISED, Ordering::Release);
    }
}

impl Canceller {
    pub(crate) fn new(flag: &Arc<CancelFlag>, (notice, waker): (Arc<AtomicBool>, WeakWaker)) -> Self {
        Self { flag: Arc::clone(flag), notice, waker }
    }

    /// Ends the calls, now and until [`reset`](Canceller::reset).
    ///
    /// Uses atomic operations and one `write` to an eventfd, which are permitted in a signal handler.
    pub fn cancel(&self) {
        self.flag.raise();
        self.notice.store(true, Ordering::Release);
        self.waker.wake();
    }

    /// Lets calls wait again. A thread that was waiting at the time of the cancellation still gets
    /// [`Error::Cancelled`](crate::Error::Cancelled), however soon the reset follows. A task that was not polled in
    /// between continues to wait.
    pub fn reset(&self) {
        self.flag.0.fetch_and(!RAISED, Ordering::Release);
    }

    /// Whether the port is open, so that there may be calls to end.
    pub fn is_port_open(&self) -> bool {
        self.waker.is_alive()
    }

    /// Whether it was cancelled and not reset since.
    pub fn is_cancelled(&self) -> bool {
        self.flag.is_raised()
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
    fn a_waiting_call_ends_even_if_the_reset_comes_first() {
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
