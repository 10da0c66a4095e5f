//! The effect of a flow's RTT on its share.

use crate::measure::interval::ratio;

/// RTT fairness: the throughput of a flow with a `long` RTT divided by that of one with a `short` RTT. Both pass the
/// same bottleneck and have one unit.
///
/// The ratio is 1 if the RTT has no effect. With TCP and drop-tail queues it is near `RTT_short / RTT_long` to the
/// power 1 to 2. It is 1 if both throughputs are zero, and [`f64::INFINITY`] if only the `short` one is.
///
/// Source: paper:udt-2007, RTT fairness; the exponents: paper:lakshman-1997.
///
/// ```
/// use farhaul_sim::measure::rtt_fairness::rtt_fairness;
/// assert_eq!(rtt_fairness(45.0, 50.0), 0.9);
/// ```
pub fn rtt_fairness(long: f64, short: f64) -> f64 {
    ratio(long, short)
}

/// The largest of several throughputs divided by the smallest, for flows with many RTTs as in paper:udt-2004, figure 6.
///
/// 1 if all are equal, without flows, and if all are zero. [`f64::INFINITY`] if only some are zero.
pub fn spread(throughputs: &[f64]) -> f64 {
    let largest = throughputs.iter().copied().fold(0.0, f64::max);
    let smallest = throughputs.iter().copied().fold(f64::INFINITY, f64::min).min(largest);
    ratio(largest, smallest)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ratios_by_hand() {
        assert_eq!(spread(&[10.0, 20.0, 15.0]), 2.0);
        assert_eq!([spread(&[]), spread(&[0.0, 0.0]), spread(&[7.0])], [1.0; 3]);
        assert_eq!([spread(&[0.0, 1.0]), rtt_fairness(1.0, 0.0)], [f64::INFINITY; 2]);
        assert_eq!([rtt_fairness(0.0, 0.0), rtt_fairness(0.0, 5.0)], [1.0, 0.0]);
    }

    proptest! {
        #[test]
        fn the_other_way_round_is_the_inverse_and_the_spread_of_two_is_the_larger(
            one in 1e-6..1e9f64,
            other in 1e-6..1e9f64,
        ) {
            let ratio = rtt_fairness(one, other);
            prop_assert!((ratio * rtt_fairness(other, one) - 1.0).abs() < 1e-12);
            prop_assert_eq!(spread(&[one, other]), ratio.max(rtt_fairness(other, one)));
        }
    }
}
