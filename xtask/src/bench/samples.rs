//! The figures of several runs, by case, program and quantity; and what must hold among their medians.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Context, Result, anyhow};

/// A measured quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Quantity {
    /// Payload that the receiver got, bit/s from its first to its last byte.
    Goodput,
    /// Processor time of both sides, s per 1e9 bytes received.
    CpuPerGb,
    /// From connect() to the receiver's confirmation, s.
    Completion,
    /// Data packets sent more than once, share of all sent.
    Retransmitted,
}

impl Quantity {
    /// The word in the table and in JSON, with the unit.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Goodput => "goodput, bit/s",
            Self::CpuPerGb => "cpu, s/GB",
            Self::Completion => "completion, s",
            Self::Retransmitted => "retransmitted, share",
        }
    }

    /// A figure for people.
    pub(super) fn show(self, value: f64) -> String {
        match self {
            Self::Goodput if value >= 1e9 => format!("{:.2} Gbit/s", value / 1e9),
            Self::Goodput => format!("{:.1} Mbit/s", value / 1e6),
            Self::CpuPerGb => format!("{value:.2} s/GB"),
            Self::Completion => format!("{value:.3} s"),
            Self::Retransmitted => format!("{:.2} %", value * 1e2),
        }
    }
}

/// What one transfer gave; a program leaves out what it cannot say.
pub(super) type Figures = Vec<(Quantity, f64)>;

/// Where a figure belongs: the case ("loss 1e-4"), the program, the quantity.
pub(super) type Key = (String, &'static str, Quantity);

/// All figures of a row.
#[derive(Debug, Default)]
pub(super) struct Samples {
    values: BTreeMap<Key, Vec<f64>>,
    /// What went wrong, by case and program.
    pub(super) failures: Vec<(String, &'static str, String)>,
}

impl Samples {
    /// Adds what a transfer gave, or why it gave nothing.
    pub(super) fn add(&mut self, case: &str, program: &'static str, result: Result<Figures>) {
        match result {
            Ok(figures) => figures.into_iter().filter(|(_, value)| value.is_finite()).for_each(|(quantity, value)| {
                self.values.entry((case.to_owned(), program, quantity)).or_default().push(value);
            }),
            Err(error) => {
                eprintln!("  {case}, {program}: {error:#}");
                self.failures.push((case.to_owned(), program, format!("{error:#}")));
            }
        }
    }

    /// Every figure that was measured.
    pub(super) fn summaries(&self) -> impl Iterator<Item = (&Key, Summary)> {
        self.values.iter().filter_map(|(key, values)| Some((key, Summary::of(values)?)))
    }

    fn median(&self, case: &str, program: &'static str, quantity: Quantity) -> Result<f64> {
        let values = self.values.get(&(case.to_owned(), program, quantity));
        let summary = values.and_then(|values| Summary::of(values));
        Ok(summary.with_context(|| format!("{program} gave no figure"))?.median)
    }
}

/// What several runs of the same come down to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Summary {
    pub(super) median: f64,
    pub(super) least: f64,
    pub(super) most: f64,
    pub(super) runs: usize,
}

impl Summary {
    /// `None` without values.
    fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (least, most) = (*sorted.first()?, *sorted.last()?);
        let middle = sorted.len() / 2;
        let median =
            if sorted.len() % 2 == 1 { sorted[middle] } else { f64::midpoint(sorted[middle - 1], sorted[middle]) };
        Some(Self { median, least, most, runs: sorted.len() })
    }
}

/// Something that must hold among the medians of a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Requirement {
    pub(super) case: &'static str,
    pub(super) program: &'static str,
    pub(super) quantity: Quantity,
    pub(super) bound: Bound,
}

/// What a figure is held against.
#[derive(Clone, Copy, Debug)]
pub(super) enum Bound {
    /// At least this.
    Least(f64),
    /// At most this.
    Most(f64),
    /// At least so many times the figure of another program.
    LeastTimes(f64, &'static str),
    /// At most so many times the figure of another program.
    MostTimes(f64, &'static str),
}

impl Requirement {
    /// Whether it holds, with the two figures.
    ///
    /// # Errors
    /// One of the figures was not measured, so nothing is known.
    pub(super) fn judge(&self, samples: &Samples) -> Result<(bool, f64, f64)> {
        let ours = samples.median(self.case, self.program, self.quantity)?;
        let (limit, at_least) = match self.bound {
            Bound::Least(limit) => (limit, true),
            Bound::Most(limit) => (limit, false),
            Bound::LeastTimes(factor, other) => (factor * samples.median(self.case, other, self.quantity)?, true),
            Bound::MostTimes(factor, other) => (factor * samples.median(self.case, other, self.quantity)?, false),
        };
        if limit.is_nan() {
            return Err(anyhow!("no limit"));
        }
        Ok((if at_least { ours >= limit } else { ours <= limit }, ours, limit))
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { case, program, quantity, bound } = self;
        let name = quantity.name().split(',').next().unwrap_or_default();
        write!(f, "{case}: {name} of {program} ")?;
        match bound {
            Bound::Least(limit) => write!(f, "≥ {}", quantity.show(*limit)),
            Bound::Most(limit) => write!(f, "≤ {}", quantity.show(*limit)),
            Bound::LeastTimes(factor, other) => write!(f, "≥ {factor} × {other}"),
            Bound::MostTimes(factor, other) => write!(f, "≤ {factor} × {other}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_lies_in_the_middle() {
        assert_eq!(Summary::of(&[3.0, 1.0, 2.0]), Some(Summary { median: 2.0, least: 1.0, most: 3.0, runs: 3 }));
        assert_eq!(Summary::of(&[4.0, 1.0]).map(|summary| summary.median), Some(2.5));
        assert_eq!(Summary::of(&[]), None);
    }

    #[test]
    fn a_requirement_compares_medians_of_the_same_case() {
        let mut samples = Samples::default();
        samples.add("a", "ours", Ok(vec![(Quantity::Goodput, 10.0)]));
        samples.add("a", "theirs", Ok(vec![(Quantity::Goodput, 4.0)]));
        let requirement = |factor| Requirement {
            case: "a",
            program: "ours",
            quantity: Quantity::Goodput,
            bound: Bound::LeastTimes(factor, "theirs"),
        };
        assert_eq!(requirement(2.0).judge(&samples).unwrap(), (true, 10.0, 8.0));
        assert!(!requirement(3.0).judge(&samples).unwrap().0);
    }

    #[test]
    fn a_missing_figure_is_not_a_met_requirement() {
        let requirement =
            Requirement { case: "a", program: "ours", quantity: Quantity::Goodput, bound: Bound::Least(0.0) };
        assert!(requirement.judge(&Samples::default()).is_err());
    }
}
