//! The scores of a figure: the keys of `[[score]]`.

use serde::Deserialize;
use toml::Spanned;

use super::reader::{Share, Source};
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
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Later values are smaller.
    Falling,
    /// Later values are greater.
    Rising,
}

/// The source of a bound.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum ScoreSource {
    /// The paper reports it.
    Paper,
    /// We expect it.
    Ours,
}

/// The keys of `[[score]]`: `must` with `share`; or `monotone` with `along`, `direction`, `tolerance`; or `differs` with
/// `than`, `by`.
#[derive(Deserialize)]
#[serde(
    expecting = "{ id = \"full\", says = \"It fills the link\", must = \"utilisation >= 0.9\", source = \"paper\" }"
)]
pub(super) struct ScoreKeys {
    id: String,
    says: String,
    curve: Option<String>,
    #[serde(rename = "where")]
    filter: Option<String>,
    source: ScoreSource,
    must: Option<String>,
    share: Option<Share>,
    monotone: Option<String>,
    along: Option<String>,
    direction: Option<Direction>,
    tolerance: Option<Share>,
    differs: Option<String>,
    than: Option<String>,
    by: Option<Share>,
}

impl ScoreSpec {
    /// The expressions of the bound.
    pub fn expressions(&self) -> Vec<&str> {
        self.must.texts().into_iter().map(|(_, text, _)| text).collect()
    }

    /// The score of a `[[score]]`.
    pub(super) fn read(source: &Source, keys: Spanned<ScoreKeys>) -> Result<Self, ScenarioError> {
        let line = source.line(keys.span().start);
        let keys = keys.into_inner();
        let must = match (keys.must, keys.monotone, keys.differs) {
            (Some(expression), None, None) => {
                Ok(Demand::Holds { expression, share: keys.share.map_or(1.0, |Share(share)| share) })
            }
            (None, Some(expression), None) => match (keys.along, keys.direction) {
                (Some(along), Some(direction)) => Ok(Demand::Monotone {
                    expression,
                    along,
                    direction,
                    tolerance: keys.tolerance.unwrap_or_default().0,
                }),
                _ => Err("`monotone` needs `along`, an axis, and `direction`: falling or rising"),
            },
            (None, None, Some(expression)) => match (keys.than, keys.by) {
                (Some(than), Some(Share(by))) => Ok(Demand::Differs { expression, than, by }),
                _ => Err("`differs` needs `than`, a metric, and `by`, a share such as 0.05"),
            },
            _ => Err("a score has one of `must`, `monotone` and `differs`"),
        };
        let must = must.map_err(|what| source.error_on(line, what))?;
        let ScoreKeys { id, says, curve, filter, source, .. } = keys;
        Ok(Self { id, says, curve, filter, must, source, line })
    }
}
