//! The scores of a figure: the keys of `[[score]]`.

use super::reader::Section;
use crate::error::ScenarioError;

/// One score: its bound, the points where it must hold, and its source.
#[derive(Clone, Debug, PartialEq)]
pub struct ScoreSpec {
    /// A short name, unique in the figure.
    pub id: String,
    /// The bound in words.
    pub says: String,
    /// The curve; `None` for the first one.
    pub curve: Option<String>,
    /// The points of the grid: those for which this expression over axes holds.
    pub filter: Option<String>,
    /// The bound.
    pub must: Demand,
    /// The source of the bound.
    pub source: ScoreSource,
    /// The line in the scenario.
    pub line: usize,
}

/// Kinds of bounds.
#[derive(Clone, Debug, PartialEq)]
pub enum Demand {
    /// An expression over metrics (means over seeds) holds.
    Holds {
        /// Such as `utilisation >= 0.98`.
        expression: String,
        /// The share of the points where it must hold, in 0..=1.
        share: f64,
    },
    /// A metric only falls or only rises along an axis.
    Monotone {
        /// The metric, or an expression.
        expression: String,
        /// The axis.
        along: String,
        /// The direction.
        direction: Direction,
        /// The greatest step in the wrong direction, as a share of the value.
        tolerance: f64,
    },
    /// Two metrics differ at one point at least.
    Differs {
        /// The metric, or an expression.
        expression: String,
        /// The other metric: `share[udt]@a8`.
        than: String,
        /// The least difference, as a share of the greater one.
        by: f64,
    },
}

impl Demand {
    /// The expressions, each with its key in the scenario and whether it is a condition.
    pub(crate) fn texts(&self) -> Vec<(&'static str, &str, bool)> {
        match self {
            Self::Holds { expression, .. } => vec![("must", expression, true)],
            Self::Monotone { expression, .. } => vec![("monotone", expression, false)],
            Self::Differs { expression, than, .. } => vec![("differs", expression, false), ("than", than, false)],
        }
    }
}

/// The direction along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Later values are smaller.
    Falling,
    /// Later values are greater.
    Rising,
}

/// The source of a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScoreSource {
    /// The paper reports it.
    Paper,
    /// We expect it.
    Ours,
}

impl ScoreSpec {
    /// The expressions of the bound.
    pub fn expressions(&self) -> Vec<&str> {
        self.must.texts().into_iter().map(|(_, text, _)| text).collect()
    }

    /// Parses a `[[score]]`.
    pub(crate) fn read(mut section: Section<'_>) -> Result<Self, ScenarioError> {
        let line = section.line();
        let sources = [("paper", ScoreSource::Paper), ("ours", ScoreSource::Ours)];
        let no_source = section.error(line, "a score needs `source`: \"paper\" or \"ours\"");
        let score = Self {
            id: section.required_text("id")?,
            says: section.required_text("says")?,
            curve: section.text("curve")?,
            filter: section.text("where")?,
            must: demand(&mut section)?,
            source: section.choice("source", &sources)?.ok_or(no_source)?,
            line,
        };
        section.finish()?;
        Ok(score)
    }
}

/// `must` with `share`; or `monotone` with `along`, `direction`, `tolerance`; or `differs` with `than`, `by`.
fn demand(section: &mut Section<'_>) -> Result<Demand, ScenarioError> {
    let line = section.line();
    let (must, share) = (section.text("must")?, section.share("share")?);
    let (monotone, along) = (section.text("monotone")?, section.text("along")?);
    let directions = [("falling", Direction::Falling), ("rising", Direction::Rising)];
    let direction = section.choice("direction", &directions)?;
    let tolerance = section.share("tolerance")?.unwrap_or(0.0);
    let (differs, than, by) = (section.text("differs")?, section.text("than")?, section.share("by")?);
    match (must, monotone, differs) {
        (Some(expression), None, None) => Ok(Demand::Holds { expression, share: share.unwrap_or(1.0) }),
        (None, Some(expression), None) => match (along, direction) {
            (Some(along), Some(direction)) => Ok(Demand::Monotone { expression, along, direction, tolerance }),
            _ => Err(section.error(line, "`monotone` needs `along`, an axis, and `direction`: falling or rising")),
        },
        (None, None, Some(expression)) => match (than, by) {
            (Some(than), Some(by)) => Ok(Demand::Differs { expression, than, by }),
            _ => Err(section.error(line, "`differs` needs `than`, a metric, and `by`, a share such as 0.05")),
        },
        _ => Err(section.error(line, "a score has one of `must`, `monotone` and `differs`")),
    }
}
