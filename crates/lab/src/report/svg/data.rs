//! The data of a drawing: values, points and units, taken from measurements.

use crate::aggregate::{Estimate, Measurements, Point, grid, grouped, same};
use crate::expression::{Condition, Environment, Expression, Reference, Shown, Unit};
use crate::figures::FigureResult;
use crate::metric::{Quantity, RunMetric, numbered};
use crate::paper::Published;
use crate::record::Record;
use crate::scenario::{Axis, Curve, PlotAxis, PlotSpec};
use crate::world::twin::simulated_twin;

/// A drawing to make.
#[derive(Clone, Copy)]
pub(crate) struct PlotSource<'a> {
    pub(crate) figure: &'a FigureResult,
    pub(crate) plot: &'a PlotSpec,
    pub(crate) measurements: &'a Measurements<'a>,
    /// The width of the drawing.
    pub(crate) width: f64,
}

/// The name of an axis over the link's rate, for readers. Quantities have their own words.
const RATE_AXIS: (&str, &str) = ("rate", "Link rate");

impl<'a> PlotSource<'a> {
    /// Whether only one panel fits side by side.
    pub(crate) fn is_narrow(&self) -> bool {
        self.width < super::WIDTH
    }

    /// The curves of the drawing with their place in the scenario, which decides their colour.
    pub(crate) fn curves(&self) -> Vec<(usize, &'a Curve)> {
        let wanted = |curve: &Curve| self.plot.curves.is_empty() || self.plot.curves.contains(&curve.name);
        self.figure.scenario.curves.iter().enumerate().filter(|(_, curve)| wanted(curve)).collect()
    }

    /// The colour of a curve by its place in the scenario. An emulated curve has the colour of its simulated twin.
    pub(crate) fn hue(&self, index: usize) -> usize {
        let curves = &self.figure.scenario.curves;
        let twin = curves.get(index).and_then(|curve| simulated_twin(&curve.name));
        let place = twin.and_then(|twin| curves.iter().position(|curve| curve.name == twin)).unwrap_or(index);
        curves[..place].iter().filter(|curve| simulated_twin(&curve.name).is_none()).count()
    }

    /// The number of colours of curves.
    pub(crate) fn hues(&self) -> usize {
        let curves = self.figure.scenario.curves.len();
        (0..curves).map(|index| self.hue(index) + 1).max().unwrap_or(1)
    }

    /// The points of the grid in the drawing.
    pub(crate) fn points(&self) -> Vec<Point> {
        let mut points = grid(&self.figure.scenario);
        if let Some(filter) = self.plot.filter.as_deref().and_then(|text| Condition::parse(text).ok()) {
            let curve = self.figure.scenario.curves.first().map_or("", |curve| &curve.name);
            points.retain(|point| {
                filter.holds(&self.measurements.at(&self.figure.info.id, curve, point)).unwrap_or(false)
            });
        }
        points
    }

    pub(crate) fn axis(&self, name: &str) -> Option<&'a Axis> {
        self.figure.scenario.axes.iter().find(|axis| axis.name == name)
    }

    /// Points in groups with equal values of all axes but these, in the grid's order.
    pub(crate) fn groups(&self, but: &[&str]) -> Vec<(Point, Vec<Point>)> {
        let key = |point: &Point| -> Point {
            let others = point.iter().filter(|(axis, _)| !but.contains(&axis.as_str()));
            others.map(|(axis, value)| (axis.clone(), value.clone())).collect()
        };
        grouped(self.points().into_iter().map(|point| (key(&point), point)))
    }

    pub(crate) fn estimate(&self, curve: &str, point: &Point, expression: &Expression) -> Option<Estimate> {
        self.measurements.at(&self.figure.info.id, curve, point).estimate(expression)
    }

    pub(crate) fn first_run(&self, curve: &str, point: &Point) -> Option<&'a Record> {
        self.measurements.runs(&self.figure.info.id, curve, point).first().copied()
    }

    /// The metrics to draw. The keys of the runs replace patterns such as `goodput.*`.
    pub(crate) fn metrics(&self) -> Vec<String> {
        let runs = self.figure.records.iter();
        let mut names: Vec<&String> = runs.flat_map(|run| run.metrics.keys()).collect();
        names.sort();
        names.dedup();
        self.expand(&names)
    }

    /// The series to draw.
    pub(crate) fn series(&self, run: &Record) -> Vec<String> {
        self.expand(&run.series.keys().collect::<Vec<_>>())
    }

    fn expand(&self, names: &[&String]) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        for wanted in &self.plot.y {
            let Some(base) = wanted.strip_suffix('*') else {
                found.push(wanted.clone());
                continue;
            };
            let mut matching: Vec<&str> = names
                .iter()
                .filter(|name| name.starts_with(base) && RunMetric::with_key(name).is_none())
                // The mean over numbered flows is no flow.
                .filter(|name| !names.contains(&&format!("{name}-1")))
                .map(|name| name.as_str())
                .collect();
            matching.sort_by_key(|name| numbered(name));
            found.extend(matching.into_iter().map(str::to_owned));
        }
        found
    }

    /// Published numbers for a metric on a curve.
    pub(crate) fn published(&self, metric: &str, curve: usize) -> Vec<&'a Published> {
        let name = self.figure.scenario.curves.get(curve).map(|curve| curve.name.as_str());
        let meant = |published: &&Published| {
            published.metric == metric
                && match &published.curve {
                    Some(wanted) => Some(wanted.as_str()) == name,
                    None => curve == 0,
                }
        };
        self.figure.info.published.iter().filter(meant).collect()
    }

    /// The unit of the vertical axis.
    pub(crate) fn unit(&self) -> Unit {
        let Some(name) = self.plot.y.first() else { return Unit::Number };
        let point = self.points().into_iter().next().unwrap_or_default();
        let place = self.measurements.at(&self.figure.info.id, "", &point);
        let of = |name: &String| match Expression::parse(name) {
            Ok(expression) => expression.unit(&place),
            Err(_) => place.unit(&Reference { name: name.clone(), curve: None, figure: None }),
        };
        // An axis for an index and a share has bare numbers, because a unit would be wrong for one of them.
        let unit = of(name);
        if self.plot.y.iter().all(|other| of(other) == unit) { unit } else { Unit::Number }
    }

    /// Whether several quantities share the vertical axis, such as an index and a share.
    pub(crate) fn mixed(&self) -> bool {
        let kind = |metric: &String| metric.split_once('.').map_or(metric.clone(), |(kind, _)| kind.to_owned());
        self.plot.y.windows(2).any(|pair| kind(&pair[0]) != kind(&pair[1]))
    }

    /// A metric in words. If all metrics have the same quantity, only the flow.
    pub(crate) fn short_words(&self, metric: &str) -> String {
        let flow = metric.split_once('.').map(|(_, flow)| flow.to_owned());
        let several = self.plot.y.len() > 1 || self.plot.y.iter().any(|metric| metric.ends_with('*'));
        flow.filter(|_| several && !self.mixed()).unwrap_or_else(|| words(metric))
    }

    /// The name of the vertical axis, without its unit.
    pub(crate) fn y_words(&self) -> String {
        self.plot.y_axis.label.clone().unwrap_or_else(|| {
            if self.mixed() {
                let mut kinds: Vec<String> = Vec::new();
                for metric in &self.plot.y {
                    let kind = words(metric.split_once('.').map_or(metric, |(kind, _)| kind));
                    let kind = if kinds.is_empty() { kind } else { kind.to_lowercase() };
                    if !kinds.contains(&kind) {
                        kinds.push(kind);
                    }
                }
                return kinds.join(", ");
            }
            let first = self.plot.y.first().map_or("", String::as_str);
            match first.split_once('.') {
                Some((base, _)) if self.plot.y.len() > 1 || first.ends_with('*') => words(base),
                _ => words(first),
            }
        })
    }
}

/// The words in place of a drawing without data.
pub(crate) fn nothing(source: &PlotSource<'_>) -> &'static str {
    let is_processor_time = |text: &String| Expression::parse(text).is_ok_and(|y| y.is_processor_time());
    if source.plot.y.iter().all(is_processor_time) { "no CPU: simulated hosts have none" } else { "no data" }
}

/// A metric or axis in words: `goodput.udt` is "Goodput, udt".
pub(crate) fn words(name: &str) -> String {
    let known = |name: &str| match name {
        name if name == RATE_AXIS.0 => Some(RATE_AXIS.1),
        name => Quantity::named(name).map(Quantity::words),
    };
    let known = |name: &str| known(name).map(str::to_owned);
    let is_name = |name: &str| name.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_.".contains(letter));
    match name.split_once('.') {
        Some((base, of)) if is_name(name) => {
            known(base).map_or_else(|| name.to_owned(), |base| format!("{base}, {of}"))
        }
        _ => known(name).unwrap_or_else(|| name.to_owned()),
    }
}

/// The step of the unit of an axis: the scenario's, or the best one for its greatest value.
pub(crate) fn shown(axis: &PlotAxis, unit: Unit, greatest: f64) -> Shown {
    axis.unit.as_deref().and_then(|suffix| unit.shown_as(suffix)).unwrap_or_else(|| unit.shown_for(greatest))
}

/// Words with the unit in brackets.
pub(crate) fn with_unit(words: &str, shown: Shown) -> String {
    if shown.suffix.is_empty() { words.to_owned() } else { format!("{words} ({})", shown.suffix) }
}

/// Whether a published number belongs to a point: the point has the value of every axis that the number names.
pub(crate) fn meant_at(published: &Published, point: &Point) -> bool {
    published.point.iter().all(|(axis, value)| point.get(axis).is_some_and(|here| same(here, value)))
}

/// A point in words, such as `link rate 1 Gbit/s`; empty for no axes.
pub(crate) fn describe(point: &Point, source: &PlotSource<'_>) -> String {
    let axes = source.figure.scenario.axes.iter();
    let value =
        |axis: &Axis| Some(format!("{} {}", words(&axis.name).to_lowercase(), value_words(point.get(&axis.name)?)));
    axes.filter_map(value).collect::<Vec<_>>().join(", ")
}

/// The title of a panel of one curve, at the place in the grid that its other axes have. A scenario without curves has one
/// without a label.
pub(crate) fn titled(curve: &Curve, place: &str) -> String {
    let parts = [&*curve.label, place].into_iter().filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join(": ")
}

/// A value of an axis for readers: `100 Mbit/s` for `100mbit`.
pub(crate) fn value_words(value: &crate::record::AxisValue) -> String {
    match (Unit::of_quantity(&value.text), value.number) {
        (Unit::Number, _) | (_, None) => value.text.clone(),
        (unit, Some(number)) => unit.print(number),
    }
}
