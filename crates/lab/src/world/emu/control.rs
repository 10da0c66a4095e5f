//! The clock of a run, and the signal that ends its threads.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use farhaul_cc::ControllerFailure;
use farhaul_udp::Clock;
use farhaul_units::{Duration, Instant};

/// The reason why a run has no results.
#[derive(Clone, Debug)]
pub(super) enum Trouble {
    /// The user stopped it.
    Stopped,
    /// It failed for this reason.
    Broken(String),
    /// A congestion controller of this flow failed.
    Controller(String, ControllerFailure),
}

impl Trouble {
    /// The failure to make `what`.
    pub(super) fn of(what: &str) -> impl Fn(std::io::Error) -> Self {
        move |error| Self::Broken(format!("{what}: {error}"))
    }
}

/// The state that all threads of a run share.
#[derive(Debug)]
pub(super) struct RunControl {
    clock: Clock,
    over: AtomicBool,
    trouble: Mutex<Option<Trouble>>,
}

impl RunControl {
    /// Starts the clock.
    pub(super) fn begin() -> Self {
        Self { clock: Clock::start(), over: AtomicBool::new(false), trouble: Mutex::new(None) }
    }

    /// The time since the start of the run.
    pub(super) fn now(&self) -> Duration {
        self.clock.now() - Instant::ZERO
    }

    pub(super) fn sleep_until(&self, time: Duration) {
        self.clock.sleep_until(Instant::ZERO + time);
    }

    /// Sleeps until this time or the end of the run. Returns whether the run continues.
    pub(super) fn await_time(&self, time: Duration) -> bool {
        while !self.is_over() {
            let now = self.now();
            if now >= time {
                return true;
            }
            self.sleep_until(time.min(now + super::SLICE));
        }
        false
    }

    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// Ends the run.
    pub(super) fn finish(&self) {
        self.over.store(true, Ordering::Release);
    }

    /// Ends the run with the failure of a flow. Does nothing after the end.
    pub(super) fn fail(&self, flow: &str, reason: impl std::fmt::Display) {
        if !self.is_over() {
            let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
            trouble.get_or_insert_with(|| Trouble::Broken(format!("flow '{flow}': {reason}")));
            drop(trouble);
            self.finish();
        }
    }

    /// Ends the run with the failure of a flow's controller. The other end of the flow may already have told that its
    /// connection was aborted, which is no reason beside this one.
    pub(super) fn fail_controller(&self, flow: &str, failure: ControllerFailure) {
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_over() || matches!(*trouble, Some(Trouble::Broken(_))) {
            *trouble = Some(Trouble::Controller(flow.to_owned(), failure));
            drop(trouble);
            self.finish();
        }
    }

    /// The reason why the run failed.
    pub(super) fn trouble(&self) -> Option<Trouble> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
