//! Times at which flows settle at their fair shares.
//!
//! Flows are rows of throughputs, sampled at the same regular instants. Results count samples: multiply by the sample
//! period for a time. Samples beyond the shortest row are ignored.
//!
//! A state counts as reached if it lasts until the end *and* for at least `hold` samples. A last sample that is right
//! by chance is thus no convergence.

use crate::measure::fairness::jain;
use crate::measure::interval::mean;

/// The first sample from which on Jain's index of the flows' means, over sliding windows of `window` samples, stays at
/// or above `threshold`. `None` if there is none, and without flows. A window of 0 counts as 1.
///
/// The index asks for equal shares, not for a full link, and needs no fair share. This is our reading of "converges
/// quickly to its fair share and stays" (paper:udt-2004, figure 5). Use a threshold of 0.95 and windows of at least a
/// second.
pub fn first_fair(flows: &[&[f64]], window: usize, threshold: f64, hold: usize) -> Option<usize> {
    let window = window.max(1);
    let windows = (length(flows) + 1).saturating_sub(window);
    let fair = |at: usize| {
        let means: Vec<f64> = flows.iter().map(|flow| mean(&flow[at..at + window])).collect();
        jain(&means) >= threshold
    };
    first_that_lasts(windows, fair, hold)
}

/// Number of samples that all flows have.
fn length(flows: &[&[f64]]) -> usize {
    flows.iter().map(|flow| flow.len()).min().unwrap_or(0)
}

/// The first of `count` positions from which on `holds` is true to the end, for at least `hold` positions (and one).
fn first_that_lasts(count: usize, holds: impl Fn(usize) -> bool, hold: usize) -> Option<usize> {
    let first = (0..count).rev().find(|&at| !holds(at)).map_or(0, |at| at + 1);
    (count - first >= hold.max(1)).then_some(first)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn without_flows_or_samples_nothing_settles() {
        assert_eq!(first_fair(&[], 3, 0.95, 1), None);
        assert_eq!(first_fair(&[&[1.0, 1.0]], 3, 0.95, 1), None, "shorter than the window");
    }

    #[test]
    fn flows_are_fair_from_the_first_window_of_fair_means_on() {
        // The second flow joins at sample 2 and alternates with the first. Windows of two samples average that out.
        let flows: [&[f64]; 2] = [&[10.0, 10.0, 10.0, 6.0, 4.0, 6.0, 4.0], &[0.0, 0.0, 0.0, 4.0, 6.0, 4.0, 6.0]];
        assert_eq!(first_fair(&flows, 2, 0.99, 1), Some(3));
        assert_eq!(first_fair(&flows, 0, 0.99, 1), None, "each sample alone has an index of 0.96");
        assert_eq!(first_fair(&flows, 1, 0.95, 1), Some(3));
    }

    proptest! {
        #[test]
        fn one_flow_is_always_fair_and_the_unit_does_not_matter(
            rows in prop::collection::vec((0.0..100.0f64, 0.0..100.0f64), 5..30),
            unit in 1e-3..1e3f64,
        ) {
            let (one, other): (Vec<f64>, Vec<f64>) = rows.into_iter().unzip();
            prop_assert_eq!(first_fair(&[&one], 3, 1.0 - 1e-9, 1), Some(0));
            let scaled = [&one, &other].map(|flow| flow.iter().map(|sample| sample * unit).collect::<Vec<f64>>());
            // The gap between two representable indices is larger than any rounding error.
            let at = |flows: [&[f64]; 2]| first_fair(&flows, 3, 0.95 + 1e-7, 1);
            prop_assert_eq!(at([&one, &other]), at([&scaled[0], &scaled[1]]));
        }
    }
}
