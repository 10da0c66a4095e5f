//! The alarm of a port that gets many forged datagrams.

use std::time::Duration;

use farhaul_units::Instant;

/// Invalid datagrams a second from which somebody guesses or floods. Late packets of ended connections come more slowly, for
/// seconds.
const MANY: u64 = 10_000;
/// Time in which there is one alarm at most.
const SILENCE: Duration = Duration::from_secs(60);

/// Looks at the invalid datagrams of a port.
#[derive(Debug, Default)]
pub(super) struct Alarm {
    seen: Option<(Instant, u64)>,
    rung: Option<Instant>,
}

impl Alarm {
    /// Takes the number of invalid datagrams so far. Returns those of a second since the last look, if they are an alarm.
    pub(super) fn look(&mut self, now: Instant, total: u64) -> Option<u64> {
        let (since, before) = self.seen.replace((now, total))?;
        let seconds = (now - since).as_secs_f64();
        let rate = total.saturating_sub(before) as f64 / seconds.max(f64::MIN_POSITIVE);
        if rate <= MANY as f64 || self.rung.is_some_and(|rung| now - rung < SILENCE) {
            return None;
        }
        self.rung = Some(now);
        Some(rate as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn an_alarm_rings_above_its_rate_and_at_most_once_a_minute() {
        let mut alarm = Alarm::default();
        let mut total = 1_000_000;
        assert_eq!(alarm.look(at(0), total), None, "what was before the first look");
        total += 10_000;
        assert_eq!(alarm.look(at(1), total), None);
        let mut rings = Vec::new();
        for second in 2..=200 {
            total += 20_000;
            rings.extend(alarm.look(at(second), total).map(|rate| (second, rate)));
        }
        assert_eq!(rings, [(2, 20_000), (62, 20_000), (122, 20_000), (182, 20_000)]);
        assert_eq!(alarm.look(at(300), total + 100_000), None, "1000 a second");
    }
}
