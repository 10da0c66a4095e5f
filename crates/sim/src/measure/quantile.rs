//! Quantiles of a series of values.

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
    }
}
