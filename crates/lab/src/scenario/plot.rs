//! What is drawn.

mod default;

use super::axis::base_units;
use super::reader::{Section, Value, listed};
use crate::error::ScenarioError;
use crate::expression::Unit;

/// One drawing of a figure.
#[derive(Clone, Debug, PartialEq)]
pub struct PlotSpec {
    /// File name of the drawing, without extension: `plot` unless the scenario names it, numbered from the second on.
    pub name: String,
    /// What stands above it; the figure's title unless the scenario has one.
    pub title: Option<String>,
    /// Which kind of drawing.
    pub kind: PlotKind,
    /// The axis or metric from left to right; `None` for [`PlotKind::Time`].
    pub x: Option<String>,
    /// Metrics, expressions of metrics or, over time, names of series. `goodput.*` means those of all flows.
    pub y: Vec<String>,
    /// Axes that give one line for each of their values (for [`PlotKind::Heat`]: the axis from bottom to top).
    pub by: Vec<String>,
    /// Only these curves; all if empty.
    pub curves: Vec<String>,
    /// Only the points of the grid for which this expression holds.
    pub filter: Option<String>,
    /// From left to right.
    pub x_axis: PlotAxis,
    /// From bottom to top (for [`PlotKind::Heat`]: the colour).
    pub y_axis: PlotAxis,
}

/// Kinds of drawings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlotKind {
    /// A metric over an axis, one line for each curve and each value of `by`; bands are the 95 % interval over seeds.
    Lines,
    /// Series over time, of the first seed.
    Time,
    /// A metric over two axes, as colours; one panel for each curve.
    Heat,
    /// A metric by category: values of `x`, or the flows if `y` names several metrics; one bar for each curve.
    Bars,
}

/// How one direction of a drawing is laid out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlotAxis {
    /// What stands beside it; the metric's or axis' own words if absent.
    pub label: Option<String>,
    /// Linear or logarithmic.
    pub scale: Scale,
    /// From where to where, in base units; chosen from the data if absent.
    pub range: Option<[f64; 2]>,
    /// The unit that numbers are shown in (`Mbit/s`, `ms`, `%`, …); chosen from the metric if absent.
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
    /// Reads a `[[plot]]`, the `place`-th from 0.
    pub(crate) fn read(mut section: Section<'_>, place: usize) -> Result<Self, ScenarioError> {
        let default = if place == 0 { "plot".to_owned() } else { format!("plot-{}", place + 1) };
        let name = section.text("name")?.unwrap_or(default);
        if name.is_empty() || name.chars().any(|letter| !letter.is_ascii_alphanumeric() && !"-_".contains(letter)) {
            let line = section.line_of("name");
            return Err(section.error(line, format!("'{name}' is no name of a file: letters, digits, - and _ are")));
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
    let no_unit = |name: &str| format!("no unit is called '{name}': there are {}", listed(&Unit::steps()));
    let scales = [("linear", Scale::Linear), ("log", Scale::Log)];
    Ok(PlotAxis {
        label: section.text(label)?,
        scale: section.choice(scale, &scales)?.unwrap_or_default(),
        range: section.read(range, |value| {
            let wrong =
                || "two numbers are wanted, the first one smaller, such as [0, 1] or [\"1mbit\", \"1gbit\"]".to_owned();
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
