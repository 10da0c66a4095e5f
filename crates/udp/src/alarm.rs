//! A timer that one thread sets to end the wait of another.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use farhaul_units::Duration;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

/// A timer that any thread may set. A [`Waiter`](crate::Waiter) that watches it is woken when its time has come, and again until
/// it is [stopped](Self::stop).
#[derive(Debug)]
pub struct Alarm(OwnedFd);

/// No time: a timer that does not run.
const NEVER: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

impl Alarm {
    /// A timer that does not run.
    ///
    /// # Errors
    /// The system has no more file descriptors.
    pub fn new() -> io::Result<Self> {
        Ok(Self(timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?))
    }

    /// Rings once `after` has passed, and at no time that was set before.
    pub fn set(&self, after: Duration) {
        // Zero would stop it.
        self.settle(Timespec::try_from(after.max(Duration::from_nanos(1))).unwrap_or(NEVER));
    }

    /// Does not ring any more.
    pub fn stop(&self) {
        self.settle(NEVER);
    }

    fn settle(&self, value: Timespec) {
        // It fails only after a mistake in this crate.
        let _ =
            timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &Itimerspec { it_interval: NEVER, it_value: value });
    }
}

impl AsFd for Alarm {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Clock, Interest, Token, Waiter};

    /// A limit on waits, so that a failing test ends.
    const LIMIT: Option<Duration> = Some(Duration::from_secs(10));

    #[test]
    fn it_rings_from_its_time_on_until_it_is_stopped() {
        let (alarm, mut waiter, clock) = (Alarm::new().unwrap(), Waiter::new().unwrap(), Clock::start());
        waiter.watch(&alarm, Token(7), Interest::Readable).unwrap();
        let before = clock.now();
        alarm.set(Duration::from_millis(2));
        for _ in 0..2 {
            assert_eq!(waiter.wait(LIMIT).unwrap().len(), 1);
        }
        assert!(clock.now() - before >= Duration::from_millis(2));
        alarm.stop();
        assert!(waiter.wait(Some(Duration::from_millis(4))).unwrap().is_empty());
    }

    #[test]
    fn the_last_time_counts() {
        let (alarm, mut waiter) = (Alarm::new().unwrap(), Waiter::new().unwrap());
        waiter.watch(&alarm, Token(7), Interest::Readable).unwrap();
        alarm.set(Duration::from_millis(1));
        alarm.set(Duration::from_secs(3_600));
        assert!(waiter.wait(Some(Duration::from_millis(4))).unwrap().is_empty());
        alarm.set(Duration::ZERO);
        assert_eq!(waiter.wait(LIMIT).unwrap().len(), 1, "at once");
    }
}
