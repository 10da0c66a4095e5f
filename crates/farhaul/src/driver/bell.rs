//! Who waits for one condition: blocked threads and sleeping tasks.

use std::sync::{Arc, Condvar};
use std::task::Waker;

#[cfg(any(test, feature = "tokio"))]
use super::wakers::Registration;
use super::wakers::Wakers;

/// Rung when a condition may have come true; whoever waits looks again.
///
/// It knows how many threads wait, so that ringing costs no system call when nobody does.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    condvar: Arc<Condvar>,
    /// Threads that wait and were not rung for yet.
    blocked: usize,
    rings: u64,
    tasks: Wakers,
}

/// A thread's place at a [`Bell`].
#[derive(Debug)]
pub(crate) struct Ticket {
    pub(super) condvar: Arc<Condvar>,
    rings: u64,
}

impl Bell {
    /// Joins the waiting threads.
    pub(crate) fn join(&mut self) -> Ticket {
        self.blocked += 1;
        Ticket { condvar: Arc::clone(&self.condvar), rings: self.rings }
    }

    /// Whether the bell rang since the ticket was drawn.
    pub(crate) fn rang_since(&self, ticket: &Ticket) -> bool {
        self.rings != ticket.rings
    }

    /// Leaves the waiting threads.
    pub(crate) fn leave(&mut self, ticket: &Ticket) {
        if !self.rang_since(ticket) {
            self.blocked = self.blocked.saturating_sub(1);
        }
    }

    /// Has `task` woken by the next ring. The waker that it replaces is for the caller to drop, without the lock.
    #[cfg(any(test, feature = "tokio"))]
    pub(crate) fn register(&mut self, registration: &mut Registration, task: &Waker) -> Option<Waker> {
        self.tasks.register(registration, task)
    }

    /// A task waits no longer. Its waker is for the caller to drop, without the lock.
    #[cfg(any(test, feature = "tokio"))]
    pub(crate) fn withdraw(&mut self, registration: &mut Registration) -> Option<Waker> {
        self.tasks.withdraw(registration)
    }

    /// How many tasks wait.
    #[cfg(test)]
    pub(crate) fn tasks(&self) -> usize {
        self.tasks.len()
    }

    /// Adds everybody who waits to `wakeups`.
    pub(crate) fn ring(&mut self, wakeups: &mut Wakeups) {
        if self.blocked > 0 {
            self.blocked = 0;
            self.rings += 1;
            wakeups.threads.push(Arc::clone(&self.condvar));
        }
        self.tasks.take_all(&mut wakeups.tasks);
    }
}

/// Threads and tasks to be woken once the lock is free.
#[derive(Debug, Default)]
pub(crate) struct Wakeups {
    threads: Vec<Arc<Condvar>>,
    tasks: Vec<Waker>,
}

impl Wakeups {
    /// Whether there are tasks: their wakers are foreign code, which never runs under the lock.
    pub(crate) fn has_tasks(&self) -> bool {
        !self.tasks.is_empty()
    }

    /// Wakes the threads only.
    pub(crate) fn deliver_to_threads(&mut self) {
        for condvar in self.threads.drain(..) {
            condvar.notify_all();
        }
    }

    /// Wakes everybody.
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
    fn ringing_for_nobody_wakes_nobody() {
        let mut wakeups = Wakeups::default();
        Bell::default().ring(&mut wakeups);
        assert!(wakeups.threads.is_empty() && !wakeups.has_tasks());
    }

    #[test]
    fn whoever_was_rung_for_is_not_rung_for_again() {
        let mut bell = Bell::default();
        let mut wakeups = Wakeups::default();
        let ticket = bell.join();
        bell.ring(&mut wakeups);
        bell.ring(&mut wakeups);
        assert_eq!(wakeups.threads.len(), 1);
        assert!(bell.rang_since(&ticket));
    }

    #[test]
    fn whoever_left_after_a_timeout_is_not_counted() {
        let mut bell = Bell::default();
        let mut wakeups = Wakeups::default();
        let ticket = bell.join();
        bell.leave(&ticket);
        bell.ring(&mut wakeups);
        assert!(wakeups.threads.is_empty());
    }
}
