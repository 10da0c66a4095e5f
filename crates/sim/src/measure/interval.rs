//! Mean and 95 % confidence interval over runs with different seeds, and of the difference between two sets of runs.
//!
//! ```text
//! of a mean:        x̄ ± t(n − 1) · s/√n                                                        (1)
//! of a difference:  x̄ − ȳ ± t(ν) · √(a + b),  a = s²ₓ/n, b = s²ᵧ/m,
//!                   ν = (a + b)² / (a²/(n − 1) + b²/(m − 1))                                   (2)
//! ```
//!
//! Runs must be independent: one seed each. `t(ν)` is the 0.975 quantile of Student's distribution with ν degrees of
//! freedom. Source of (1): paper:student-1908; of (2): paper:welch-1947.

/// 0.975 quantiles of Student's t with 1 to 30 degrees of freedom. Source: NIST/SEMATECH e-Handbook of Statistical
/// Methods, §1.3.6.7.2.
const QUANTILES: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, //
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, //
    2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];
/// The same quantiles for more degrees of freedom. The last is that of the normal distribution. Same source.
const MORE_QUANTILES: [(f64, f64); 5] =
    [(30.0, 2.042), (40.0, 2.021), (60.0, 2.000), (120.0, 1.980), (f64::INFINITY, 1.960)];

/// A mean, or a difference of means, with its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The centre.
    pub mean: f64,
    /// Distance from the centre to either end. Zero if all values are equal, [`f64::INFINITY`] with fewer than two
    /// values.
    pub half_width: f64,
}

impl Interval {
    /// The lower end.
    pub fn low(&self) -> f64 {
        self.mean - self.half_width
    }

    /// The upper end.
    pub fn high(&self) -> f64 {
        self.mean + self.half_width
    }

    /// Whether `value` lies inside, ends included.
    pub fn contains(&self, value: f64) -> bool {
        (self.low()..=self.high()).contains(&value)
    }
}

/// The mean; 0 for an empty slice.
pub fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// The standard deviation of a sample, with n − 1 in the denominator; 0 with fewer than two values.
pub fn deviation(values: &[f64]) -> f64 {
    variance(values).sqrt()
}

/// The mean of `values` with its interval, (1). The half width is infinite with fewer than two values. The mean of an
/// empty slice is 0.
///
/// ```
/// use farhaul_sim::measure::interval::mean_interval;
/// let runs = mean_interval(&[98.0, 100.0, 102.0]);
/// // s = 2, and 4.303 · 2/√3 = 4.97.
/// assert_eq!((runs.mean, (runs.half_width * 100.0).round()), (100.0, 497.0));
/// ```
pub fn mean_interval(values: &[f64]) -> Interval {
    let runs = values.len() as f64;
    let half_width = match values.len() {
        0 | 1 => f64::INFINITY,
        _ => student(runs - 1.0) * (variance(values) / runs).sqrt(),
    };
    Interval { mean: mean(values), half_width }
}

/// The mean of `values` minus that of `others` with its interval, (2). The two may differ in variance and in number.
/// The interval contains 0 if the runs show no difference. The half width is infinite if either has fewer than two
/// values.
pub fn difference_interval(values: &[f64], others: &[f64]) -> Interval {
    let difference = mean(values) - mean(others);
    if values.len() < 2 || others.len() < 2 {
        return Interval { mean: difference, half_width: f64::INFINITY };
    }
    let [one, other] = [values, others].map(|values| variance(values) / values.len() as f64);
    let both = one + other;
    if both <= 0.0 {
        return Interval { mean: difference, half_width: 0.0 };
    }
    // Divided by the sum, so that squares do not underflow.
    let [one, other] = [one / both, other / both];
    let freedom = 1.0 / (one * one / (values.len() as f64 - 1.0) + other * other / (others.len() as f64 - 1.0));
    Interval { mean: difference, half_width: student(freedom) * both.sqrt() }
}

/// The mean of `values[i] − others[i]` with its interval, (1), for pairs of runs with the same seed.
///
/// A seed gives both runs of a pair much the same losses. Their common variation cancels out, so far fewer runs show a
/// difference. Values without a partner are ignored.
pub fn paired_interval(values: &[f64], others: &[f64]) -> Interval {
    let differences: Vec<f64> = values.iter().zip(others).map(|(value, other)| value - other).collect();
    mean_interval(&differences)
}

/// The 0.975 quantile of Student's t with `freedom` degrees of freedom; infinite below one. Interpolation between the
/// rows of the table is linear in 1/freedom, which gives slightly too wide intervals.
pub fn student(freedom: f64) -> f64 {
    if freedom.is_nan() || freedom < 1.0 {
        return f64::INFINITY;
    }
    let few = (1..).map(f64::from).zip(QUANTILES);
    let rows = few.chain(MORE_QUANTILES.into_iter().skip(1));
    let mut below = (1.0, QUANTILES[0]);
    for above in rows {
        if freedom <= above.0 {
            return interpolate(below, above, freedom);
        }
        below = above;
    }
    MORE_QUANTILES[MORE_QUANTILES.len() - 1].1
}

/// The value at `freedom` between two rows.
fn interpolate(below: (f64, f64), above: (f64, f64), freedom: f64) -> f64 {
    let (from, to) = (1.0 / below.0, 1.0 / above.0);
    if from <= to {
        return above.1;
    }
    let share = (1.0 / freedom - to) / (from - to);
    above.1 + (below.1 - above.1) * share
}

/// The quotient; 1 if both are zero, infinite if only the divisor is.
pub(super) fn ratio(one: f64, other: f64) -> f64 {
    match (one <= 0.0, other <= 0.0) {
        (true, true) => 1.0,
        (false, true) => f64::INFINITY,
        _ => one / other,
    }
}

fn variance(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let mean = mean(values);
    values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / (values.len() as f64 - 1.0)
}

#[cfg(test)]
mod tests {
    use farhaul_units::Rng;
    use proptest::prelude::*;

    use super::*;

    fn close(left: f64, right: f64) -> bool {
        (left - right).abs() <= 1e-9 * (1.0 + right.abs())
    }

    #[test]
    fn the_table_agrees_with_the_distributions_that_have_closed_forms() {
        // One degree of freedom is the Cauchy distribution: tan(0.475·π). Two: 0.95·√(2/(1 − 0.95²)).
        assert!((student(1.0) - libm_free_tangent()).abs() < 5e-4);
        assert!((student(2.0) - 0.95 * (2.0 / (1.0 - 0.95 * 0.95_f64)).sqrt()).abs() < 5e-4);
        assert!(close(student(f64::INFINITY), 1.96) && close(student(1e12), 1.96));
    }

    /// tan(0.475·π) = 1/tan(π/40), from the series of the tangent.
    fn libm_free_tangent() -> f64 {
        let x = std::f64::consts::PI / 40.0;
        1.0 / (x + x * x * x / 3.0 + 2.0 * x * x * x * x * x / 15.0)
    }

    #[test]
    fn the_quantile_falls_and_between_rows_is_a_little_too_large() {
        let mut last = student(1.0);
        for tenth in 11..3_000 {
            let now = student(f64::from(tenth) / 10.0);
            assert!(now <= last && now >= 1.96, "{tenth}");
            last = now;
        }
        // Exact values by numerical integration.
        for (freedom, exact) in
            [(1.5, 6.0167), (2.5, 3.5747), (4.5, 2.6589), (10.5, 2.2138), (50.0, 2.0086), (200.0, 1.9719)]
        {
            let ours = student(freedom);
            assert!(ours > exact - 1e-3 && ours < exact * if freedom < 2.0 { 1.2 } else { 1.03 }, "{freedom}: {ours}");
        }
    }

    #[test]
    fn a_difference_by_hand() {
        // Variances 1 and 4, of 3 and 4 values: a = 1/3, b = 1, ν = (4/3)²/(1/18 + 1/3) = 32/7.
        let [one, other] = [[9.0, 10.0, 11.0].as_slice(), &[4.0 - 6.0_f64.sqrt(), 4.0, 4.0, 4.0 + 6.0_f64.sqrt()]];
        assert!(close(variance(one), 1.0) && close(variance(other), 4.0));
        let interval = difference_interval(one, other);
        assert!(close(interval.mean, 6.0));
        assert!(close(interval.half_width, student(32.0 / 7.0) * (4.0_f64 / 3.0).sqrt()));
        assert!(!interval.contains(0.0) && interval.contains(6.0) && interval.contains(interval.low()));
    }

    #[test]
    fn too_few_values_give_an_infinite_width_and_equal_ones_a_width_of_zero() {
        assert_eq!(mean_interval(&[]), Interval { mean: 0.0, half_width: f64::INFINITY });
        assert_eq!(mean_interval(&[7.0]), Interval { mean: 7.0, half_width: f64::INFINITY });
        assert_eq!(mean_interval(&[7.0, 7.0]), Interval { mean: 7.0, half_width: 0.0 });
        assert_eq!(difference_interval(&[7.0], &[5.0, 6.0]), Interval { mean: 1.5, half_width: f64::INFINITY });
        assert_eq!(difference_interval(&[7.0; 3], &[5.0; 2]), Interval { mean: 2.0, half_width: 0.0 });
        assert_eq!((mean(&[]), deviation(&[]), deviation(&[3.0])), (0.0, 0.0, 0.0));
        assert_eq!([student(0.0), student(f64::NAN)], [f64::INFINITY; 2]);
    }

    #[test]
    fn pairs_show_a_difference_that_variance_hides() {
        let (values, others) = ([10.0, 21.0, 29.0], [8.0, 20.0, 26.0]);
        let paired = paired_interval(&values, &others);
        // Differences 2, 1 and 3: s = 1.
        assert!(close(paired.mean, 2.0) && close(paired.half_width, 4.303 / 3.0_f64.sqrt()));
        assert!(difference_interval(&values, &others).half_width > 5.0 * paired.half_width);
    }

    /// Sums of twelve uniform numbers are nearly normal.
    fn normal(rng: &mut Rng) -> f64 {
        (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0
    }

    #[test]
    fn about_95_of_100_intervals_contain_what_they_estimate() {
        let mut rng = Rng::new(1);
        let mut hits = [0; 2];
        for _ in 0..4_000 {
            let one: Vec<f64> = (0..5).map(|_| 10.0 + normal(&mut rng)).collect();
            let other: Vec<f64> = (0..8).map(|_| 10.0 + 3.0 * normal(&mut rng)).collect();
            hits[0] += u32::from(mean_interval(&one).contains(10.0));
            hits[1] += u32::from(difference_interval(&one, &other).contains(0.0));
        }
        // 3800 ± three deviations of 13.8.
        assert!(hits.iter().all(|hits| (3_758..=3_842).contains(hits)), "{hits:?}");
    }

    proptest! {
        #[test]
        fn intervals_move_and_scale_with_their_values(
            values in prop::collection::vec(-1e3..1e3f64, 2..20),
            shift in -1e3..1e3f64,
            unit in 0.1..10.0f64,
        ) {
            let before = mean_interval(&values);
            let moved: Vec<f64> = values.iter().map(|value| value * unit + shift).collect();
            let after = mean_interval(&moved);
            prop_assert!((after.mean - (before.mean * unit + shift)).abs() < 1e-6);
            prop_assert!((after.half_width - before.half_width * unit).abs() < 1e-6);
        }

        #[test]
        fn the_difference_the_other_way_round_is_the_negative(
            values in prop::collection::vec(-1e3..1e3f64, 2..20),
            others in prop::collection::vec(-1e3..1e3f64, 2..20),
        ) {
            let (one, other) = (difference_interval(&values, &others), difference_interval(&others, &values));
            prop_assert!((one.mean + other.mean).abs() < 1e-9 && (one.half_width - other.half_width).abs() < 1e-9);
        }
    }
}
