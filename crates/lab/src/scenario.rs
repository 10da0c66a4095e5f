//! A scenario: what is run, what is swept, what is drawn and what must hold.

pub mod axis;
pub mod plot;
pub mod score;

pub use axis::{Axis, Curve};
pub use plot::{PlotAxis, PlotKind, PlotSpec, Scale};
pub use score::{Demand, Direction, ScoreSource, ScoreSpec};

/// A scenario file, read and checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Its name: the figure's id, or the file's name without extension.
    pub name: String,
    /// What stands above it.
    pub title: String,
    /// Key of the paper in `docs/papers/papers.bib`.
    pub paper: Option<String>,
    /// Where in the paper: `Figure 3, §4.1`.
    pub source: Option<String>,
    /// One line: what one should see.
    pub shows: Option<String>,
    /// Virtual seconds of a run.
    pub duration: f64,
    /// Virtual seconds that rates are not measured in.
    pub warmup: f64,
    /// The seeds, each of which is one run at each point.
    pub seeds: Vec<u64>,
    /// The grid, slowest axis first.
    pub axes: Vec<Axis>,
    /// The curves, at least one.
    pub curves: Vec<Curve>,
    /// Names of the flows of the first curve at the first point.
    pub flows: Vec<String>,
    /// What is drawn.
    pub plots: Vec<PlotSpec>,
    /// What must hold.
    pub scores: Vec<ScoreSpec>,
}
