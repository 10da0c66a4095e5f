//! Where real time enters this crate.

use std::time::{Instant as StdInstant, SystemTime};

use farhaul_units::{Duration, Instant};
use rustix::thread::clock_nanosleep_relative;
use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::wait::make_sleeps_precise;

/// A kernel timestamp older than this is not believed: the wall clock was set in between.
const OLDEST_TIMESTAMP: Duration = Duration::from_millis(100);

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

    /// Sleeps until `deadline`, to the nanosecond as far as the system can.
    pub fn sleep_until(&self, deadline: Instant) {
        make_sleeps_precise();
        let left = deadline - self.now();
        if left > Duration::ZERO
            && let Ok(left) = Timespec::try_from(left)
        {
            // A signal may end it early, which does no harm: the caller looks at the clock again.
            let _ = clock_nanosleep_relative(rustix::thread::ClockId::Monotonic, &left);
        }
    }

    /// Relates the wall clock, in which the kernel stamps packets, to this clock, for a short while.
    pub fn wall(&self) -> Wall {
        #[expect(clippy::disallowed_methods, reason = "kernel timestamps are wall-clock times")]
        let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Wall { now: self.now(), wall }
    }
}

/// One reading of both clocks.
#[derive(Clone, Copy, Debug)]
pub struct Wall {
    /// The present on the monotonic clock.
    pub now: Instant,
    wall: Duration,
}

impl Wall {
    /// What the wall clock shows at `instant`, as time since 1970, if nobody sets it until then.
    pub fn time_of(&self, instant: Instant) -> Duration {
        (self.wall + (instant - self.now)).saturating_sub(self.now - instant)
    }

    /// The instant of a kernel timestamp. A stamp from the future, or one that is implausibly old, counts as now.
    pub fn instant_of(&self, stamp: Duration) -> Instant {
        match self.wall.checked_sub(stamp) {
            Some(age) if age <= OLDEST_TIMESTAMP => self.now.saturating_sub(age),
            _ => self.now,
        }
    }
}

/// Processor time that the calling thread has used, user and system together.
pub fn thread_cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_as_old_as_the_wall_clock_says() {
        let wall = Wall { now: Instant::from_nanos(1_000_000), wall: Duration::from_secs(50) };
        let stamp = Duration::from_secs(50) - Duration::from_micros(30);
        assert_eq!(wall.instant_of(stamp), Instant::from_nanos(970_000));
    }

    #[test]
    fn instants_have_their_wall_clock_time() {
        let wall = Wall { now: Instant::from_nanos(1_000_000), wall: Duration::from_secs(50) };
        assert_eq!(wall.time_of(Instant::from_nanos(1_000_007)), Duration::new(50, 7));
        assert_eq!(wall.time_of(Instant::from_nanos(999_000)), Duration::new(49, 999_999_000));
    }

    #[test]
    fn a_stamp_from_before_or_after_a_clock_jump_counts_as_now() {
        let wall = Wall { now: Instant::from_nanos(1_000_000), wall: Duration::from_secs(50) };
        for stamp in [Duration::from_secs(51), Duration::from_secs(3)] {
            assert_eq!(wall.instant_of(stamp), wall.now);
        }
    }
}
