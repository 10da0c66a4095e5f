//! Where real time enters this crate.

use std::time::Instant as StdInstant;

use farhaul_units::{Duration, Instant};
use rustix::time::{ClockId, clock_gettime};

/// The monotonic clock, counted from the moment this value was made.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    zero: StdInstant,
}

impl Clock {
    /// A clock whose [`Instant::ZERO`] is now.
    #[expect(clippy::disallowed_methods, reason = "this is the clock.rs of the sockets")]
    pub fn start() -> Self {
        Self { zero: StdInstant::now() }
    }

    /// The present.
    #[expect(clippy::disallowed_methods, reason = "this is the clock.rs of the sockets")]
    pub fn now(&self) -> Instant {
        Instant::ZERO + StdInstant::now().saturating_duration_since(self.zero)
    }
}

/// Processor time that the calling thread has used, user and system together.
pub fn thread_cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}
