//! Real time of a run, and how its threads hear that it is over.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use farhaul_udp::Clock;
use farhaul_units::{Duration, Instant};

/// Why there are no results.
#[derive(Debug)]
pub(super) enum Trouble {
    /// Somebody said so.
    Stopped,
    /// For this reason.
    Broken(String),
}

impl Trouble {
    /// Something could not be made.
    pub(super) fn of(what: &str) -> impl Fn(std::io::Error) -> Self {
        move |error| Self::Broken(format!("{what}: {error}"))
    }
}

/// What all threads of a run share.
#[derive(Debug)]
pub(super) struct RunControl {
    clock: Clock,
    over: AtomicBool,
    trouble: Mutex<Option<String>>,
}

impl RunControl {
    /// Time begins now.
    pub(super) fn begin() -> Self {
        Self { clock: Clock::start(), over: AtomicBool::new(false), trouble: Mutex::new(None) }
    }

    /// Since the beginning of the run.
    pub(super) fn now(&self) -> Duration {
        self.clock.now() - Instant::ZERO
    }

    pub(super) fn sleep_until(&self, time: Duration) {
        self.clock.sleep_until(Instant::ZERO + time);
    }

    /// Sleeps until then, or until the run is over, and says whether it goes on.
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

    /// It is over.
    pub(super) fn finish(&self) {
        self.over.store(true, Ordering::Release);
    }

    /// A flow cannot go on, unless that is because the run is over.
    pub(super) fn fail(&self, flow: &str, reason: impl std::fmt::Display) {
        if !self.is_over() {
            let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
            trouble.get_or_insert_with(|| format!("flow '{flow}': {reason}"));
            drop(trouble);
            self.finish();
        }
    }

    /// Why the run could not go on.
    pub(super) fn trouble(&self) -> Option<String> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
