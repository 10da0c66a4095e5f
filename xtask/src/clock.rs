//! The one place where real time enters the chores.

use std::time::{Duration, Instant};

/// Counts from the moment it was made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    #[expect(clippy::disallowed_methods, reason = "this is the clock.rs of the chores")]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }

    /// What is left of `time`; zero once it has passed.
    pub(crate) fn left_of(self, time: Duration) -> Duration {
        time.saturating_sub(self.elapsed())
    }
}
