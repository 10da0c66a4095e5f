//! How much later than the path requires an emulator released packets.

use farhaul_units::Duration;

/// Buckets per power of two, which makes quantiles accurate to an eighth.
const STEPS: u64 = 8;
const STEP_BITS: u32 = STEPS.ilog2();

/// Buckets for every lateness in 64 bits of nanoseconds.
const BUCKETS: usize = ((u64::BITS - STEP_BITS + 1) as usize) * STEPS as usize;

/// A histogram with logarithmic buckets, in fixed memory.
#[derive(Clone, Debug)]
pub(crate) struct Lateness {
    counts: Box<[u64; BUCKETS]>,
    samples: u64,
    max: u64,
}

/// How much later than the path requires packets left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LatenessReport {
    /// Number of packets measured.
    pub samples: u64,
    /// The median.
    pub p50: Duration,
    /// The 99th percentile.
    pub p99: Duration,
    /// The maximum.
    pub max: Duration,
}

impl Lateness {
    pub(crate) fn new() -> Self {
        Self { counts: Box::new([0; BUCKETS]), samples: 0, max: 0 }
    }

    /// Counts one packet that was late by `lateness`.
    pub(crate) fn record(&mut self, lateness: Duration) {
        let nanos = u64::try_from(lateness.as_nanos()).unwrap_or(u64::MAX);
        self.counts[bucket(nanos)] += 1;
        self.samples += 1;
        self.max = self.max.max(nanos);
    }

    pub(crate) fn report(&self) -> LatenessReport {
        LatenessReport {
            samples: self.samples,
            p50: self.quantile(50),
            p99: self.quantile(99),
            max: Duration::from_nanos(self.max),
        }
    }

    /// The upper edge of the bucket that contains the given percentage of all samples.
    fn quantile(&self, percent: u64) -> Duration {
        let wanted = (self.samples * percent).div_ceil(100);
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return Duration::from_nanos(upper_edge(index).min(self.max));
            }
        }
        Duration::from_nanos(self.max)
    }
}

/// Values below [`STEPS`] have one bucket each. Above, the leading bit and the three bits behind it choose the bucket.
fn bucket(nanos: u64) -> usize {
    if nanos < STEPS {
        return nanos as usize;
    }
    let shift = nanos.ilog2() - STEP_BITS;
    (u64::from(shift) * STEPS + (nanos >> shift)) as usize
}

/// The largest value of a bucket.
fn upper_edge(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < STEPS {
        return bucket;
    }
    let shift = bucket / STEPS - 1;
    let first = (bucket % STEPS + STEPS) << shift;
    first + ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nothing_measured_is_no_lateness() {
        assert_eq!(Lateness::new().report(), LatenessReport::default());
    }

    #[test]
    fn one_in_a_hundred_does_not_show_in_the_quantile_but_in_the_maximum() {
        let mut lateness = Lateness::new();
        (0..990).for_each(|_| lateness.record(Duration::from_micros(50)));
        (0..10).for_each(|_| lateness.record(Duration::from_millis(7)));
        let report = lateness.report();
        assert_eq!(report.max, Duration::from_millis(7));
        assert!((50_000..57_000).contains(&report.p99.as_nanos()), "{report:?}");
    }

    proptest! {
        #[test]
        fn a_value_lies_in_its_bucket_and_the_bucket_is_narrow(nanos: u64) {
            let edge = upper_edge(bucket(nanos));
            prop_assert!(edge >= nanos && edge - nanos <= nanos / STEPS);
            prop_assert!(nanos == edge || bucket(edge) == bucket(nanos));
        }
    }
}
