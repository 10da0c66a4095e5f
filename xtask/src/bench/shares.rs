//! Rates of two flows on one path while both were active.

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// Minimum share of the requested time in which both flows must be active.
const ENOUGH: f64 = 0.9;

/// Bytes received per flow over time: pairs of seconds and total bytes, both increasing.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    flows: [Vec<(f64, f64)>; 2],
}

impl Arrivals {
    /// Reads the records of a receiver of two connections, and skips other records.
    pub(super) fn read<'a>(records: impl IntoIterator<Item = &'a Value>) -> Self {
        let mut arrivals = Self::default();
        for record in records {
            let number = |name: &str| record.get(name).and_then(Value::as_f64);
            let flow = record.get("connection").and_then(Value::as_u64).and_then(|index| usize::try_from(index).ok());
            let place = flow.and_then(|flow| arrivals.flows.get_mut(flow));
            if let (Some(place), Some(clock), Some(bytes)) = (place, number("clock_s"), number("bytes_total")) {
                place.push((clock, bytes));
            }
        }
        arrivals
    }

    /// The rates of both flows, bit/s, over the first `seconds` in which both were active.
    ///
    /// # Errors
    /// One of them was not active, or for too short a time.
    pub(super) fn shares(&self, seconds: f64) -> Result<[f64; 2]> {
        let [first, second] = &self.flows;
        let begin = latest(first.first(), second.first()).context("a flow never arrived")?;
        let ends = first.last().zip(second.last()).map(|(one, other)| one.0.min(other.0));
        let end = ends.context("a flow never arrived")?.min(begin + seconds);
        ensure!(end - begin >= ENOUGH * seconds, "both flows were active for only {:.1} s", end - begin);
        let rate = |flow: &[(f64, f64)]| (bytes_at(flow, end) - bytes_at(flow, begin)) * 8.0 / (end - begin);
        Ok([rate(first), rate(second)])
    }
}

fn latest(one: Option<&(f64, f64)>, other: Option<&(f64, f64)>) -> Option<f64> {
    Some(one?.0.max(other?.0))
}

/// Bytes at `clock`, interpolated between the two records around it.
fn bytes_at(flow: &[(f64, f64)], clock: f64) -> f64 {
    let after = flow.partition_point(|&(at, _)| at < clock);
    match (after.checked_sub(1).and_then(|before| flow.get(before)), flow.get(after)) {
        (Some(&(at, bytes)), Some(&(then, more))) => bytes + (more - bytes) * (clock - at) / (then - at),
        (Some(&(_, bytes)), None) | (None, Some(&(_, bytes))) => bytes,
        (None, None) => 0.0,
    }
}

/// Jain's index of fairness: the square of the sum over the count times the sum of squares. It is 1 if all are equal,
/// and 1 / n if one has everything.
pub(super) fn jain(rates: &[f64]) -> f64 {
    let (sum, squares) = rates.iter().fold((0.0, 0.0), |(sum, squares), rate| (sum + rate, squares + rate * rate));
    if squares > 0.0 { sum * sum / (rates.len() as f64 * squares) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn record(connection: u64, clock: f64, bytes: u64) -> Value {
        json!({ "event": "interval", "connection": connection, "clock_s": clock, "bytes_total": bytes })
    }

    #[test]
    fn jain_is_one_for_equals_and_half_for_all_against_nothing() {
        assert_eq!(jain(&[5.0, 5.0]), 1.0);
        assert_eq!(jain(&[5.0, 0.0]), 0.5);
        assert!((jain(&[3.0, 1.0]) - 0.8).abs() < 1e-12);
        assert_eq!(jain(&[0.0, 0.0]), 0.0, "nothing at all is not fair");
    }

    #[test]
    fn only_the_time_with_both_flows_active_counts() {
        let records = [
            record(0, 100.0, 0),
            record(1, 110.0, 0),
            record(0, 112.0, 1_200),
            record(1, 115.0, 1_000),
            record(0, 120.0, 2_000),
            record(1, 120.0, 2_000),
            record(1, 130.0, 9_000),
        ];
        // From 110, where the first flow has 1000 bytes, to 120.
        let shares = Arrivals::read(&records).shares(10.0).unwrap();
        assert_eq!(shares, [800.0, 1_600.0]);
    }

    #[test]
    fn a_flow_that_left_early_or_never_came_gives_no_figure() {
        let both = [record(0, 0.0, 0), record(1, 0.0, 0), record(0, 10.0, 10), record(1, 5.0, 10)];
        assert!(Arrivals::read(&both).shares(10.0).is_err());
        assert!(Arrivals::read(&both).shares(5.0).is_ok());
        assert!(Arrivals::read(&both[..1]).shares(1.0).is_err());
    }

    #[test]
    fn other_records_are_skipped() {
        let records = [json!({ "connection": 7, "clock_s": 1.0, "bytes_total": 1 }), json!({ "received_bytes": 3 })];
        assert!(Arrivals::read(&records).shares(1.0).is_err());
    }
}
