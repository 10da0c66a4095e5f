//! Round trips of a stream: their mean, deviation and quantiles.

use farhaul_units::Duration;

/// Samples that are kept for quantiles. Beyond, each new one replaces the oldest, so quantiles are those of the latest.
const KEPT: usize = 1 << 16;

/// Delays of a stream.
#[derive(Clone, Debug, Default)]
pub struct Delays {
    count: u64,
    /// Seconds: the mean, and the sum of squared deviations (Welford 1962).
    mean: f64,
    squares: f64,
    samples: Vec<Duration>,
}

impl Delays {
    /// Adds a sample.
    pub fn add(&mut self, sample: Duration) {
        if self.samples.len() < KEPT {
            self.samples.push(sample);
        } else {
            let place = (self.count % KEPT as u64) as usize;
            self.samples[place] = sample;
        }
        self.count += 1;
        let seconds = sample.as_secs_f64();
        let before = seconds - self.mean;
        self.mean += before / self.count as f64;
        self.squares += before * (seconds - self.mean);
    }

    /// Number of samples.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Mean; zero without samples.
    pub fn mean(&self) -> Duration {
        Duration::from_secs_f64(self.mean.max(0.0))
    }

    /// Standard deviation; zero with fewer than two samples.
    pub fn deviation(&self) -> Duration {
        if self.count < 2 {
            return Duration::ZERO;
        }
        Duration::from_secs_f64(libm::sqrt((self.squares / (self.count - 1) as f64).max(0.0)))
    }

    /// Deviation as a share of the mean: the jitter of paper:ornl. Zero without samples.
    pub fn jitter(&self) -> f64 {
        if self.mean > 0.0 { self.deviation().as_secs_f64() / self.mean } else { 0.0 }
    }

    /// The delay that the share `part` of the latest samples does not exceed, 0 to 1; `None` without samples.
    pub fn quantile(&self, part: f64) -> Option<Duration> {
        let mut sorted = self.samples.clone();
        sorted.sort_unstable();
        let last = sorted.len().checked_sub(1)?;
        Some(sorted[((last as f64 * part.clamp(0.0, 1.0)) + 0.5) as usize])
    }

    /// The latest samples, in no order.
    pub fn samples(&self) -> &[Duration] {
        &self.samples
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_deviation_and_quantiles_of_a_few_samples() {
        let mut delays = Delays::default();
        assert_eq!((delays.mean(), delays.deviation(), delays.quantile(0.5)), (Duration::ZERO, Duration::ZERO, None));
        for millis in [10, 12, 14, 16, 18] {
            delays.add(Duration::from_millis(millis));
        }
        assert_eq!(delays.mean(), Duration::from_millis(14));
        assert!((delays.deviation().as_secs_f64() - 0.003_162_277).abs() < 1e-8);
        assert!((delays.jitter() - 0.225_877).abs() < 1e-5);
        let quantiles = [0.0, 0.5, 1.0].map(|part| delays.quantile(part).map(|delay| delay.as_millis()));
        assert_eq!(quantiles, [Some(10), Some(14), Some(18)]);
    }
}
