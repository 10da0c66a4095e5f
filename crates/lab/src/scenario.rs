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

pub use axis::{Axis, Curve};
pub use expand::{Controllers, Experiment, Job, Overrides};
pub use plot::{PlotAxis, PlotKind, PlotSpec, Scale};
pub use reader::nearest;
pub use score::{Demand, Direction, ScoreSource, ScoreSpec};

use std::collections::BTreeMap;

use axis::{AxisKeys, Changes, CurveKeys};
use reader::{Node, Section, Source, Value};
use score::ScoreKeys;
use serde::Deserialize;
use toml::Spanned;

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
    /// Words for readers of axes, their values and flows, by their names.
    pub labels: BTreeMap<String, String>,
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
    fn read(name: &str, source: &Source, root: &Node) -> Result<(Self, AllChanges), ScenarioError> {
        let mut root = Section::root(source, root)?;
        let axes: Vec<AxisKeys> = root.value("axis")?.unwrap_or_default();
        let axes: Vec<_> = axes.into_iter().map(|axis| Axis::read(source, axis)).collect::<Result<_, _>>()?;
        let (axes, of_axes) = axes.into_iter().unzip();
        let curves: Vec<CurveKeys> = root.value("curve")?.unwrap_or_default();
        let (curves, of_curves) = curves.into_iter().map(Curve::read).unzip();
        let plots = root.sections("plot")?;
        let lines: Vec<usize> = plots.iter().map(Section::line).collect();
        let plots = plots.into_iter().enumerate().map(|(place, section)| PlotSpec::read(section, place));
        let scores: Vec<Spanned<ScoreKeys>> = root.value("score")?.unwrap_or_default();
        let scenario = Self {
            name: name.to_owned(),
            title: root.needed("title", "title = \"Ten flows\"")?,
            paper: root.value("paper")?,
            source: root.value("source")?,
            shows: root.value("shows")?,
            duration: 0.0,
            warmup: 0.0,
            seeds: root.value("seeds")?.map_or_else(|| vec![1], |Seeds(seeds)| seeds),
            axes,
            curves,
            flows: Vec::new(),
            labels: root.value("labels")?.unwrap_or_default(),
            draws_by_default: root.get("plot").is_none(),
            plots: plots.collect::<Result<_, _>>()?,
            scores: scores.into_iter().map(|score| ScoreSpec::read(source, score)).collect::<Result<_, _>>()?,
        };
        scenario.check_names(&root, &lines)?;
        Ok((scenario, AllChanges { axes: of_axes, curves: of_curves }))
    }

    /// Checks that names are unique, and that references find them. `plots` are the lines of the plots.
    fn check_names(&self, root: &Section<'_>, plots: &[usize]) -> Result<(), ScenarioError> {
        let axes: Vec<&str> = self.axes.iter().map(|axis| axis.name.as_str()).collect();
        let curves: Vec<&str> = self.curves.iter().map(|curve| curve.name.as_str()).collect();
        let plot_names: Vec<&str> = self.plots.iter().map(|plot| plot.name.as_str()).collect();
        let scores: Vec<&str> = self.scores.iter().map(|score| score.id.as_str()).collect();
        for (key, names) in [("axis", &axes), ("curve", &curves), ("plot", &plot_names), ("score", &scores)] {
            if let Some(twice) = names.iter().enumerate().find(|(place, name)| names[..*place].contains(name)) {
                let message = format!("two of [[{key}]] have the name '{}'", twice.1);
                return Err(root.source().error_on(root.line_of(key), message));
            }
        }
        let of_plots = self.plots.iter().zip(plots).flat_map(|(plot, line)| {
            let by = plot.by.iter().map(|by| known(by, &axes, "axis"));
            by.chain(plot.curves.iter().map(|curve| known(curve, &curves, "curve"))).map(|checked| (*line, checked))
        });
        let of_scores = self.scores.iter().flat_map(|score| {
            let along = if let Demand::Monotone { along, .. } = &score.must { Some(along) } else { None };
            let curve = score.curve.iter().map(|curve| known(curve, &curves, "curve"));
            curve.chain(along.map(|along| known(along, &axes, "axis"))).map(|checked| (score.line, checked))
        });
        for (line, checked) in of_plots.chain(of_scores) {
            checked.map_err(|what| root.source().error_on(line, what))?;
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
#[derive(Deserialize)]
#[serde(try_from = "Value")]
struct Seeds(Vec<u64>);

impl TryFrom<Value> for Seeds {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        let one = |node: &Node| match node.get_ref() {
            Value::Integer(seed) => {
                u64::try_from(*seed).map_err(|_| format!("seed {seed} is out of range: allowed is 0 to {}", i64::MAX))
            }
            other => Err(format!("a seed is a whole number, not {}", other.kind())),
        };
        match value {
            Value::Integer(count) if (1..=MAX_SEEDS).contains(&count) => Ok(Self((1..=count as u64).collect())),
            Value::Integer(count) => {
                Err(format!("{count} seeds are out of range: allowed is 1 to {MAX_SEEDS}, or a list such as [7, 8]"))
            }
            Value::List(list) if !list.is_empty() => {
                let mut seeds = list.iter().map(one).collect::<Result<Vec<_>, _>>()?;
                seeds.dedup();
                Ok(Self(seeds))
            }
            _ => Err("expected a number of seeds, or a list such as [7, 8]".to_owned()),
        }
    }
}
