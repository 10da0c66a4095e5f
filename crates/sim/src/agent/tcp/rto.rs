//! The retransmission timer (paper:rfc6298): RTT samples in, deadlines out.

use farhaul_units::{Duration, Instant};

/// RTO before the first sample.
//= paper:rfc6298 §2 (2.1)
pub(super) const INITIAL: Duration = Duration::from_secs(1);
/// RTO after a retransmitted SYN.
//= paper:rfc6298 §5 (5.7)
const AFTER_RETRANSMITTED_SYN: Duration = Duration::from_secs(3);
/// K: number of mean deviations above the mean.
//= paper:rfc6298 §2 (2.3)
const DEVIATIONS: u64 = 4;
/// Largest exponent of the back-off, independent of the largest time-out. Source: the back-off table of BSD.
const MAX_BACK_OFF: u32 = 6;

/// Bounds and granularity of the retransmission time-out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtoConfig {
    /// The shortest time-out. RFC 6298 uses one second, Linux 200 ms.
    pub min: Duration,
    /// The longest time-out; at least 60 s by RFC 6298.
    pub max: Duration,
    /// G, the clock tick to which RTT samples are rounded. Zero for an exact clock.
    pub tick: Duration,
}

impl Default for RtoConfig {
    /// The bounds of RFC 6298, 1 s and 60 s, and an exact clock.
    fn default() -> Self {
        Self { min: Duration::from_secs(1), max: Duration::from_secs(60), tick: Duration::ZERO }
    }
}

/// Estimates the RTT and holds the single retransmission timer.
#[derive(Clone, Debug)]
pub(super) struct RetransmissionTimer {
    config: RtoConfig,
    /// SRTT and RTTVAR in nanoseconds; `None` before the first sample.
    estimate: Option<(u64, u64)>,
    /// RTO before back-off.
    base: Duration,
    /// Time-outs since the last sample. Each doubles the RTO.
    back_off: u32,
    deadline: Option<Instant>,
}

impl RetransmissionTimer {
    pub(super) fn new(config: RtoConfig) -> Self {
        Self { config, estimate: None, base: INITIAL, back_off: 0, deadline: None }
    }

    /// Takes an RTT sample of data that was sent once. Ends the back-off.
    //= paper:rfc6298 §2 (2.2), (2.3)
    pub(super) fn sample(&mut self, sample: Duration) {
        let sample = self.in_ticks(sample);
        let (mean, deviation) = match self.estimate {
            None => (sample, sample / 2),
            // The deviation first, from the old mean.
            Some((mean, deviation)) => ((7 * mean + sample) / 8, (3 * deviation + mean.abs_diff(sample)) / 4),
        };
        self.estimate = Some((mean, deviation));
        let margin = (DEVIATIONS * deviation).max(nanos(self.config.tick));
        self.base = Duration::from_nanos(mean + margin).clamp(self.config.min, self.config.max);
        self.back_off = 0;
    }

    /// The current time-out.
    pub(super) fn rto(&self) -> Duration {
        self.base.saturating_mul(1 << self.back_off).min(self.config.max)
    }

    /// SRTT and RTTVAR; zero before the first sample.
    pub(super) fn estimate(&self) -> (Duration, Duration) {
        let (mean, deviation) = self.estimate.unwrap_or_default();
        (Duration::from_nanos(mean), Duration::from_nanos(deviation))
    }

    /// Data was sent.
    //= paper:rfc6298 §5 (5.1)
    pub(super) fn start(&mut self, now: Instant) {
        if self.deadline.is_none() {
            self.restart(now);
        }
    }

    /// New data was acknowledged and more is in flight.
    //= paper:rfc6298 §5 (5.3)
    pub(super) fn restart(&mut self, now: Instant) {
        self.deadline = Some(now + self.rto());
    }

    /// Nothing is in flight.
    //= paper:rfc6298 §5 (5.2)
    pub(super) fn stop(&mut self) {
        self.deadline = None;
    }

    /// The timer expired: doubles the time-out.
    //= paper:rfc6298 §5 (5.5), (5.6)
    pub(super) fn back_off(&mut self, now: Instant) {
        self.back_off = (self.back_off + 1).min(MAX_BACK_OFF);
        self.restart(now);
    }

    /// The connection is open after a retransmitted SYN.
    //= paper:rfc6298 §5 (5.7)
    pub(super) fn syn_was_retransmitted(&mut self) {
        (self.base, self.back_off) = (AFTER_RETRANSMITTED_SYN.max(self.config.min), 0);
    }

    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= now)
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// `sample` as measured by a clock with ticks: rounded, and at least one tick.
    fn in_ticks(&self, sample: Duration) -> u64 {
        let (sample, tick) = (nanos(sample), nanos(self.config.tick));
        (sample + tick / 2).checked_div(tick).map_or(sample, |ticks| ticks.max(1) * tick)
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn timer(min: u64, tick: u64) -> RetransmissionTimer {
        RetransmissionTimer::new(RtoConfig { min: millis(min), tick: millis(tick), ..RtoConfig::default() })
    }

    #[test]
    fn the_timeout_follows_samples_by_the_rules_of_rfc_6298() {
        let mut timer = timer(0, 0);
        assert_eq!(timer.rto(), millis(1_000));
        timer.sample(millis(100));
        assert_eq!((timer.estimate(), timer.rto()), ((millis(100), millis(50)), millis(300)));
        timer.sample(millis(180));
        // RTTVAR = 3/4·50 + 1/4·80 = 57.5, SRTT = 7/8·100 + 1/8·180 = 110, RTO = 110 + 4·57.5.
        assert_eq!(timer.estimate(), (millis(110), Duration::from_micros(57_500)));
        assert_eq!(timer.rto(), millis(340));
    }

    #[test]
    fn a_steady_rtt_leads_to_the_minimum_or_a_margin_of_one_tick() {
        for (min, tick, expected) in [(1_000, 0, 1_000), (200, 10, 200), (0, 10, 110)] {
            let mut timer = timer(min, tick);
            (0..100).for_each(|_| timer.sample(millis(100)));
            assert_eq!(timer.rto().as_millis(), expected);
        }
    }

    #[test]
    fn rtt_samples_are_whole_ticks_and_at_least_one() {
        let mut timer = timer(0, 10);
        timer.sample(Duration::from_micros(14_900));
        assert_eq!(timer.estimate().0, millis(10));
        let mut timer = self::timer(0, 10);
        timer.sample(Duration::from_micros(40));
        assert_eq!(timer.estimate().0, millis(10));
    }

    #[test]
    fn timeouts_double_until_a_sample_or_the_maximum() {
        let mut timer = timer(1_000, 0);
        timer.sample(millis(100));
        timer.start(Instant::ZERO);
        let mut waits = Vec::new();
        for _ in 0..7 {
            let now = timer.deadline().unwrap();
            timer.back_off(now);
            waits.push((timer.deadline().unwrap() - now).as_secs());
        }
        assert_eq!(waits, [2, 4, 8, 16, 32, 60, 60]);
        timer.sample(millis(100));
        assert_eq!(timer.rto(), millis(1_000));
    }

    #[test]
    fn a_running_timer_is_not_started_again() {
        let mut timer = timer(1_000, 0);
        timer.start(Instant::ZERO);
        timer.start(Instant::ZERO + millis(500));
        assert_eq!(timer.deadline(), Some(Instant::ZERO + millis(1_000)));
        assert!(!timer.is_due(Instant::ZERO + millis(999)) && timer.is_due(Instant::ZERO + millis(1_000)));
        timer.stop();
        assert_eq!(timer.deadline(), None);
    }

    #[test]
    fn a_retransmitted_syn_sets_the_timeout_to_three_seconds() {
        let mut timer = timer(1_000, 0);
        timer.start(Instant::ZERO);
        timer.back_off(Instant::ZERO + millis(1_000));
        timer.syn_was_retransmitted();
        assert_eq!(timer.rto(), millis(3_000));
    }
}
