//! Variation of the throughput of flows.

use crate::measure::interval::{deviation, mean};

/// Stability index: the mean over all flows of their samples' standard deviation divided by their mean, `S = (1/n) Σᵢ
/// (1/Xᵢ) · sqrt( (1/(m−1)) Σₖ (xᵢ(k) − Xᵢ)² )`.
///
/// 0 is best: constant throughput. It has no unit. It depends on the sample length, because longer samples vary less.
/// The UDT papers sample once a second. Flows may have different numbers of samples. A flow with fewer than two samples
/// or a mean of zero counts as constant (0). Without flows the index is 0.
///
/// Source: paper:udt-2007, stability index, after paper:fast-2004.
///
/// ```
/// use farhaul_sim::measure::stability::stability;
/// assert_eq!(stability(&[&[90.0, 100.0, 110.0]]), 0.1);
/// ```
pub fn stability(flows: &[&[f64]]) -> f64 {
    if flows.is_empty() {
        return 0.0;
    }
    flows.iter().map(|samples| variation(samples)).sum::<f64>() / flows.len() as f64
}

/// The standard deviation of one flow's samples divided by their mean.
fn variation(samples: &[f64]) -> f64 {
    let mean = mean(samples);
    if mean <= 0.0 { 0.0 } else { deviation(samples) / mean }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn stability_by_hand() {
        // Deviations of 10 around 100 and of sqrt(2) around 1.
        let both = stability(&[&[90.0, 100.0, 110.0], &[0.0, 2.0]]);
        assert!((both - (0.1 + f64::sqrt(2.0)) / 2.0).abs() < 1e-12);
    }

    #[test]
    fn zero_and_short_flows_count_as_constant() {
        assert_eq!(stability(&[]), 0.0);
        assert_eq!(stability(&[&[], &[7.0], &[0.0, 0.0], &[5.0, 5.0, 5.0]]), 0.0);
    }

    proptest! {
        #[test]
        fn the_index_depends_neither_on_the_unit_nor_on_the_order_of_samples(
            mut samples in prop::collection::vec(0.1..1e6f64, 2..40),
            unit in 1e-3..1e3f64,
        ) {
            let index = stability(&[&samples]);
            prop_assert!(index >= 0.0 && index <= (samples.len() as f64).sqrt() + 1e-9);
            samples.iter_mut().for_each(|sample| *sample *= unit);
            samples.reverse();
            prop_assert!((stability(&[&samples]) - index).abs() < 1e-9 * (1.0 + index));
        }
    }
}
