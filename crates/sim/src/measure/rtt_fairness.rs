//! What the length of the path makes of a flow's share.

use crate::measure::interval::ratio;

/// RTT fairness: the throughput of a flow with a `long` round trip by that of one with a `short` round trip through the same
/// bottleneck, in one unit.
///
/// 1 if the round trip does not matter; TCP with drop-tail queues is near `RTT_short / RTT_long` to the power 1 to 2. 1 if
/// neither had anything, [`f64::INFINITY`] if only the short one had nothing.
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

/// The largest of several throughputs by the smallest, for flows of many round trips as in paper:udt-2004, figure 6.
///
/// 1 if all are equal, and more otherwise. 1 without flows and if all had nothing, [`f64::INFINITY`] if only some had nothing.
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
