//! The drawings of a scenario: the keys of `[[plot]]`.

mod default;

use serde::Deserialize;
use toml::Spanned;

use super::reader::{Section, Value, listed};
use crate::error::ScenarioError;
use crate::expression::{Unit, quantity_in_base_units};

/// One drawing of a figure.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlotSpec {
    /// The file name of the drawing, without extension: `plot` unless the scenario names it. Further ones have a
    /// number.
    pub name: String,
    /// The title; the figure's title unless the scenario has one.
    pub title: Option<String>,
    /// The kind of drawing.
    pub kind: PlotKind,
    /// The axis or metric from left to right; `None` for [`PlotKind::Time`].
    pub x: Option<String>,
    /// Metrics, expressions of metrics or, over time, keys of series. `goodput.*` stands for all flows.
    pub y: Vec<String>,
    /// Axes with one line for each of their values. For [`PlotKind::Heat`], the axis from bottom to top.
    pub by: Vec<String>,
    /// The curves to draw; all if empty.
    pub curves: Vec<String>,
    /// The points of the grid to draw: those for which this expression holds.
    pub filter: Option<String>,
    /// The horizontal axis.
    pub x_axis: PlotAxis,
    /// The vertical axis. For [`PlotKind::Heat`], the colour.
    pub y_axis: PlotAxis,
}

/// Kinds of drawings.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum PlotKind {
    /// A metric over an axis, one line for each curve and each value of `by`. Bands are the 95 % interval over seeds.
    #[default]
    Lines,
    /// Series over time, of the first seed.
    Time,
    /// A metric over two axes, as colours. Each curve has one panel.
    Heat,
    /// A metric by category: values of `x`, or the flows if `y` names several metrics. Each curve has one bar.
    Bars,
}

/// The layout of one axis of a drawing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlotAxis {
    /// The label; the words of the metric or axis if absent.
    pub label: Option<String>,
    /// Linear or logarithmic.
    pub scale: Scale,
    /// The ends in base units; from the data if absent.
    pub range: Option<[f64; 2]>,
    /// The unit of the numbers (`Mbit/s`, `ms`, `%`, …); the metric's if absent.
    pub unit: Option<String>,
}

/// Spacing of values.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// Equal differences are equally far apart.
    #[default]
    Linear,
    /// Equal ratios are equally far apart.
    Log,
}

pub(super) use default::by_default;

/// A drawing, for messages.
const PLOT: &str = "{ kind = \"lines\", x = \"rtt\", y = \"utilisation\" }";

#[derive(Deserialize)]
#[serde(try_from = "Value")]
struct Range([f64; 2]);

#[derive(Deserialize)]
#[serde(try_from = "String")]
struct StepOfUnit(String);

impl PlotSpec {
    /// Parses a `[[plot]]`, the `place`-th from 0.
    pub(super) fn read(mut section: Section<'_>, place: usize) -> Result<Self, ScenarioError> {
        let name: Option<Spanned<String>> = section.value("name")?;
        let fits = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
        let is_file = |name: &str| !name.is_empty() && name.chars().all(fits);
        if let Some(name) = name.as_ref().filter(|name| !is_file(name.get_ref())) {
            let what = format!("'{}' cannot name a file: use letters, digits, - and _", name.get_ref());
            return Err(section.source().error(name, what));
        }
        let default = if place == 0 { "plot".to_owned() } else { format!("plot-{}", place + 1) };
        let plot = Self {
            name: name.map_or(default, Spanned::into_inner),
            title: section.value("title")?,
            kind: section.needed("kind", PLOT)?,
            x: section.value("x")?,
            y: section.needed("y", PLOT)?,
            by: section.value("by")?.unwrap_or_default(),
            curves: section.value("curves")?.unwrap_or_default(),
            filter: section.value("where")?,
            x_axis: axis(&mut section, ["x_label", "x_scale", "x_range", "x_unit"])?,
            y_axis: axis(&mut section, ["y_label", "y_scale", "y_range", "y_unit"])?,
        };
        if plot.y.is_empty() {
            return Err(section.error("this plot needs `y`"));
        }
        if plot.x.is_none() && matches!(plot.kind, PlotKind::Lines | PlotKind::Heat) {
            return Err(section.error("this plot needs `x`"));
        }
        section.finish()?;
        Ok(plot)
    }
}

fn axis(section: &mut Section<'_>, keys: [&'static str; 4]) -> Result<PlotAxis, ScenarioError> {
    let [label, scale, range, unit] = keys;
    Ok(PlotAxis {
        label: section.value(label)?,
        scale: section.value(scale)?.unwrap_or_default(),
        range: section.value(range)?.map(|Range(ends)| ends),
        unit: section.value(unit)?.map(|StepOfUnit(step)| step),
    })
}

impl TryFrom<Value> for Range {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        let ends = if let Value::List(ends) = value { ends } else { Vec::new() };
        let ends: Vec<f64> = ends.iter().filter_map(|end| quantity_in_base_units(&end.get_ref().to_string())).collect();
        let ends = <[f64; 2]>::try_from(ends).ok().filter(|[low, high]| low < high);
        ends.map(Self).ok_or_else(|| {
            "expected two numbers, the first one smaller, such as [0, 1] or [\"1mbit\", \"1gbit\"]".to_owned()
        })
    }
}

impl TryFrom<String> for StepOfUnit {
    type Error = String;

    fn try_from(step: String) -> Result<Self, String> {
        match Unit::has_step(&step) {
            true => Ok(Self(step)),
            false => Err(format!("there is no unit '{step}': there are {}", listed(&Unit::steps()))),
        }
    }
}
