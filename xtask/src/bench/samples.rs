//! Figures of several runs, by setting, case, program and quantity, and their summaries.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use anyhow::{Context, Result};

use super::quantity::Quantity;

/// The figures of one transfer. A program omits those it cannot measure.
#[derive(Debug, Default)]
pub(super) struct Measured {
    pub(super) figures: Vec<(Quantity, f64)>,
    /// Facts that are the same in each run, such as socket buffer sizes.
    pub(super) notes: Vec<String>,
}

impl Measured {
    /// Figures without notes.
    pub(super) fn of(figures: impl IntoIterator<Item = (Quantity, f64)>) -> Self {
        Self { figures: figures.into_iter().collect(), notes: Vec::new() }
    }

    /// The figure of `quantity`, if present.
    pub(super) fn figure(&self, quantity: Quantity) -> Option<f64> {
        self.figures.iter().find(|(its, _)| *its == quantity).map(|&(_, value)| value)
    }
}

/// Identifies a figure.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    /// Limits during the measurement; empty if they do not matter.
    pub(super) setting: &'static str,
    /// For example "loss 1e-4".
    pub(super) case: &'static str,
    pub(super) program: &'static str,
    pub(super) quantity: Quantity,
}

/// A run whose figures do not describe the programs, because an emulator was the limit.
#[derive(Debug)]
pub(super) struct Invalid(pub(super) String);

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid: {}", self.0)
    }
}

impl std::error::Error for Invalid {}

/// A run that is not possible on this machine.
#[derive(Debug)]
pub(super) struct Skipped(pub(super) String);

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "skipped: {}", self.0)
    }
}

impl std::error::Error for Skipped {}

/// The kind of a transfer without figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LostKind {
    /// [`Invalid`]: no fault of the program.
    Invalid,
    /// [`Skipped`]: not tried.
    Skipped,
    /// The program failed.
    Failed,
}

/// A transfer without figures.
#[derive(Debug)]
pub(super) struct Lost {
    pub(super) setting: &'static str,
    pub(super) case: &'static str,
    pub(super) program: &'static str,
    pub(super) kind: LostKind,
    pub(super) why: String,
}

/// All figures of a measurement.
#[derive(Debug, Default)]
pub(super) struct Samples {
    setting: &'static str,
    values: BTreeMap<Key, Vec<f64>>,
    /// Transfers that do not count, and why.
    pub(super) lost: Vec<Lost>,
    /// By setting and program.
    pub(super) notes: BTreeSet<(&'static str, &'static str, String)>,
}

impl Samples {
    /// Sets the limits for figures added from now on.
    pub(super) fn enter(&mut self, setting: &'static str) {
        self.setting = setting;
    }

    /// Adds the figures of a transfer, or its error.
    pub(super) fn add(&mut self, case: &'static str, program: &'static str, result: Result<Measured>) {
        let setting = self.setting;
        match result {
            Ok(measured) => {
                for (quantity, value) in measured.figures.into_iter().filter(|(_, value)| value.is_finite()) {
                    self.values.entry(Key { setting, case, program, quantity }).or_default().push(value);
                }
                self.notes.extend(measured.notes.into_iter().map(|note| (setting, program, note)));
            }
            Err(error) => {
                eprintln!("  {case}, {program}: {error:#}");
                let kind = match (error.is::<Invalid>(), error.is::<Skipped>()) {
                    (true, _) => LostKind::Invalid,
                    (_, true) => LostKind::Skipped,
                    _ => LostKind::Failed,
                };
                self.lost.push(Lost { setting, case, program, kind, why: format!("{error:#}") });
            }
        }
    }

    /// Every measured figure.
    pub(super) fn summaries(&self) -> impl Iterator<Item = (&Key, Summary)> {
        self.values.iter().filter_map(|(key, values)| Some((key, Summary::of(values)?)))
    }

    /// The figure of that key.
    ///
    /// # Errors
    /// It was not measured.
    pub(super) fn summary(&self, key: &Key) -> Result<Summary> {
        let summary = self.values.get(key).and_then(|values| Summary::of(values));
        summary.with_context(|| format!("{} has no figure", key.program))
    }

    /// Number of runs of a program that do not count in that case.
    pub(super) fn lost_runs(&self, key: &Key) -> usize {
        let of = |lost: &&Lost| (lost.setting, lost.case, lost.program) == (key.setting, key.case, key.program);
        self.lost.iter().filter(of).count()
    }
}

/// Summary of several equal runs.
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

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    const KEY: Key = Key { setting: "", case: "a", program: "ours", quantity: Quantity::Goodput };

    #[test]
    fn the_median_lies_in_the_middle() {
        assert_eq!(Summary::of(&[3.0, 1.0, 2.0]), Some(Summary { median: 2.0, least: 1.0, most: 3.0, runs: 3 }));
        assert_eq!(Summary::of(&[4.0, 1.0]).map(|summary| summary.median), Some(2.5));
        assert_eq!(Summary::of(&[]), None);
    }

    #[test]
    fn an_invalid_run_never_enters_the_median_and_is_counted() {
        let mut samples = Samples::default();
        for value in [10.0, 20.0] {
            samples.add("a", "ours", Ok(Measured::of([(Quantity::Goodput, value)])));
        }
        samples.add("a", "ours", Err(Invalid("the relay was late".into()).into()));
        samples.add("a", "ours", Err(anyhow!("no such file")));
        samples.add("a", "ours", Err(Skipped("no such right".into()).into()));
        let summary = samples.summary(&KEY).unwrap();
        assert_eq!((summary.median, summary.runs), (15.0, 2));
        assert_eq!(samples.lost_runs(&KEY), 3);
        let kinds: Vec<_> = samples.lost.iter().map(|lost| lost.kind).collect();
        assert_eq!(kinds, [LostKind::Invalid, LostKind::Failed, LostKind::Skipped]);
    }

    #[test]
    fn a_figure_that_is_no_number_is_left_out() {
        let mut samples = Samples::default();
        samples.add("a", "ours", Ok(Measured::of([(Quantity::Goodput, f64::NAN)])));
        assert!(samples.summary(&KEY).is_err());
    }

    #[test]
    fn settings_do_not_mix() {
        let mut samples = Samples::default();
        for (setting, value) in [("low", 1.0), ("high", 2.0)] {
            samples.enter(setting);
            samples.add("a", "ours", Ok(Measured::of([(Quantity::Goodput, value)])));
        }
        assert_eq!(samples.summary(&Key { setting: "high", ..KEY }).unwrap().median, 2.0);
        assert!(samples.summary(&KEY).is_err());
    }
}
