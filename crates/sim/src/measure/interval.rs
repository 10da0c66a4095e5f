//! Mean and 95 % confidence interval over runs with different seeds.
//!
//! ```text
//! x̄ ± t(n − 1) · s/√n                                                        (1)
//! ```
//!
//! Runs must be independent: one seed each. `t(ν)` is the 0.975 quantile of Student's distribution with ν degrees of
//! freedom. Source: paper:student-1908.

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

/// A mean with its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The centre.
    pub mean: f64,
    /// Distance from the centre to either end. Zero if all values are equal, [`f64::INFINITY`] with fewer than two
    /// values.
    pub half_width: f64,
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

/// The 0.975 quantile of Student's t with `freedom` degrees of freedom; infinite below one. Interpolation between the
/// rows of the table is linear in 1/freedom, which gives slightly too wide intervals.
fn student(freedom: f64) -> f64 {
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
    fn too_few_values_give_an_infinite_width_and_equal_ones_a_width_of_zero() {
        assert_eq!(mean_interval(&[]), Interval { mean: 0.0, half_width: f64::INFINITY });
        assert_eq!(mean_interval(&[7.0]), Interval { mean: 7.0, half_width: f64::INFINITY });
        assert_eq!(mean_interval(&[7.0, 7.0]), Interval { mean: 7.0, half_width: 0.0 });
        assert_eq!((mean(&[]), deviation(&[]), deviation(&[3.0])), (0.0, 0.0, 0.0));
        assert_eq!([student(0.0), student(f64::NAN)], [f64::INFINITY; 2]);
    }

    /// Sums of twelve uniform numbers are nearly normal.
    fn normal(rng: &mut Rng) -> f64 {
        (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0
    }

    #[test]
    fn about_95_of_100_intervals_contain_what_they_estimate() {
        let mut rng = Rng::new(1);
        let mut hits = 0;
        for _ in 0..4_000 {
            let values: Vec<f64> = (0..5).map(|_| 10.0 + normal(&mut rng)).collect();
            let interval = mean_interval(&values);
            hits += u32::from((interval.mean - 10.0).abs() <= interval.half_width);
        }
        // 3800 ± three deviations of 13.8.
        assert!((3_758..=3_842).contains(&hits), "{hits}");
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
    }
}
