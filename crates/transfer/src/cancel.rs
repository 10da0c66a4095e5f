//! Cancelling what runs, from another thread.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use farhaul::Canceller;

use crate::error::{Code, Error};

/// Interval and number of looks for a cancellation that has ended a child process already: 200 ms together, far more than a thread
/// of a busy machine needs to wake up.
const LOOK: Duration = Duration::from_millis(10);
const LOOKS: usize = 20;

/// Cancels copies and servers that were given it, now and for ever. Clones share everything.
#[derive(Clone, Default)]
pub struct Cancellation(Arc<Shared>);

#[derive(Default)]
struct Shared {
    is_cancelled: Arc<AtomicBool>,
    state: Mutex<CancellationState>,
}

#[derive(Default)]
struct CancellationState {
    reason: Option<Error>,
    on_cancel: Vec<Box<dyn Fn() + Send>>,
    /// What ends calls of open ports.
    cancellers: Vec<Canceller>,
    /// Whether a cancellation has been asked for that is not carried out yet.
    is_coming: Option<Box<dyn Fn() -> bool + Send>>,
}

impl Cancellation {
    /// Cancels. What was given it ends with [`Code::Interrupted`].
    pub fn cancel(&self) {
        self.cancel_because(Error::new(Code::Interrupted, "it was cancelled"));
    }

    /// Cancels, for a reason with which everything ends that was given it. The first reason stays.
    pub fn cancel_because(&self, reason: Error) {
        let mut state = self.state();
        state.reason.get_or_insert(reason);
        self.0.is_cancelled.store(true, Ordering::Release);
        let CancellationState { on_cancel, cancellers, .. } = &mut *state;
        let (all, ports) = (std::mem::take(on_cancel), std::mem::take(cancellers));
        // They may look at this cancellation.
        drop(state);
        all.iter().for_each(|what| what());
        ports.iter().for_each(Canceller::cancel);
    }

    /// Whether it was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled.load(Ordering::Acquire)
    }

    /// A flag that is true once it was cancelled, for loops that look at one.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0.is_cancelled)
    }

    /// The reason, once it was cancelled.
    pub fn reason(&self) -> Option<Error> {
        self.state().reason.clone()
    }

    /// The reason, or one that comes within a moment. For the failure of a child process: a terminal sends Ctrl-C to this process
    /// and to its children, and the child may have ended before this process knows.
    pub fn reason_soon(&self) -> Option<Error> {
        (0..LOOKS).find_map(|_| {
            self.reason().or_else(|| {
                thread::park_timeout(LOOK);
                self.reason()
            })
        })
    }

    /// Calls `what` on a cancellation, or at once if there was one.
    pub fn on_cancel(&self, what: impl Fn() + Send + 'static) {
        let mut state = self.state();
        if !self.is_cancelled() {
            return state.on_cancel.push(Box::new(what));
        }
        drop(state);
        what();
    }

    /// Ends the calls behind `canceller` on a cancellation, or at once if there was one.
    pub fn cancels(&self, canceller: Canceller) {
        let mut state = self.state();
        if self.is_cancelled() {
            drop(state);
            return canceller.cancel();
        }
        // Whoever connects again and again does not collect those of closed ports.
        state.cancellers.retain(Canceller::is_port_open);
        state.cancellers.push(canceller);
    }

    /// Has `is_coming` tell whether a cancellation has been asked for that is not carried out yet, such as a pending signal.
    ///
    /// Ctrl-C reaches all programs of a pipeline at once. A program that ends first also ends the input of this one, which may
    /// see that before the signal.
    pub fn foresee(&self, is_coming: impl Fn() -> bool + Send + 'static) {
        self.state().is_coming = Some(Box::new(is_coming));
    }

    /// Whether it was cancelled, or a cancellation has been asked for.
    pub fn is_requested(&self) -> bool {
        self.is_cancelled() || self.state().is_coming.as_ref().is_some_and(|is_coming| is_coming())
    }

    /// The content, even after a panic: a list and an optional reason are always consistent.
    fn state(&self) -> MutexGuard<'_, CancellationState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Cancellation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cancellation").field("is_cancelled", &self.is_cancelled()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[test]
    fn whoever_comes_late_is_cancelled_at_once_and_the_first_reason_stays() {
        let (cancellation, calls) = (Cancellation::default(), Arc::new(AtomicUsize::new(0)));
        let count = |calls: &Arc<AtomicUsize>| {
            let calls = Arc::clone(calls);
            move || {
                calls.fetch_add(1, Ordering::AcqRel);
            }
        };
        cancellation.on_cancel(count(&calls));
        assert!(!cancellation.is_cancelled() && cancellation.reason().is_none());
        cancellation.cancel_because(Error::new(Code::Terminated, "first"));
        cancellation.on_cancel(count(&calls));
        assert_eq!(calls.load(Ordering::Acquire), 2);
        let clone = cancellation.clone();
        clone.cancel();
        assert_eq!(clone.reason().map(|reason| reason.code), Some(Code::Terminated));
        assert!(clone.flag().load(Ordering::Acquire));
    }

    #[test]
    fn a_cancellation_that_is_coming_can_be_seen() {
        let (cancellation, pending) = (Cancellation::default(), Arc::new(AtomicBool::new(false)));
        let its = Arc::clone(&pending);
        cancellation.foresee(move || its.load(Ordering::Acquire));
        assert!(!cancellation.is_requested());
        pending.store(true, Ordering::Release);
        assert!(cancellation.is_requested() && !cancellation.is_cancelled());
    }
}
