//! A scenario: its runs, its sweep, its drawings and its scores.

pub mod axis;
mod edit;
pub(crate) mod expand;
pub(crate) mod files;
pub(crate) mod flow;
mod link;
pub mod plot;
pub(crate) mod reader;
pub mod score;
pub(crate) mod setup;
#[cfg(test)]
mod tests;
pub(crate) mod topology;
pub mod vocabulary;

pub use axis::{Axis, Curve, base_units};
pub use expand::{Experiment, Job, Overrides};
pub use plot::{PlotAxis, PlotKind, PlotSpec, Scale};
pub use reader::nearest;
pub use score::{Demand, Direction, ScoreSource, ScoreSpec};

use axis::Changes;
use reader::{Node, Section, Value};

use crate::error::ScenarioError;

/// The most seeds of a scenario.
const MAX_SEEDS: i64 = 10_000;

/// A scenario file, parsed and checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// The figure's id, or the file's name without extension.
    pub name: String,
    /// The title.
    pub title: String,
    /// Key of the paper in `docs/papers/papers.bib`.
    pub paper: Option<String>,
    /// The place in the paper: `Figure 3, §4.1`.
    pub source: Option<String>,
    /// The expected result in one line.
    pub shows: Option<String>,
    /// The duration of a run in virtual seconds.
    pub duration: f64,
    /// The warm-up in virtual seconds, in which rates are not measured.
    pub warmup: f64,
    /// The seeds. Each is one run at each point.
    pub seeds: Vec<u64>,
    /// The axes of the grid, slowest first.
    pub axes: Vec<Axis>,
    /// The curves, at least one.
    pub curves: Vec<Curve>,
    /// The names of the flows of the first curve at the first point.
    pub flows: Vec<String>,
    /// The drawings.
    pub plots: Vec<PlotSpec>,
    /// Whether the scenario declares no plots and has the default ones.
    pub draws_by_default: bool,
    /// The scores.
    pub scores: Vec<ScoreSpec>,
}

/// The changes by axes and curves, in the scenario's order.
#[derive(Clone, Debug)]
struct AllChanges {
    /// For each axis, for each of its values.
    axes: Vec<Vec<Changes>>,
    /// For each curve.
    curves: Vec<Changes>,
}

impl Scenario {
    /// Reads the scenario without its setups, which [`Experiment`] adds.
    fn read(name: &str, file: &str, root: &Node) -> Result<(Self, AllChanges), ScenarioError> {
        let mut root = Section::of(file, "the scenario", root)?;
        let axes: Vec<_> = root.sections("axis")?.into_iter().map(Axis::read).collect::<Result<_, _>>()?;
        let curves: Vec<_> = root.sections("curve")?.into_iter().map(Curve::read).collect::<Result<_, _>>()?;
        let (axes, of_axes) = axes.into_iter().unzip();
        let (curves, of_curves) = curves.into_iter().unzip();
        let scenario = Self {
            name: name.to_owned(),
            title: root.required_text("title")?,
            paper: root.text("paper")?,
            source: root.text("source")?,
            shows: root.text("shows")?,
            duration: 0.0,
            warmup: 0.0,
            seeds: seeds(&mut root)?,
            axes,
            curves,
            flows: Vec::new(),
            draws_by_default: !root.has("plot"),
            plots: root
                .sections("plot")?
                .into_iter()
                .enumerate()
                .map(|(place, section)| PlotSpec::read(section, place))
                .collect::<Result<_, _>>()?,
            scores: root.sections("score")?.into_iter().map(ScoreSpec::read).collect::<Result<_, _>>()?,
        };
        scenario.check_names(&mut root)?;
        Ok((scenario, AllChanges { axes: of_axes, curves: of_curves }))
    }

    /// Checks that names are unique, and that references find them.
    fn check_names(&self, root: &mut Section<'_>) -> Result<(), ScenarioError> {
        let axes: Vec<&str> = self.axes.iter().map(|axis| axis.name.as_str()).collect();
        let curves: Vec<&str> = self.curves.iter().map(|curve| curve.name.as_str()).collect();
        let plots: Vec<&str> = self.plots.iter().map(|plot| plot.name.as_str()).collect();
        let scores: Vec<&str> = self.scores.iter().map(|score| score.id.as_str()).collect();
        for (key, names) in [("axis", &axes), ("curve", &curves), ("plot", &plots), ("score", &scores)] {
            if let Some(twice) = names.iter().enumerate().find(|(place, name)| names[..*place].contains(name)) {
                return Err(root.error(root.line_of(key), format!("two of [[{key}]] have the name '{}'", twice.1)));
            }
        }
        let lines: Vec<usize> = root.sections("plot")?.iter().map(Section::line).collect();
        for (plot, line) in self.plots.iter().zip(lines) {
            for by in &plot.by {
                known(by, &axes, "axis").map_err(|what| root.error(line, what))?;
            }
            for curve in &plot.curves {
                known(curve, &curves, "curve").map_err(|what| root.error(line, what))?;
            }
        }
        for score in &self.scores {
            if let Some(curve) = &score.curve {
                known(curve, &curves, "curve").map_err(|what| root.error(score.line, what))?;
            }
            if let Demand::Monotone { along, .. } = &score.must {
                known(along, &axes, "axis").map_err(|what| root.error(score.line, what))?;
            }
        }
        Ok(())
    }
}

fn known(name: &str, names: &[&str], what: &str) -> Result<(), String> {
    if names.contains(&name) {
        return Ok(());
    }
    Err(format!("there is no {what} '{name}': there are {}", reader::listed(names)))
}

/// A number of seeds, or a list of them.
fn seeds(root: &mut Section<'_>) -> Result<Vec<u64>, ScenarioError> {
    let one = |value: &Value| match value {
        Value::Integer(seed) => {
            u64::try_from(*seed).map_err(|_| format!("seed {seed} is out of range: allowed is 0 to {}", i64::MAX))
        }
        other => Err(format!("a seed is a whole number, not {}", other.kind())),
    };
    let seeds = root.read("seeds", |value| match value {
        Value::Integer(count) if (1..=MAX_SEEDS).contains(count) => Ok((1..=*count as u64).collect()),
        Value::Integer(count) => {
            Err(format!("{count} seeds are out of range: allowed is 1 to {MAX_SEEDS}, or a list such as [7, 8]"))
        }
        Value::List(list) if !list.is_empty() => {
            let mut seeds = list.iter().map(|node| one(&node.value)).collect::<Result<Vec<_>, _>>()?;
            seeds.dedup();
            Ok(seeds)
        }
        _ => Err("expected a number of seeds, or a list such as [7, 8]".to_owned()),
    })?;
    Ok(seeds.unwrap_or_else(|| vec![1]))
}
