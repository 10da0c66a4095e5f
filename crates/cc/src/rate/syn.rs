//! The constant interval of UDT's laws.
//!
//! Departures (docs/papers/departures.md): D12 a slightly early acknowledgement still counts for its interval, D26 a
//! delayed one counts for all intervals of its delay.

use farhaul_units::{Duration, Instant};

/// The SYN interval. A rate law runs at most once in it. Source: paper:udt-2004 §3.1, unchanged since.
pub(crate) const SYN_INTERVAL: Duration = Duration::from_millis(10);
/// How early an interval may end. Acknowledgements also leave once per SYN interval, so without slack the smallest
/// jitter would make a law miss every other one. Half an interval exceeds the jitter of a steady path.
const SLACK: Duration = Duration::from_millis(5);

/// Lets a law run at most once per SYN interval on average.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SynClock {
    /// When the current interval ends.
    end: Instant,
}

impl SynClock {
    /// A clock whose first interval begins now.
    pub(super) fn starting(now: Instant) -> Self {
        Self { end: now + SYN_INTERVAL }
    }

    /// Whether the law may run now. If so, the next interval begins.
    pub(crate) fn tick(&mut self, now: Instant) -> bool {
        let due = now + SLACK >= self.end;
        if due {
            self.end = self.end.max(now) + SYN_INTERVAL;
        }
        due
    }

    /// Number of intervals that end with an acknowledgement now. Zero if it is too early. More than one if
    /// acknowledgements were delayed, for intervals within the last `hold`.
    pub(super) fn intervals(&mut self, now: Instant, hold: Duration) -> u32 {
        let due = self.end;
        if !self.tick(now) {
            return 0;
        }
        let missed = (now - due).min(hold).as_micros() / SYN_INTERVAL.as_micros();
        1 + u32::try_from(missed).unwrap_or(u32::MAX - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(micros: impl IntoIterator<Item = u64>) -> Vec<bool> {
        let mut clock = SynClock::default();
        micros.into_iter().map(|micros| clock.tick(Instant::ZERO + Duration::from_micros(micros))).collect()
    }

    #[test]
    fn the_clock_ticks_once_per_interval_and_restarts_after_a_pause() {
        let [yes, no] = [true, false];
        assert_eq!(
            ticks([5_000, 5_000, 9_900, 15_000, 19_000, 70_000, 70_001, 80_000]),
            [yes, no, no, yes, no, yes, no, yes]
        );
    }

    #[test]
    fn jitter_of_the_acknowledgements_costs_no_interval() {
        assert!(ticks((1..100).map(|interval| interval * 10_000 + interval * 7_919 % 4_900)).iter().all(|tick| *tick));
    }

    #[test]
    fn a_delayed_acknowledgement_counts_for_the_intervals_of_its_delay() {
        let mut clock = SynClock::default();
        let mut at =
            |millis, hold| clock.intervals(Instant::ZERO + Duration::from_millis(millis), Duration::from_millis(hold));
        assert_eq!([at(10, 200), at(20, 200), at(22, 200)], [2, 1, 0]);
        assert_eq!(at(130, 200), 11, "a hundred milliseconds of silence and the interval that ends now");
        assert_eq!(at(10_000, 200), 21, "no more than the hold");
        assert_eq!(at(20_000, 0), 1, "nothing where silence means nothing");
    }

    #[test]
    fn a_flood_of_acknowledgements_does_not_run_the_law_more_often() {
        let runs = ticks((0..1_000_000).step_by(100)).iter().filter(|tick| **tick).count();
        assert!((100..=101).contains(&runs), "{runs} runs in 100 intervals");
    }
}
