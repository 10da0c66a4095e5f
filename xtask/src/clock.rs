//! The only place where xtask reads real time.

use std::time::{Duration, Instant};

/// Measures time from its creation.
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

    /// The rest of `time`; zero once it has passed.
    pub(crate) fn left_of(self, time: Duration) -> Duration {
        time.saturating_sub(self.elapsed())
    }
}
