//! What a figure has to reach.

/// One bound: what must hold, where, and whose claim it is.
#[derive(Clone, Debug, PartialEq)]
pub struct ScoreSpec {
    /// Short name, unique in its figure.
    pub id: String,
    /// The bound in words.
    pub says: String,
    /// The curve that it is about; `None` for the first one.
    pub curve: Option<String>,
    /// Only the points of the grid for which this expression over axes holds.
    pub filter: Option<String>,
    /// What is demanded.
    pub must: Demand,
    /// Who says so.
    pub source: ScoreSource,
    /// The scenario's line that it stands on.
    pub line: usize,
}

/// Kinds of bounds.
#[derive(Clone, Debug, PartialEq)]
pub enum Demand {
    /// An expression over metrics (means over seeds) holds.
    Holds {
        /// Such as `utilisation >= 0.98`.
        expression: String,
        /// At this share of the points, in 0..=1.
        share: f64,
    },
    /// A metric only falls or only rises along an axis.
    Monotone {
        /// The metric, or an expression.
        expression: String,
        /// The axis.
        along: String,
        /// Which way.
        direction: Direction,
        /// How far it may go the wrong way from one point to the next, as a share of its value.
        tolerance: f64,
    },
    /// Two metrics differ at one point at least.
    Differs {
        /// The metric, or an expression.
        expression: String,
        /// What it is compared with: `share[udt]@a8`.
        than: String,
        /// By this share of the greater one.
        by: f64,
    },
}

/// Which way along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Later values are smaller.
    Falling,
    /// Later values are greater.
    Rising,
}

/// Who set a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScoreSource {
    /// The paper reports it.
    Paper,
    /// We expect it.
    Ours,
}
