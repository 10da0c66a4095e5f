//! How long threads wait at a place, and how long they stay away in between. It decides who drives while they wait.

use std::time::Duration;

use farhaul_units::Instant;

/// A wait up to here is brief. In a steady stream, a reader or a paced writer waits for a few milliseconds at most.
pub(super) const BRIEF: Duration = Duration::from_millis(10);
/// The latest duration weighs one part in this many of a mean, as of an RTT (RFC 6298).
const WEIGHT: u32 = 8;

/// The waits of the threads of one place. Every connection has some, so times are short: in nanoseconds, up to four seconds.
#[derive(Debug, Default)]
pub(super) struct WaitTimes {
    /// The end of the last wait, if there was one, and its length.
    left: Option<Instant>,
    last: u32,
    /// The means of waits and of the times in between.
    waiting: u32,
    away: u32,
}

impl WaitTimes {
    /// A thread begins to wait.
    pub(super) fn begin(&mut self, now: Instant) {
        if let Some(left) = self.left {
            self.away = mean(self.away, nanos(now.saturating_since(left)));
        }
    }

    /// It stops to wait, after `time`. A wait in vain is not brief, whatever the time-out.
    pub(super) fn end(&mut self, now: Instant, time: Duration, was_woken: bool) {
        let time = nanos(if was_woken { time } else { time.max(BRIEF) });
        self.waiting = if self.left.is_some() { mean(self.waiting, time) } else { time };
        (self.left, self.last) = (Some(now), time);
    }

    /// Whether the next wait is likely to be brief.
    pub(super) fn is_brief(&self) -> bool {
        self.left.is_some() && self.last < nanos(BRIEF)
    }

    /// Whether the thread is away for at most half as long as it waits. If it did more, another thread had better receive
    /// meanwhile: one thread would reach less than two thirds of the rate of two.
    pub(super) fn is_light(&self) -> bool {
        self.away <= self.waiting / 2
    }
}

fn mean(mean: u32, latest: u32) -> u32 {
    mean - mean / WEIGHT + latest / WEIGHT
}

fn nanos(time: Duration) -> u32 {
    u32::try_from(time.as_nanos()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(waits: &[(u64, u64)]) -> WaitTimes {
        let (mut times, mut now) = (WaitTimes::default(), Instant::ZERO);
        for &(wait, away) in waits {
            times.begin(now);
            now += Duration::from_micros(wait);
            times.end(now, Duration::from_micros(wait), true);
            now += Duration::from_micros(away);
        }
        times.begin(now);
        times
    }

    #[test]
    fn a_first_wait_and_one_after_a_long_one_are_not_brief() {
        assert!(!WaitTimes::default().is_brief());
        assert!(!after(&[(100, 0), (20_000, 0)]).is_brief());
        assert!(after(&[(20_000, 0), (100, 0)]).is_brief());
    }

    #[test]
    fn a_wait_in_vain_is_not_brief_however_short_its_time_out() {
        let mut times = after(&[(100, 0)]);
        times.end(Instant::ZERO, Duration::from_millis(1), false);
        assert!(!times.is_brief());
    }

    #[test]
    fn a_reader_that_does_more_between_its_waits_is_not_light() {
        assert!(after(&[(2_000, 100); 50]).is_light());
        assert!(after(&[(100, 40); 50]).is_light());
        assert!(!after(&[(100, 60); 50]).is_light());
    }
}
