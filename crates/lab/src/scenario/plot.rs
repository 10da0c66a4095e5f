//! What is drawn.

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
