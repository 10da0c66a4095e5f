//! Fairness between flows.

/// Jain's index of the throughputs `X` of `n` flows: `(Σ X)² / (n · Σ X²)`.
///
/// It ranges from `1/n`, when one flow has everything, to 1, when all are equal, and has no unit. It is 1 for no flow
/// and if all throughputs are zero. Throughputs are finite and not negative.
///
/// Source: paper:jain-1984.
///
/// ```
/// use farhaul_sim::measure::fairness::jain;
/// assert_eq!(jain(&[10.0, 10.0, 10.0]), 1.0);
/// assert_eq!(jain(&[30.0, 0.0, 0.0]), 1.0 / 3.0);
/// ```
pub fn jain(throughputs: &[f64]) -> f64 {
    // Scaled by the largest, so that squares neither overflow nor underflow.
    let largest = throughputs.iter().copied().fold(0.0, f64::max);
    if largest <= 0.0 {
        return 1.0;
    }
    let (sum, squares) = throughputs.iter().fold((0.0, 0.0), |(sum, squares), throughput| {
        let share = throughput / largest;
        (sum + share, squares + share * share)
    });
    sum * sum / (throughputs.len() as f64 * squares)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn jain_by_hand() {
        // (10 + 20)² / (2 · 500) = 0.9.
        assert!((jain(&[10.0, 20.0]) - 0.9).abs() < 1e-12);
        assert!((jain(&[1.0, 2.0, 3.0, 4.0]) - 100.0 / 120.0).abs() < 1e-12);
    }

    #[test]
    fn no_flow_and_zero_throughputs_are_fair() {
        assert_eq!([jain(&[]), jain(&[0.0]), jain(&[0.0, 0.0])], [1.0; 3]);
    }

    proptest! {
        #[test]
        fn jain_lies_between_one_nth_and_one_whatever_the_unit_and_the_order(
            mut flows in prop::collection::vec(0.0..1e12f64, 1..50),
            unit in 1e-9..1e9f64,
        ) {
            let index = jain(&flows);
            prop_assert!(index <= 1.0 + 1e-12 && index >= 1.0 / flows.len() as f64 - 1e-12, "{index}");
            flows.iter_mut().for_each(|flow| *flow *= unit);
            flows.reverse();
            prop_assert!((jain(&flows) - index).abs() < 1e-9);
        }

        #[test]
        fn moving_throughput_from_a_larger_to_a_smaller_flow_never_lowers_jain(
            flows in prop::collection::vec(1.0..1e6f64, 2..20),
            share in 0.0..0.5f64,
        ) {
            let mut sorted = flows.clone();
            sorted.sort_by(f64::total_cmp);
            let last = sorted.len() - 1;
            let before = jain(&sorted);
            let moved = share * (sorted[last] - sorted[0]);
            sorted[0] += moved;
            sorted[last] -= moved;
            prop_assert!(jain(&sorted) >= before - 1e-12);
        }
    }
}
