//! The waiters of one condition: blocked threads and sleeping tasks.

use std::sync::{Arc, Condvar};
use std::task::Waker;

use super::wait_times::WaitTimes;
use super::wakers::{Registration, Wakers};

/// Wakes the waiters of a condition when it may have come true. They check it again.
///
/// It counts the waiting threads, so that waking costs no system call when none waits.
#[derive(Debug, Default)]
pub(crate) struct WaitQueue {
    condvar: Arc<Condvar>,
    /// Waiting threads that were not woken yet.
    blocked: usize,
    /// A thread waits that drives the port meanwhile, and was not woken yet.
    is_driving: bool,
    /// How long its threads wait, and stay away in between.
    pub(super) times: WaitTimes,
    wakes: u64,
    tasks: Wakers,
}

/// A thread's place in a [`WaitQueue`].
#[derive(Debug)]
pub(crate) struct Ticket {
    pub(super) condvar: Arc<Condvar>,
    wakes: u64,
}

impl WaitQueue {
    /// Joins the waiting threads.
    pub(crate) fn join(&mut self) -> Ticket {
        self.blocked += 1;
        Ticket { condvar: Arc::clone(&self.condvar), wakes: self.wakes }
    }

    /// Whether threads whose waits are brief wait here, or tasks. Without one that drives.
    pub(super) fn is_awaited(&self) -> bool {
        self.blocked > 0 && self.times.is_brief() || !self.tasks.is_empty()
    }

    /// The thread with this ticket drives the port from now on. It is not woken by the condition variable.
    pub(super) fn drive(&mut self, ticket: &Ticket) {
        self.leave(ticket);
        self.is_driving = !self.woken_since(ticket);
    }

    /// The same thread stops to wait.
    pub(super) fn leave_driving(&mut self) {
        self.is_driving = false;
    }

    /// Whether the waiters were woken since the ticket was drawn.
    pub(crate) fn woken_since(&self, ticket: &Ticket) -> bool {
        self.wakes != ticket.wakes
    }

    /// Leaves the waiting threads.
    pub(crate) fn leave(&mut self, ticket: &Ticket) {
        if !self.woken_since(ticket) {
            self.blocked = self.blocked.saturating_sub(1);
        }
    }

    /// Has the next wake-up wake `task`. Returns the replaced waker, which the caller drops without the lock.
    pub(crate) fn register(&mut self, registration: &mut Registration, task: &Waker) -> Option<Waker> {
        self.tasks.register(registration, task)
    }

    /// Removes a task. Returns its waker, which the caller drops without the lock.
    pub(crate) fn withdraw(&mut self, registration: &mut Registration) -> Option<Waker> {
        self.tasks.withdraw(registration)
    }

    /// The number of waiting tasks.
    #[cfg(test)]
    pub(crate) fn tasks(&self) -> usize {
        self.tasks.len()
    }

    /// Adds all waiters to `wakeups`.
    pub(crate) fn wake(&mut self, wakeups: &mut Wakeups) {
        if self.blocked > 0 {
            self.blocked = 0;
            self.wakes += 1;
            wakeups.threads.push(Arc::clone(&self.condvar));
        }
        if std::mem::take(&mut self.is_driving) {
            self.wakes += 1;
            wakeups.driving_caller = true;
        }
        self.tasks.take_all(&mut wakeups.tasks);
    }
}

/// Threads and tasks to wake once the lock is free.
#[derive(Debug, Default)]
pub(crate) struct Wakeups {
    threads: Vec<Arc<Condvar>>,
    tasks: Vec<Waker>,
    /// The thread that drives the port is to look, too.
    pub(super) driving_caller: bool,
}

impl Wakeups {
    /// Whether there are tasks. Their wakers are foreign code, which never runs under the lock.
    pub(crate) fn has_tasks(&self) -> bool {
        !self.tasks.is_empty()
    }

    /// Wakes the threads only.
    pub(crate) fn deliver_to_threads(&mut self) {
        for condvar in self.threads.drain(..) {
            condvar.notify_all();
        }
    }

    /// Wakes threads and tasks, but for a caller that drives.
    pub(crate) fn deliver(mut self) {
        self.deliver_to_threads();
        for task in self.tasks {
            task.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_waiters_nothing_is_woken() {
        let mut wakeups = Wakeups::default();
        WaitQueue::default().wake(&mut wakeups);
        assert!(wakeups.threads.is_empty() && !wakeups.has_tasks());
    }

    #[test]
    fn a_woken_thread_is_not_woken_again() {
        let mut queue = WaitQueue::default();
        let mut wakeups = Wakeups::default();
        let ticket = queue.join();
        queue.wake(&mut wakeups);
        queue.wake(&mut wakeups);
        assert_eq!(wakeups.threads.len(), 1);
        assert!(queue.woken_since(&ticket));
    }

    #[test]
    fn a_thread_that_left_after_a_timeout_is_not_woken() {
        let mut queue = WaitQueue::default();
        let mut wakeups = Wakeups::default();
        let ticket = queue.join();
        queue.leave(&ticket);
        queue.wake(&mut wakeups);
        assert!(wakeups.threads.is_empty());
    }
}
