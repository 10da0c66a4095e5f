//! Waits of calls: of one thread for one connection, and of one thread for many sockets and descriptors.

use std::cell::OnceCell;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};
use std::thread::{self, Thread};
use std::time::Instant;

use farhaul::{Readiness, Watch};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use crate::clock;
use crate::failure::{Code, Failure, Result};

/// Wakes a thread that parks.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

impl Unpark {
    fn this_thread() -> Waker {
        Waker::from(Arc::new(Self(thread::current())))
    }
}

thread_local! {
    static UNPARK: Waker = Unpark::this_thread();
    static SIGNAL: OnceCell<Arc<Signal>> = const { OnceCell::new() };
}

/// Unparks this thread. Programs wait in their destructors as well, when the thread has no value of its own any more.
pub(crate) fn unpark() -> Waker {
    UNPARK.try_with(Waker::clone).unwrap_or_else(|_| Unpark::this_thread())
}

/// Blocks this thread until `is_ready`.
///
/// # Errors
/// [`Code::TimedOut`] at the deadline. What is watched is gone.
pub(crate) fn until(
    watch: &mut Watch,
    deadline: Option<Instant>,
    is_ready: impl Fn(Readiness) -> bool,
) -> Result<Readiness> {
    until_or(watch, deadline, is_ready, || Ok(()))
}

/// The same. `may_go_on` is asked before each look. Whoever changes its answer unparks this thread.
///
/// # Errors
/// That of `may_go_on` as well.
fn until_or(
    watch: &mut Watch,
    deadline: Option<Instant>,
    is_ready: impl Fn(Readiness) -> bool,
    may_go_on: impl Fn() -> Result<()>,
) -> Result<Readiness> {
    let waker = unpark();
    loop {
        may_go_on()?;
        let readiness = watch.check(&waker)?;
        if is_ready(readiness) {
            return Ok(readiness);
        }
        match deadline {
            None => thread::park(),
            Some(deadline) => match deadline.saturating_duration_since(clock::now()) {
                left if left.is_zero() => return Err(Code::TimedOut.into()),
                left => thread::park_timeout(left),
            },
        }
    }
}

/// The threads that calls of one socket block. Its close ends their waits.
#[derive(Debug, Default)]
pub(crate) struct Blocked(Mutex<Vec<Thread>>);

impl Blocked {
    fn threads(&self) -> MutexGuard<'_, Vec<Thread>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Blocks this thread until `is_ready`, or the socket is closed.
    ///
    /// # Errors
    /// As for [`until`]. [`Code::ConnectionLost`] once `is_closed`.
    pub(crate) fn until(
        &self,
        watch: &mut Watch,
        deadline: Option<Instant>,
        is_ready: impl Fn(Readiness) -> bool,
        is_closed: impl Fn() -> bool,
    ) -> Result<Readiness> {
        let this = thread::current();
        self.threads().push(this.clone());
        // It is listed before it asks, so whoever closes the socket later unparks it.
        let may_go_on = || if is_closed() { Err(Code::ConnectionLost.into()) } else { Ok(()) };
        let result = until_or(watch, deadline, is_ready, may_go_on);
        let mut threads = self.threads();
        if let Some(place) = threads.iter().position(|thread| thread.id() == this.id()) {
            threads.swap_remove(place);
        }
        result
    }

    /// The socket is closed.
    pub(crate) fn end_all(&self) {
        self.threads().iter().for_each(Thread::unpark);
    }
}

/// Wakes a thread that waits for many sockets, or for descriptors of the system as well.
#[derive(Debug)]
pub(crate) struct Signal {
    descriptor: OwnedFd,
    is_set: AtomicBool,
}

impl Signal {
    /// # Errors
    /// The process has no descriptor left.
    pub(crate) fn new() -> Result<Arc<Self>> {
        let descriptor = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)
            .map_err(|errno| Failure::of_system(Code::NoResource, &errno.into()))?;
        Ok(Arc::new(Self { descriptor, is_set: AtomicBool::new(false) }))
    }

    pub(crate) fn set(&self) {
        if !self.is_set.swap(true, Ordering::AcqRel) {
            // The counter is far from its limit, the only reason for a failure.
            let _ = rustix::io::write(&self.descriptor, &1_u64.to_ne_bytes());
        }
    }

    /// Waits until it is set, one of `descriptors` is ready, or the deadline. Check the states behind it: a change that
    /// comes later sets it again.
    pub(crate) fn wait(&self, descriptors: &[(BorrowedFd<'_>, PollFlags)], deadline: Option<Instant>) {
        let mut fds = vec![PollFd::from_borrowed_fd(self.descriptor.as_fd(), PollFlags::IN)];
        fds.extend(descriptors.iter().map(|(fd, flags)| PollFd::from_borrowed_fd(*fd, *flags)));
        let left = deadline.map(|deadline| deadline.saturating_duration_since(clock::now()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        // An interrupted wait is one that ends early. The caller checks what it waits for.
        let ready = poll(&mut fds, left.as_ref());
        if ready.is_ok() && fds[0].revents().contains(PollFlags::IN) {
            // In this order: whoever sets it in between has changed a state that the caller checks next.
            let _ = rustix::io::read(&self.descriptor, &mut [0; 8]);
            self.is_set.store(false, Ordering::Release);
        }
    }
}

/// The signal of this thread, which its waits share.
///
/// # Errors
/// The process has no descriptor left.
pub(crate) fn signal() -> Result<Arc<Signal>> {
    let known = SIGNAL.try_with(|cell| cell.get().cloned()).ok().flatten();
    match known {
        Some(signal) => Ok(signal),
        None => {
            let signal = Signal::new()?;
            // A thread that ends keeps none.
            let _ = SIGNAL.try_with(|cell| cell.set(Arc::clone(&signal)));
            Ok(signal)
        }
    }
}

/// Sets the signals of all threads that wait for the same. Each of them looks what it waits for.
#[derive(Debug, Default)]
pub(crate) struct Bell(Mutex<Vec<Arc<Signal>>>);

impl Bell {
    fn signals(&self) -> MutexGuard<'_, Vec<Arc<Signal>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn ring(&self) {
        self.signals().iter().for_each(|signal| signal.set());
    }

    /// Has it set `signal` as well, until the result is dropped.
    pub(crate) fn call<'a>(&'a self, signal: &'a Arc<Signal>) -> Called<'a> {
        self.signals().push(Arc::clone(signal));
        Called { bell: self, signal }
    }
}

/// A thread that a bell calls.
#[derive(Debug)]
pub(crate) struct Called<'a> {
    bell: &'a Bell,
    signal: &'a Arc<Signal>,
}

impl Drop for Called<'_> {
    fn drop(&mut self) {
        let mut signals = self.bell.signals();
        if let Some(place) = signals.iter().position(|signal| Arc::ptr_eq(signal, self.signal)) {
            signals.swap_remove(place);
        }
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.ring();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.ring();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_ends_the_next_wait_once() {
        let signal = Signal::new().unwrap();
        signal.set();
        signal.set();
        signal.wait(&[], None);
        assert!(!signal.is_set.load(Ordering::Relaxed));
        signal.wait(&[], Some(clock::now()));
        signal.set();
        signal.wait(&[], None);
    }
}
