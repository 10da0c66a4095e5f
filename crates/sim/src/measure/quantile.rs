//! Summaries of one series of values: quantiles, and the mean over time.

/// A rank this little above a whole number is rounded down: 0.07 · 100 is 7.000000000000001.
const ROUNDING: f64 = 1e-9;

/// The quantile by nearest rank: the smallest of `values` that at least a share `share` of them does not exceed.
///
/// The result is always one of the values; 0 without values. `share` is clamped to 0..=1: 0.5 is the (lower) median,
/// 0.99 the 99th percentile, 0 the smallest and 1 the largest value.
///
/// Source: paper:hyndman-1996, definition 1.
///
/// ```
/// use farhaul_sim::measure::quantile::quantile;
/// let queue = [3.0, 1.0, 4.0, 1.0, 5.0];
/// assert_eq!([quantile(&queue, 0.5), quantile(&queue, 0.99)], [3.0, 5.0]);
/// ```
pub fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (share.clamp(0.0, 1.0) * sorted.len() as f64 - ROUNDING).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0.0)
}

/// The time-weighted mean of a value that changes at instants. Each `(time, value)` holds until the next time, the last
/// one until `end`, all in one unit. Times do not decrease.
///
/// The last value if the total time is zero; 0 without values.
///
/// ```
/// use farhaul_sim::measure::quantile::time_weighted_mean;
/// assert_eq!(time_weighted_mean(&[(0.0, 10.0), (1.0, 0.0)], 4.0), 2.5);
/// ```
pub fn time_weighted_mean(steps: &[(f64, f64)], end: f64) -> f64 {
    let ends = steps.iter().skip(1).map(|&(time, _)| time).chain([end]);
    let (area, time) = steps.iter().zip(ends).fold((0.0, 0.0), |(area, time), (&(begin, value), until)| {
        let lasts = (until.min(end) - begin).max(0.0);
        (area + value * lasts, time + lasts)
    });
    if time > 0.0 { area / time } else { steps.last().map_or(0.0, |&(_, value)| value) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ranks_by_hand() {
        let hundred: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!(
            [0.0, 0.01, 0.5, 0.985, 0.99, 1.0].map(|share| quantile(&hundred, share)),
            [1.0, 1.0, 50.0, 99.0, 99.0, 100.0]
        );
        assert_eq!([0.07, 0.14, 0.55, 0.56].map(|share| quantile(&hundred, share)), [7.0, 14.0, 55.0, 56.0]);
        assert_eq!([quantile(&[7.0], 0.99), quantile(&[7.0], -3.0), quantile(&[7.0], 9.0)], [7.0; 3]);
        assert_eq!(quantile(&[], 0.5), 0.0);
    }

    #[test]
    fn values_that_hold_longer_weigh_more() {
        assert_eq!(time_weighted_mean(&[(0.0, 5.0), (2.0, 1.0), (2.0, 3.0)], 3.0), 13.0 / 3.0);
        assert_eq!(time_weighted_mean(&[(0.0, 5.0), (2.0, 1.0)], 1.0), 5.0, "what comes after the end does not count");
        assert_eq!(time_weighted_mean(&[(4.0, 5.0)], 4.0), 5.0);
        assert_eq!(time_weighted_mean(&[], 4.0), 0.0);
    }

    proptest! {
        #[test]
        fn a_quantile_is_a_value_that_the_share_does_not_exceed(
            values in prop::collection::vec(-1e6..1e6f64, 1..60),
            share in 0.0..=1.0f64,
        ) {
            let quantile = quantile(&values, share);
            prop_assert!(values.contains(&quantile));
            let up_to = values.iter().filter(|value| **value <= quantile).count() as f64;
            let below = values.iter().filter(|value| **value < quantile).count() as f64;
            prop_assert!(up_to >= share * values.len() as f64 - 1e-9);
            prop_assert!(below < (share * values.len() as f64).max(1e-9) + 1e-9);
        }

        #[test]
        fn the_mean_over_time_lies_among_the_values_and_of_equal_steps_is_the_mean(
            values in prop::collection::vec(0.0..1e6f64, 1..40),
        ) {
            let steps: Vec<(f64, f64)> = values.iter().enumerate().map(|(at, &value)| (at as f64, value)).collect();
            let over_time = time_weighted_mean(&steps, values.len() as f64);
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            prop_assert!((over_time - mean).abs() <= 1e-9 * (1.0 + mean));
        }
    }
}
