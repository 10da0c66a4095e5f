//! The figures of the papers, as they are shipped.

use std::collections::BTreeMap;

use crate::record::{AxisValue, Record};
use crate::scenario::Scenario;

/// What a figure is, before it is run.
#[derive(Clone, Debug, PartialEq)]
pub struct FigureInfo {
    /// Lower case: `a5`, `b3`, `a-err`; for a scenario of one's own its file's name.
    pub id: String,
    /// Key of the paper in `docs/papers/papers.bib`; empty for a scenario of one's own.
    pub paper: String,
    /// What stands above it.
    pub title: String,
    /// Where in the paper.
    pub source: String,
    /// One line: what one should see.
    pub shows: String,
    /// The figure's own words (Markdown): choices made where the paper is silent, what differs and why.
    pub readme: String,
    /// What the paper reports.
    pub published: Vec<Published>,
}

/// One number that a paper reports: a line of the figure's `paper.csv`.
///
/// The file's columns are `metric`, `value` (a number or a quantity, `940mbit`, `98%`), optionally `curve`, `bound`
/// (`is`, `about`, `at-least`, `at-most`), `note`; every other column is an axis of the figure, with an empty cell for
/// "everywhere".
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// For this curve only.
    pub curve: Option<String>,
    /// Where in the grid; axes that are not named are meant at all their values.
    pub point: BTreeMap<String, AxisValue>,
    /// Which metric, or the name of a series.
    pub metric: String,
    /// In base units.
    pub value: f64,
    /// As it was written.
    pub text: String,
    /// How the number is meant.
    pub bound: Bound,
    /// What has to be known about it.
    pub note: String,
}

/// How a published number is meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bound {
    /// Printed in the paper.
    #[default]
    Is,
    /// "About".
    About,
    /// "At least", "above".
    AtLeast,
    /// "At most", "below".
    AtMost,
}

/// A figure and what its runs gave.
#[derive(Clone, Debug)]
pub struct FigureResult {
    /// What it is.
    pub info: FigureInfo,
    /// The scenario, as it was run (with `--quick`, its quick form).
    pub scenario: Scenario,
    /// All its runs, ordered by curve, point and seed.
    pub records: Vec<Record>,
    /// Whether it is the quick form.
    pub quick: bool,
    /// The command that runs it again.
    pub command: String,
}
