//! The only place where xtask reads real time.

use std::thread;
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

/// Waits before the next look at something that does not notify.
#[expect(clippy::disallowed_methods, reason = "this is the clock.rs of the chores")]
pub(crate) fn pause(time: Duration) {
    thread::sleep(time);
}

/// Clock ticks in a second of /proc (proc(5); 100 on every Linux of today).
const TICKS: f64 = 100.0;

/// Processor time of all children that have ended, and of theirs. `None` without /proc.
pub(crate) fn processor_time_of_children() -> Option<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    ticks_of_children(&stat).map(|ticks| Duration::from_secs_f64(ticks / TICKS))
}

/// Processor time of a process, and of all its children that have ended. `None` without /proc, or after its end.
pub(crate) fn processor_time_of(process: u32) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let ticks = ticks_of(&stat, [14, 15, 16, 17])?;
    Some(Duration::from_secs_f64(ticks / TICKS))
}

/// The fields 16 and 17 of proc(5). The name before them is in parentheses.
fn ticks_of_children(stat: &str) -> Option<f64> {
    ticks_of(stat, [16, 17])
}

/// The sum of fields of proc(5).
fn ticks_of<const COUNT: usize>(stat: &str, numbers: [usize; COUNT]) -> Option<f64> {
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<f64>().ok();
    numbers.into_iter().map(field).sum()
}

/// The share of the time for which the processors were idle between two looks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Idleness {
    looked: Stopwatch,
    idle: f64,
    all: f64,
}

impl Idleness {
    /// The first look. `None` without /proc.
    pub(crate) fn start() -> Option<Self> {
        let (idle, all) = ticks_of_processors(&std::fs::read_to_string("/proc/stat").ok()?)?;
        Some(Self { looked: Stopwatch::start(), idle, all })
    }

    /// The share since the last look, once that is so long ago.
    pub(crate) fn look(&mut self, after: Duration) -> Option<f64> {
        if self.looked.elapsed() < after {
            return None;
        }
        let before = std::mem::replace(self, Self::start()?);
        Some((self.idle - before.idle) / (self.all - before.all).max(1.0))
    }
}

/// Idle ticks of all processors, and all of theirs (proc(5)). Waits for disks are idle as well.
fn ticks_of_processors(stat: &str) -> Option<(f64, f64)> {
    let fields = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace();
    let ticks: Vec<f64> = fields.take(8).map_while(|field| field.parse().ok()).collect();
    Some((ticks.get(3)? + ticks.get(4)?, ticks.iter().sum()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ticks_of_children_follow_the_name() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194304 100 200 0 0 11 12 13 14 20 0 1 0 5";
        assert_eq!(ticks_of_children(stat), Some(27.0));
        assert_eq!(ticks_of(stat, [14, 15, 16, 17]), Some(50.0));
    }

    #[test]
    fn the_ticks_of_all_processors_are_in_the_first_line() {
        let stat = "cpu  10 20 30 400 50 6 7 8 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\n";
        assert_eq!(ticks_of_processors(stat), Some((450.0, 531.0)));
        assert_eq!(ticks_of_processors("intr 5"), None);
    }
}
