//! The clock of this crate: the only place where it reads real time.

use std::time::{Instant as StdInstant, SystemTime};

use farhaul_units::{Duration, Instant};
use rustix::thread::clock_nanosleep_relative;
use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::wait::make_sleeps_precise;

/// The oldest plausible kernel timestamp. An older one means that the wall clock was set in between.
const OLDEST_TIMESTAMP: Duration = Duration::from_millis(100);
/// Largest drift of the wall clock that is no step: a fixed part, and one in so many of the time. NTP slews by 1 in 2000 at most.
const DRIFT: (Duration, u32) = (Duration::from_millis(1), 1_000);

/// The monotonic clock, counted from its creation.
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

    /// The current time.
    #[expect(clippy::disallowed_methods, reason = "this is the clock.rs of the sockets")]
    pub fn now(&self) -> Instant {
        Instant::ZERO + StdInstant::now().saturating_duration_since(self.zero)
    }

    /// Sleeps until `deadline`, as precisely as the system permits.
    pub fn sleep_until(&self, deadline: Instant) {
        make_sleeps_precise();
        let left = deadline - self.now();
        if left > Duration::ZERO
            && let Ok(left) = Timespec::try_from(left)
        {
            // A signal may end the sleep early, which is harmless: the caller reads the clock again.
            let _ = clock_nanosleep_relative(rustix::thread::ClockId::Monotonic, &left);
        }
    }

    /// Relates this clock to the wall clock, which the kernel uses for timestamps. Valid for a short while.
    pub fn wall(&self) -> Wall {
        #[expect(clippy::disallowed_methods, reason = "kernel timestamps are wall-clock times")]
        let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Wall { now: self.now(), wall }
    }
}

/// A reading of both clocks.
#[derive(Clone, Copy, Debug)]
pub struct Wall {
    /// The monotonic time of the reading.
    pub now: Instant,
    wall: Duration,
}

impl Wall {
    /// The wall-clock time at `instant`, since 1970, if the wall clock is not set in between.
    pub fn time_of(&self, instant: Instant) -> Duration {
        (self.wall + (instant - self.now)).saturating_sub(self.now - instant)
    }

    /// This reading, had the wall clock been set forward by `step`: for tests of what follows from that.
    #[cfg(test)]
    #[must_use]
    pub(crate) fn set_forward(self, step: Duration) -> Self {
        Self { wall: self.wall + step, ..self }
    }

    /// Whether nobody set the wall clock since `earlier`. A step shows if it is larger than a millisecond and the drift of the time between.
    pub fn follows(&self, earlier: &Self) -> bool {
        let elapsed = self.now.saturating_since(earlier.now);
        self.wall.abs_diff(earlier.wall + elapsed) <= DRIFT.0 + elapsed / DRIFT.1
    }

    /// The instant of a kernel timestamp. A stamp from the future or an implausibly old one counts as now.
    pub fn instant_of(&self, stamp: Duration) -> Instant {
        match self.wall.checked_sub(stamp) {
            Some(age) if age <= OLDEST_TIMESTAMP => self.now.saturating_sub(age),
            _ => self.now,
        }
    }
}

/// Processor time of the calling thread, user and system together.
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

    #[test]
    fn a_step_of_the_wall_clock_shows_and_its_drift_does_not() {
        let at = |now, wall| Wall { now: Instant::from_nanos(now), wall: Duration::from_nanos(wall) };
        let earlier = at(1_000_000_000, 50_000_000_000);
        for (now, wall, follows) in [
            (1_000_100_000, 50_000_100_000, true),
            (1_000_100_000, 50_000_900_000, true),
            (1_000_100_000, 50_002_000_000, false),
            (1_000_100_000, 49_998_000_000, false),
            (11_000_000_000, 60_005_000_000, true),
            (11_000_000_000, 60_020_000_000, false),
        ] {
            assert_eq!(at(now, wall).follows(&earlier), follows, "{now} {wall}");
        }
    }

    #[test]
    fn no_setting_of_the_wall_clock_dates_an_arrival_after_now_or_long_ago() {
        let (now, day) = (Instant::from_nanos(500_000_000), Duration::from_secs(86_400));
        let stamped = 20_000 * day;
        let jumps = [1, 1_000, 99_999, 100_001, 1_000_000, 3_600_000_000].map(Duration::from_micros);
        for jump in jumps.into_iter().chain([day, 365 * day, 20_000 * day]) {
            // Set forward after the packet came, or back.
            for wall in [stamped + jump, stamped.saturating_sub(jump)] {
                let instant = Wall { now, wall }.instant_of(stamped);
                assert!(instant <= now && now - instant <= OLDEST_TIMESTAMP, "{jump:?}: {instant}");
            }
        }
    }
}
