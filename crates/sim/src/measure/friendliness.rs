//! The effect of other flows on TCP.

use crate::measure::interval::{mean, ratio};

/// TCP friendliness: `T = mean(y) / mean(z)`. The throughputs `y` are those of n TCP flows `beside` m other flows. The
/// throughputs `z` are those of m + n TCP flows `alone` on the same path.
///
/// 1 is ideal: the other flows take as much as the same number of TCP flows would. Above 1 they take less, below 1
/// more. It has no unit. It is 1 if both means are zero, and [`f64::INFINITY`] if only the mean of `alone` is zero.
///
/// Source: paper:udt-2007, friendliness index. With `z` of the same n flows alone it is the ratio S/I of
/// paper:udt-2004, figure 17.
///
/// ```
/// use farhaul_sim::measure::friendliness::friendliness;
/// assert_eq!(friendliness(&[10.0, 20.0], &[30.0, 30.0, 30.0]), 0.5);
/// ```
pub fn friendliness(beside: &[f64], alone: &[f64]) -> f64 {
    ratio(mean(beside), mean(alone))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn zero_throughput_on_both_sides_is_friendly() {
        assert_eq!(friendliness(&[], &[]), 1.0);
        assert_eq!(friendliness(&[0.0], &[0.0, 0.0]), 1.0);
        assert_eq!(friendliness(&[0.0], &[10.0]), 0.0);
        assert_eq!(friendliness(&[1.0], &[0.0]), f64::INFINITY);
    }

    proptest! {
        #[test]
        fn equal_means_give_one_in_any_unit(
            each in 1e-3..1e9f64,
            flows in 1..20usize,
            others in 1..20usize,
            unit in 1e-3..1e3f64,
        ) {
            let (beside, alone) = (vec![each * unit; flows], vec![each; flows + others]);
            prop_assert!((friendliness(&beside, &alone) / unit - 1.0).abs() < 1e-9);
        }
    }
}
