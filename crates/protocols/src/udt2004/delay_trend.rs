//! Whether the RTT grows: Pathload's two tests over the last sixteen raw samples (paper:udt-2004 §3.5.2).
//!
//! ```text
//! PCT = share of the samples that exceed the one before
//! PDT = (newest − oldest) / Σ |sample − the one before|
//! growing:  PCT > 0.66 and PDT > 0.45,  or  PCT > 0.54 and PDT > 0.55
//! ```

use farhaul_units::Duration;

/// Samples kept. Source: paper §3.5.2.
const WINDOW: usize = 16;
/// Thresholds of PCT and PDT. One pair must be exceeded. The paper names only the method.
///
/// Source: release 1 of UDT, which combines Pathload's "increasing" of one test with its "ambiguous" of the other.
const THRESHOLDS: [(f64, f64); 2] = [(0.66, 0.45), (0.54, 0.55)];

/// The last raw RTT samples.
#[derive(Clone, Debug, Default)]
pub(super) struct DelayTrend {
    /// Nanoseconds. The newest overwrites the oldest.
    samples: [u64; WINDOW],
    seen: usize,
}

impl DelayTrend {
    /// Adds one raw sample.
    pub(super) fn on_sample(&mut self, sample: Duration) {
        self.samples[self.seen % WINDOW] = sample.as_nanos() as u64;
        self.seen += 1;
    }

    /// Whether the delay grows. Always false before sixteen samples.
    pub(super) fn is_increasing(&self) -> bool {
        if self.seen < WINDOW {
            return false;
        }
        let (mut rises, mut distance) = (0u32, 0u64);
        let at = |index: usize| self.samples[(self.seen + index) % WINDOW];
        for index in 1..WINDOW {
            let (before, after) = (at(index - 1), at(index));
            rises += u32::from(after > before);
            distance += after.abs_diff(before);
        }
        let (oldest, newest) = (at(0), at(WINDOW - 1));
        if newest <= oldest {
            return false;
        }
        let pct = f64::from(rises) / (WINDOW - 1) as f64;
        let pdt = (newest - oldest) as f64 / distance as f64;
        THRESHOLDS.iter().any(|&(least_pct, least_pdt)| pct > least_pct && pdt > least_pdt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether these samples in microseconds have an increasing trend.
    fn grows(micros: impl IntoIterator<Item = u64>) -> bool {
        let mut trend = DelayTrend::default();
        micros.into_iter().for_each(|micros| trend.on_sample(Duration::from_micros(micros)));
        trend.is_increasing()
    }

    #[test]
    fn a_filling_queue_is_an_increase_and_a_steady_or_emptying_one_is_not() {
        assert!(grows((0..16).map(|n| 10_000 + 50 * n)));
        assert!(!grows([10_000; 16]));
        assert!(!grows((0..16).map(|n| 20_000 - 50 * n)));
        assert!(!grows((0..15).map(|n| 10_000 + 50 * n)), "fifteen samples are too few");
        assert!(grows([30_000; 20].into_iter().chain((0..16).map(|n| 10_000 + 50 * n))), "older ones do not count");
    }

    #[test]
    fn noise_is_no_increase() {
        // Up and down alternately: half of the samples rise, without a net change.
        assert!(!grows((0..16).map(|n| 10_000 + 500 * (n % 2))));
        // One jump, otherwise level: PDT is 1, but only one sample in fifteen rises.
        assert!(!grows((0..16).map(|n| if n < 8 { 10_000 } else { 12_000 })));
    }

    /// Steps of +10 µs, with `down` steps of −10 µs among them. PCT and PDT follow by counting.
    #[test]
    fn the_thresholds_are_those_of_pathload() {
        let walk = |ups: usize, downs: usize, down: u64| {
            let mut at = 100_000;
            let mut samples = vec![at];
            let mut steps = vec![true; ups];
            steps.extend(vec![false; downs]);
            for up in steps {
                at = if up { at + 10 } else { at - down };
                samples.push(at);
            }
            grows(samples)
        };
        // 10/15 rise: PCT 0.667. Distance 100 + 5·down; PDT (100 − 5·down)/(100 + 5·down) is 0.48 at 7 and 0.43 at 8.
        assert!(walk(10, 5, 7));
        assert!(!walk(10, 5, 8));
        // 9/15 rise: PCT 0.6 needs PDT > 0.55: (90 − 6·down)/(90 + 6·down) is 0.58 at 4 and 0.5 at 5.
        assert!(walk(9, 6, 4));
        assert!(!walk(9, 6, 5));
        // 8/15 rise: PCT 0.533 is never enough.
        assert!(!walk(8, 7, 1));
    }
}
