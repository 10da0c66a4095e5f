//! Means of two samples and the significance of their difference.

/// A difference of two means, relative to the second one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Difference {
    pub(super) ours: f64,
    pub(super) theirs: f64,
    /// Relative difference of the means, and half the width of its 95 % interval.
    pub(super) relative: f64,
    pub(super) half_width: f64,
}

impl Difference {
    /// The difference of two samples of the same size, which must not be empty. A single pair has no interval.
    pub(super) fn of(ours: &[f64], theirs: &[f64]) -> Self {
        let error = (variance_of_mean(ours) + variance_of_mean(theirs)).sqrt();
        let freedom = (ours.len() + theirs.len()) as f64 - 2.0;
        let (ours, theirs) = (mean(ours), mean(theirs));
        let half_width = if freedom > 0.0 { quantile(freedom) * error / theirs } else { 0.0 };
        Self { ours, theirs, relative: ours / theirs - 1.0, half_width }
    }

    /// Whether the 95 % interval contains zero.
    pub(super) fn may_be_zero(&self) -> bool {
        self.relative.abs() <= self.half_width
    }
}

fn mean(sample: &[f64]) -> f64 {
    sample.iter().sum::<f64>() / sample.len() as f64
}

fn variance_of_mean(sample: &[f64]) -> f64 {
    let (mean, count) = (mean(sample), sample.len() as f64);
    if count < 2.0 {
        return 0.0;
    }
    sample.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / (count - 1.0) / count
}

/// The 97.5 % point of Student's t with `freedom` degrees of freedom, by the first terms of its series about the normal
/// one. The error is below a thousandth from twenty on.
fn quantile(freedom: f64) -> f64 {
    const NORMAL: f64 = 1.959_964;
    let cubic = NORMAL * NORMAL * NORMAL;
    let first = (cubic + NORMAL) / 4.0;
    let second = (5.0 * cubic * NORMAL * NORMAL + 16.0 * cubic + 3.0 * NORMAL) / 96.0;
    NORMAL + first / freedom + second / (freedom * freedom)
}

/// The median. The sample must not be empty.
pub(super) fn median(sample: &[f64]) -> f64 {
    let mut sorted = sample.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len().is_multiple_of(2) { (sorted[middle - 1] + sorted[middle]) / 2.0 } else { sorted[middle] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (freedom, expected) in [(20.0, 2.086), (38.0, 2.024), (118.0, 1.980)] {
            assert!((quantile(freedom) - expected).abs() < 0.002, "{freedom}");
        }
    }

    #[test]
    fn the_interval_is_that_of_two_means() {
        let difference = Difference::of(&[11.0, 13.0], &[9.0, 11.0]);
        assert_eq!((difference.ours, difference.theirs), (12.0, 10.0));
        assert!((difference.relative - 0.2).abs() < 1e-12);
        // Each mean has a variance of 1, their difference a deviation of √2.
        let expected = quantile(2.0) * 2.0f64.sqrt() / 10.0;
        assert!((difference.half_width - expected).abs() < 1e-12);
        assert!(difference.may_be_zero());
        assert!(!Difference::of(&[12.0], &[10.0]).may_be_zero(), "a single pair has no interval");
    }

    #[test]
    fn medians() {
        assert_eq!((median(&[3.0, 1.0, 2.0]), median(&[4.0, 1.0])), (2.0, 2.5));
    }
}
