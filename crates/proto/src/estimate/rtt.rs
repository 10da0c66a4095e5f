//! RTT: smoothed, its deviation, and its recent minimum.

use farhaul_units::{Duration, Instant};

/// RTT before any sample. Source: libudt 4.11, §1 of the algorithms sheet.
const INITIAL: Duration = Duration::from_millis(100);
/// Samples outside this range are lies or accidents (attack B9).
const PLAUSIBLE: std::ops::RangeInclusive<Duration> = Duration::from_nanos(500)..=Duration::from_secs(60);
/// How long a minimum counts: long enough to outlive a queue, short enough to follow a route change.
const MIN_WINDOW: Duration = Duration::from_secs(10);

/// RTT estimate with UDT's filter.
#[derive(Clone, Copy, Debug)]
pub struct Rtt {
    smoothed: Duration,
    variation: Duration,
    latest: Option<Duration>,
    /// The peer's last report.
    reported: Option<Duration>,
    /// Minimum of the present window and of the one before. A window begins with its first sample.
    min: Option<Duration>,
    previous_min: Option<Duration>,
    window_end: Instant,
    /// Minimum of all samples; zero without one.
    least: Duration,
}

impl Default for Rtt {
    /// Without a sample.
    fn default() -> Self {
        Self {
            smoothed: INITIAL,
            variation: Duration::from_millis(50),
            latest: None,
            reported: None,
            min: None,
            previous_min: None,
            window_end: Instant::ZERO,
            least: Duration::ZERO,
        }
    }
}

impl Rtt {
    /// Adds a sample measured by this side. Returns whether it was plausible.
    pub fn sample(&mut self, sample: Duration, now: Instant) -> bool {
        self.smooth(sample) && {
            self.note_minimum(sample, now);
            true
        }
    }

    /// Stores the peer's own estimate.
    pub fn note_reported(&mut self, reported: Duration) {
        self.reported = Some(reported).filter(|reported| PLAUSIBLE.contains(reported)).or(self.reported);
    }

    /// Adds an estimate reported by the peer and returns whether it was plausible. It counts for the minimum only while
    /// this side has no sample. A peer that started with a wrong guess may report too little for a while.
    pub fn report(&mut self, reported: Duration, now: Instant) -> bool {
        self.smooth(reported) && {
            if self.min().is_none() {
                self.note_minimum(reported, now);
            }
            true
        }
    }

    fn smooth(&mut self, sample: Duration) -> bool {
        if !PLAUSIBLE.contains(&sample) {
            return false;
        }
        if self.latest.is_none() {
            self.smoothed = sample;
            self.variation = sample / 2;
        } else {
            self.variation = (self.variation * 3 + self.smoothed.abs_diff(sample)) / 4;
            self.smoothed = (self.smoothed * 7 + sample) / 8;
        }
        self.latest = Some(sample);
        true
    }

    fn note_minimum(&mut self, sample: Duration, now: Instant) {
        self.least = if self.min().is_none() { sample } else { self.least.min(sample) };
        if now >= self.window_end {
            self.previous_min = self.min.take();
            self.window_end = now + MIN_WINDOW;
        }
        self.min = Some(self.min.map_or(sample, |min| min.min(sample)));
    }

    /// The smoothed RTT, or the assumed one before the first sample.
    pub const fn smoothed(&self) -> Duration {
        self.smoothed
    }

    /// The mean deviation of the samples from it.
    pub const fn variation(&self) -> Duration {
        self.variation
    }

    /// The last sample.
    pub const fn latest(&self) -> Option<Duration> {
        self.latest
    }

    /// The peer's last report.
    pub const fn reported(&self) -> Option<Duration> {
        self.reported
    }

    /// Minimum of the last ten to twenty seconds with samples: of the present window and of the one before.
    ///
    /// A pause ends no window. After one, the earlier minimum counts for up to ten more seconds.
    pub fn min(&self) -> Option<Duration> {
        match (self.min, self.previous_min) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Minimum of all samples: a lower bound of any answer, even if a queue has stood for long. Zero without a sample.
    pub(crate) const fn least(&self) -> Duration {
        self.least
    }

    /// Smoothed RTT plus four deviations: the longest time until an answer.
    pub fn with_margin(&self) -> Duration {
        self.smoothed + self.variation * 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sample_replaces_the_initial_value_and_later_ones_are_smoothed() {
        let mut rtt = Rtt::default();
        assert_eq!(rtt.with_margin(), Duration::from_millis(300));
        assert!(rtt.sample(Duration::from_millis(8), Instant::ZERO));
        assert_eq!((rtt.smoothed(), rtt.variation()), (Duration::from_millis(8), Duration::from_millis(4)));
        rtt.sample(Duration::from_millis(16), Instant::ZERO);
        assert_eq!((rtt.smoothed(), rtt.variation()), (Duration::from_millis(9), Duration::from_millis(5)));
    }

    #[test]
    fn implausible_samples_change_nothing() {
        let mut rtt = Rtt::default();
        assert!(!rtt.sample(Duration::ZERO, Instant::ZERO));
        assert!(!rtt.sample(Duration::from_secs(61), Instant::ZERO));
        rtt.note_reported(Duration::ZERO);
        assert_eq!(rtt.reported(), None);
        assert_eq!(rtt.smoothed(), INITIAL);
    }

    #[test]
    fn an_old_minimum_expires() {
        let mut rtt = Rtt::default();
        rtt.sample(Duration::from_millis(10), Instant::ZERO);
        for second in 1..40 {
            rtt.sample(Duration::from_millis(50), Instant::ZERO + Duration::from_secs(second));
        }
        assert_eq!(rtt.min(), Some(Duration::from_millis(50)));
        assert_eq!(rtt.least(), Duration::from_millis(10));
    }
}
