//! Peak processor load of the emulator.
//!
//! A mean over a whole run would hide a saturated second behind idle time. The load is therefore measured over windows
//! of one second, the period over which Linux limits real-time threads.

use farhaul_units::{Duration, Instant};

/// Interval between samples of the processor time.
const STEP: Duration = Duration::from_millis(100);
/// Samples per window, which spans at least one second.
const WINDOW: usize = 10;

/// Processor time over overlapping windows of one second. Incomplete windows do not count.
#[derive(Debug, Default)]
pub(crate) struct Busy {
    /// The last samples: instant and processor time used so far. The next sample replaces the oldest.
    samples: [(Instant, Duration); WINDOW],
    taken: usize,
    /// The largest share of a processor in any window.
    worst: f64,
}

impl Busy {
    /// Takes a sample at `now` if one is due; `time` returns the processor time used so far.
    pub(crate) fn on_time(&mut self, now: Instant, time: impl FnOnce() -> Duration) {
        let last = self.samples[(self.taken + WINDOW - 1) % WINDOW].0;
        if self.taken > 0 && now - last < STEP {
            return;
        }
        let time = time();
        let oldest = &mut self.samples[self.taken % WINDOW];
        let (began, before) = std::mem::replace(oldest, (now, time));
        if self.taken >= WINDOW {
            let share = time.saturating_sub(before).as_secs_f64() / (now - began).as_secs_f64();
            self.worst = self.worst.max(share);
        }
        self.taken += 1;
    }

    /// The largest share of a processor in any window. Zero before the first window is complete.
    pub(crate) fn worst(&self) -> f64 {
        self.worst
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The worst window of a run with these loads, in percent of each ten milliseconds.
    fn worst(shares: impl IntoIterator<Item = u64>) -> f64 {
        let (mut busy, mut now, mut used) = (Busy::default(), Instant::ZERO, Duration::ZERO);
        for share in shares {
            busy.on_time(now, || used);
            now += Duration::from_millis(10);
            used += Duration::from_micros(share * 100);
        }
        busy.on_time(now, || used);
        busy.worst()
    }

    #[test]
    fn a_saturated_second_shows_however_long_the_rest_of_the_run_is() {
        let idle = || std::iter::repeat_n(3, 6_000);
        let saturated = worst(idle().chain([99; 120]).chain(idle()));
        assert!((0.98..=0.99).contains(&saturated), "{saturated}");
    }

    #[test]
    fn a_peak_of_half_a_second_is_no_saturated_second() {
        let peak = worst([20; 300].into_iter().chain([100; 50]).chain([20; 300]));
        assert!((0.59..=0.61).contains(&peak), "{peak}");
    }

    #[test]
    fn an_incomplete_window_does_not_count() {
        assert_eq!(worst([100; 95]), 0.0);
        assert!(worst([100; 101]) > 0.99);
    }
}
