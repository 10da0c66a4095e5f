//! The clock: its source, what a reading costs, how late sleeps end.

use std::fs;
use std::time::Duration;

use farhaul_udp::Clock;
use farhaul_units::Instant;

use super::finding::Finding;
use crate::output::human::time;

const FOLDER: &str = "/sys/devices/system/clocksource/clocksource0";
/// Readings of the clock for its cost.
const READINGS: u32 = 20_000;
/// Sleeps for their lateness, and the length of each.
const SLEEPS: usize = 25;
const SLEEP: Duration = Duration::from_micros(200);
/// A reading that costs more is a system call to a slow device. Each packet needs one or two.
const SLOW_READING: Duration = Duration::from_micros(1);
/// Sleeps that end later than this make bursts of a paced sender.
const LATE: Duration = Duration::from_millis(1);
/// Sources that every reading asks over a slow bus.
const SLOW_SOURCES: [&str; 4] = ["acpi_pm", "hpet", "jiffies", "refined-jiffies"];

/// What was seen of the clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen<'a> {
    /// The kernel's source; `None` if it does not tell.
    pub(super) source: Option<&'a str>,
    /// The sources to choose from.
    pub(super) available: &'a str,
    /// Mean time of a reading.
    pub(super) cost: Duration,
    /// Smallest difference of two readings.
    pub(super) step: Duration,
    /// Median time by which a sleep ended late.
    pub(super) lateness: Duration,
}

pub(super) fn examine() -> Finding {
    let read = |name| fs::read_to_string(format!("{FOLDER}/{name}")).unwrap_or_default();
    let (source, available) = (read("current_clocksource"), read("available_clocksource"));
    let source = Some(source.trim()).filter(|source| !source.is_empty());
    let clock = Clock::start();
    let (cost, step) = readings(&clock);
    judge_clock(&Seen { source, available: &available, cost, step, lateness: lateness(&clock) })
}

/// The mean time of a reading, and the smallest step between two.
fn readings(clock: &Clock) -> (Duration, Duration) {
    let begun = clock.now();
    let (mut before, mut step) = (begun, Duration::MAX);
    for _ in 0..READINGS {
        let now = clock.now();
        let difference = now - before;
        if difference > Duration::ZERO {
            step = step.min(difference);
        }
        before = now;
    }
    ((before - begun) / READINGS, if step == Duration::MAX { Duration::ZERO } else { step })
}

fn lateness(clock: &Clock) -> Duration {
    let mut late: Vec<Duration> = (0..SLEEPS)
        .map(|_| {
            let until: Instant = clock.now() + SLEEP;
            clock.sleep_until(until);
            clock.now().saturating_since(until)
        })
        .collect();
    late.sort_unstable();
    late[SLEEPS / 2]
}

/// A slow clock costs processor time for each packet, and late sleeps make a paced sender send bursts.
pub(super) fn judge_clock(seen: &Seen<'_>) -> Finding {
    let Seen { source, available, cost, step, lateness } = *seen;
    let message = format!(
        "{}: a reading takes {} ns, its step is {} ns, a sleep ends {} late",
        source.unwrap_or("source unknown"),
        cost.as_nanos(),
        step.as_nanos(),
        time(lateness)
    );
    let is_slow = source.is_some_and(|source| SLOW_SOURCES.contains(&source)) || cost > SLOW_READING;
    let has_tsc = available.split_whitespace().any(|name| name == "tsc") && source != Some("tsc");
    let finding = match (is_slow, lateness > LATE) {
        (true, _) if has_tsc => Finding::advice("clock", message + "; a faster source is there")
            .fix(format!("echo tsc | sudo tee {FOLDER}/current_clocksource")),
        (true, _) => Finding::advice("clock", message + "; each packet needs a reading, and this source is slow"),
        (_, true) => Finding::advice("clock", message + ", so sending at a steady rate is bursty"),
        _ => Finding::ok("clock", message),
    };
    let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    finding.with("reading_ns", nanos(cost)).with("step_ns", nanos(step)).with("lateness_ns", nanos(lateness))
}

#[cfg(test)]
mod tests {
    use super::super::finding::FindingState;
    use super::*;

    fn judged(source: Option<&str>, available: &str, cost: u64, late: u64) -> Finding {
        let [cost, lateness] = [Duration::from_nanos(cost), Duration::from_micros(late)];
        judge_clock(&Seen { source, available, cost, step: Duration::from_nanos(1), lateness })
    }

    #[test]
    fn a_fast_source_needs_nothing_and_an_unknown_one_is_judged_by_its_speed() {
        for source in [Some("tsc"), Some("arch_sys_counter"), Some("kvm-clock"), None] {
            assert_eq!(judged(source, "tsc hpet acpi_pm", 25, 60).state, FindingState::Ok, "{source:?}");
        }
        assert_eq!(judged(None, "", 2_000, 60).state, FindingState::Advice);
    }

    #[test]
    fn a_slow_source_is_fixed_by_a_faster_one_if_there_is_one() {
        let slow = judged(Some("hpet"), "tsc hpet acpi_pm\n", 900, 60);
        assert_eq!(slow.state, FindingState::Advice);
        assert!(slow.fix.unwrap().starts_with("echo tsc | sudo tee /sys/devices/system/clocksource"));
        assert_eq!(judged(Some("acpi_pm"), "acpi_pm", 900, 60).fix, None);
    }

    #[test]
    fn late_sleeps_are_advice() {
        let late = judged(Some("tsc"), "tsc", 25, 4_000);
        assert!(late.state == FindingState::Advice && late.message.contains("4.00 ms late"), "{}", late.message);
    }

    #[test]
    fn readings_have_a_cost_and_a_step() {
        let (cost, step) = readings(&Clock::start());
        assert!(cost > Duration::ZERO && step <= Duration::from_millis(10), "{cost:?} {step:?}");
    }
}
