//! Lines that anybody can cause: some of them, and the number of the others. Otherwise whoever calls fills the log.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use farhaul_udp::Clock;
use farhaul_units::Instant;

use crate::event::Events;
use crate::text::count;

/// Time in which the lines of a quota are printed.
pub const PERIOD: Duration = Duration::from_secs(60);
/// Warnings of a period. They show the pattern to a person, and are 2 MB a day at most.
const WARNINGS: u32 = 10;
/// Sessions of a period. A server that people use has fewer, and their lines and records are 150 MB a day at most.
const SESSIONS: u32 = 100;

/// A quota of lines.
#[derive(Debug)]
pub struct Quota {
    clock: Clock,
    /// What the lines left out were about, as in "callers were refused".
    about: &'static str,
    /// Lines of a period.
    most: u32,
    state: Mutex<QuotaState>,
}

#[derive(Debug, Default)]
struct QuotaState {
    /// When the period began, unless nothing was printed since the last one.
    began: Option<Instant>,
    printed: u32,
    left_out: u64,
}

impl Quota {
    /// A quota of warnings.
    pub fn of_warnings(clock: Clock, about: &'static str) -> Self {
        Self { clock, about, most: WARNINGS, state: Mutex::default() }
    }

    /// A quota of the ends of sessions.
    pub fn of_sessions(clock: Clock, about: &'static str) -> Self {
        Self { most: SESSIONS, ..Self::of_warnings(clock, about) }
    }

    /// Prints a warning, or counts it.
    pub fn warn(&self, events: &Events, message: impl FnOnce() -> String) {
        if self.admits(events) {
            events.warn(&message());
        }
    }

    /// Whether a line may be printed now. Otherwise it is counted.
    pub fn admits(&self, events: &Events) -> bool {
        let (number, admitted) = self.state().on_line(self.clock.now(), self.most);
        self.report(events, number);
        admitted
    }

    /// Counts a line that is not printed.
    pub fn leave_out(&self) {
        self.state().left_out += 1;
    }

    /// Reports the number of those left out, once their period is over.
    pub fn look(&self, events: &Events) {
        let number = self.state().on_time(self.clock.now());
        self.report(events, number);
    }

    fn report(&self, events: &Events, number: Option<u64>) {
        if let Some(number) = number {
            events.warn(&format!("{} more {} within a minute", count(number), self.about));
        }
    }

    fn state(&self) -> MutexGuard<'_, QuotaState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl QuotaState {
    /// Ends a period. Returns the number of lines that it left out, if there are any.
    fn on_time(&mut self, now: Instant) -> Option<u64> {
        if self.began.is_some_and(|began| now.saturating_since(began) < PERIOD) {
            return None;
        }
        let left_out = std::mem::take(self).left_out;
        (left_out > 0).then_some(left_out)
    }

    /// Returns the number of lines that the last period left out, and whether this one may be printed.
    fn on_line(&mut self, now: Instant, most: u32) -> (Option<u64>, bool) {
        let before = self.on_time(now);
        self.began.get_or_insert(now);
        let admitted = self.printed < most;
        match admitted {
            true => self.printed += 1,
            false => self.left_out += 1,
        }
        (before, admitted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn a_flood_of_warnings_becomes_a_few_lines_a_minute_and_every_one_is_counted() {
        let (mut state, mut printed, mut counted) = (QuotaState::default(), 0, 0);
        // A thousand a second, for an hour.
        for millis in 0..3_600_000 {
            let (before, admitted) = state.on_line(at(millis), WARNINGS);
            printed += u64::from(admitted);
            counted += before.unwrap_or(0);
        }
        assert_eq!(printed, 60 * u64::from(WARNINGS));
        counted += state.on_time(at(3_700_000)).unwrap();
        assert_eq!(printed + counted, 3_600_000);
        assert_eq!(state.on_time(at(3_800_000)), None, "once");
    }

    #[test]
    fn warnings_that_come_seldom_are_all_printed() {
        let mut state = QuotaState::default();
        assert!((0..1_000).all(|turn| state.on_line(at(turn * 7_000), WARNINGS) == (None, true)));
    }
}
