//! The drawings of a scenario: the keys of `[[plot]]`.

mod default;

use super::axis::base_units;
use super::reader::{Section, Value, listed};
use crate::error::ScenarioError;
use crate::expression::Unit;

/// One drawing of a figure.
#[derive(Clone, Debug, PartialEq)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlotKind {
    /// A metric over an axis, one line for each curve and each value of `by`. Bands are the 95 % interval over seeds.
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Equal differences are equally far apart.
    #[default]
    Linear,
    /// Equal ratios are equally far apart.
    Log,
}

pub(super) use default::by_default;

impl PlotSpec {
    /// Parses a `[[plot]]`, the `place`-th from 0.
    pub(crate) fn read(mut section: Section<'_>, place: usize) -> Result<Self, ScenarioError> {
        let default = if place == 0 { "plot".to_owned() } else { format!("plot-{}", place + 1) };
        let name = section.text("name")?.unwrap_or(default);
        if name.is_empty() || name.chars().any(|letter| !letter.is_ascii_alphanumeric() && !"-_".contains(letter)) {
            let line = section.line_of("name");
            return Err(section.error(line, format!("'{name}' cannot name a file: use letters, digits, - and _")));
        }
        let kinds =
            [("lines", PlotKind::Lines), ("time", PlotKind::Time), ("heat", PlotKind::Heat), ("bars", PlotKind::Bars)];
        let line = section.line();
        let missing = |key: &str| section.error(line, format!("this plot needs `{key}`"));
        let (no_kind, no_x, no_y) = (missing("kind"), missing("x"), missing("y"));
        let kind = section.choice("kind", &kinds)?.ok_or(no_kind)?;
        let plot = Self {
            name,
            title: section.text("title")?,
            kind,
            x: section.text("x")?,
            y: section.texts("y")?,
            by: section.texts("by")?,
            curves: section.texts("curves")?,
            filter: section.text("where")?,
            x_axis: axis(&mut section, ["x_label", "x_scale", "x_range", "x_unit"])?,
            y_axis: axis(&mut section, ["y_label", "y_scale", "y_range", "y_unit"])?,
        };
        section.finish()?;
        if plot.y.is_empty() {
            return Err(no_y);
        }
        if plot.x.is_none() && matches!(kind, PlotKind::Lines | PlotKind::Heat) {
            return Err(no_x);
        }
        Ok(plot)
    }
}

fn axis(section: &mut Section<'_>, keys: [&'static str; 4]) -> Result<PlotAxis, ScenarioError> {
    let [label, scale, range, unit] = keys;
    let no_unit = |name: &str| format!("there is no unit '{name}': there are {}", listed(&Unit::steps()));
    let scales = [("linear", Scale::Linear), ("log", Scale::Log)];
    Ok(PlotAxis {
        label: section.text(label)?,
        scale: section.choice(scale, &scales)?.unwrap_or_default(),
        range: section.read(range, |value| {
            let wrong =
                || "expected two numbers, the first one smaller, such as [0, 1] or [\"1mbit\", \"1gbit\"]".to_owned();
            let Value::List(ends) = value else { return Err(wrong()) };
            let ends: Vec<f64> = ends.iter().filter_map(|end| base_units(&end.value.to_string())).collect();
            <[f64; 2]>::try_from(ends).ok().filter(|[low, high]| low < high).ok_or_else(wrong)
        })?,
        unit: section.read(unit, |value| {
            let suffix = value.to_string();
            if Unit::has_step(&suffix) { Ok(suffix) } else { Err(no_unit(&suffix)) }
        })?,
    })
}
