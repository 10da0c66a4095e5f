//! The clock in the view of a protocol: without pauses in which this process did not run.

use std::time::Duration;

use farhaul_units::Instant;

use crate::clock::Wall;

/// A driver later than this was not running: the process was stopped, or the machine overloaded. Two seconds are far
/// above any scheduling delay and far below every time-out of a connection.
const PAUSE: Duration = Duration::from_secs(2);

/// The clock in a transport's view, without pauses in which this process did not run.
///
/// A process that was stopped for a minute must not conclude that its peer was silent for a minute. Without the pause,
/// every timer fires one interval later, when the peer had a chance to answer.
#[derive(Debug, Default)]
pub struct Timeline {
    cut_out: Duration,
    last: Instant,
    /// The latest reading of the wall clock, and whether it was set since the one before. Stamps from in between are then of no use.
    wall: Option<Wall>,
    was_set: bool,
}

impl Timeline {
    /// The transport's time at `clock`. The driver should have called at `due` at the latest. Never goes back.
    pub fn at(&mut self, clock: Instant, due: Option<Instant>) -> Instant {
        let mut now = clock.saturating_sub(self.cut_out);
        if let Some(due) = due {
            let expected = due.max(self.last);
            let late = now.saturating_since(expected);
            if late > PAUSE {
                self.cut_out += late;
                now = expected;
            }
        }
        self.last = self.last.max(now);
        self.last
    }

    /// Datagrams were received, and both clocks were read after them.
    pub fn note_reception(&mut self, wall: Wall) {
        self.was_set = self.wall.replace(wall).is_some_and(|earlier| !wall.follows(&earlier));
    }

    /// The transport's time at which the kernel stamped one of these datagrams. `None` without a stamp to be relied on.
    pub fn arrival(&self, stamp: Option<Duration>) -> Option<Instant> {
        let (wall, stamp) = self.wall.zip(stamp).filter(|_| !self.was_set)?;
        Some(self.of(wall.instant_of(stamp)))
    }

    /// The transport's time of an earlier event at `clock`.
    fn of(&self, clock: Instant) -> Instant {
        clock.saturating_sub(self.cut_out).min(self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;

    fn second(seconds: u64) -> Instant {
        Instant::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn a_pause_is_cut_out_of_the_transports_time() {
        let mut timeline = Timeline::default();
        assert_eq!(timeline.at(second(1), None), second(1));
        assert_eq!(timeline.at(second(602), Some(second(2))), second(2));
        assert_eq!(timeline.at(second(603), Some(second(3))), second(3));
    }

    #[test]
    fn an_earlier_event_is_on_the_same_timeline_and_never_in_its_future() {
        let mut timeline = Timeline::default();
        timeline.at(second(602), Some(second(2)));
        timeline.at(second(605), None);
        assert_eq!(timeline.of(second(604)), second(4));
        assert_eq!(timeline.of(second(606)), second(5));
    }

    #[test]
    fn a_wall_clock_that_is_set_moves_no_timer_and_dates_nothing_after_now() {
        let (clock, mut timeline) = (Clock::start(), Timeline::default());
        let wall = clock.wall();
        let now = timeline.at(wall.now, None);
        for jump in [Duration::from_millis(40), Duration::from_secs(3_600), Duration::from_secs(10 * 365 * 86_400)] {
            // A kernel time stamp from before the clock was set back, or forward.
            for stamp in [wall.time_of(wall.now) + jump, wall.time_of(wall.now).saturating_sub(jump)] {
                timeline.note_reception(wall);
                let arrived = timeline.arrival(Some(stamp)).expect("the clock was set before the first reading");
                assert!(arrived <= now && now - arrived <= Duration::from_millis(100), "{jump:?}: {arrived}");
                assert_eq!(timeline.at(wall.now, Some(now)), now, "the transport's time is the monotonic clock's");
            }
        }
    }

    #[test]
    fn stamps_from_around_a_step_of_the_wall_clock_do_not_count() {
        let (clock, mut timeline) = (Clock::start(), Timeline::default());
        let reading = |timeline: &mut Timeline, step: Duration| {
            let wall = clock.wall();
            timeline.at(wall.now, None);
            timeline.note_reception(wall.set_forward(step));
            timeline.arrival(Some(wall.time_of(wall.now)))
        };
        assert!(reading(&mut timeline, Duration::ZERO).is_some());
        assert_eq!(reading(&mut timeline, Duration::from_millis(20)), None);
        assert!(reading(&mut timeline, Duration::from_millis(20)).is_some(), "it was set once");
    }

    #[test]
    fn a_short_delay_is_no_pause() {
        let mut timeline = Timeline::default();
        assert_eq!(timeline.at(second(3), Some(second(2))), second(3));
    }

    #[test]
    fn an_idle_endpoint_without_timers_has_no_pauses() {
        let mut timeline = Timeline::default();
        assert_eq!(timeline.at(second(1_000), None), second(1_000));
    }

    #[test]
    fn time_never_goes_back() {
        let mut timeline = Timeline::default();
        assert_eq!(timeline.at(second(5), None), second(5));
        assert_eq!(timeline.at(second(4), None), second(5));
    }
}
