//! Ending sessions from another thread.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use farhaul_udp::Waker;

/// Ends all sessions and servers that were given it, now and for ever. Clones are the same.
#[derive(Clone, Default)]
pub struct Stop(Arc<Shared>);

#[derive(Default)]
struct Shared {
    flag: AtomicBool,
    next: AtomicU64,
    wakers: Mutex<Vec<(u64, Waker)>>,
}

impl Stop {
    /// Ends them. Their calls return [`Failure::Stopped`](super::Failure::Stopped).
    pub fn stop(&self) {
        self.0.flag.store(true, Ordering::Release);
        self.wakers().iter().for_each(|(_, waker)| waker.wake());
    }

    /// Whether it was called.
    pub fn is_stopped(&self) -> bool {
        self.0.flag.load(Ordering::Acquire)
    }

    /// Wakes a waiting thread on a stop, until the result is dropped.
    pub(super) fn wakes(&self, waker: Waker) -> Woken {
        let id = self.0.next.fetch_add(1, Ordering::Relaxed);
        self.wakers().push((id, waker));
        Woken { stop: self.clone(), id }
    }

    /// The list is consistent even after a panic.
    fn wakers(&self) -> MutexGuard<'_, Vec<(u64, Waker)>> {
        self.0.wakers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stop").field("is_stopped", &self.is_stopped()).finish_non_exhaustive()
    }
}

/// The place of a thread among those that a stop wakes.
#[derive(Debug)]
pub(super) struct Woken {
    stop: Stop,
    id: u64,
}

impl Woken {
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.is_stopped()
    }
}

impl Drop for Woken {
    fn drop(&mut self) {
        self.stop.wakers().retain(|(id, _)| *id != self.id);
    }
}
