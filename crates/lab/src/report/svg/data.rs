//! The data of a drawing: values, points and units, taken from measurements.

use crate::aggregate::{Estimate, Measurements, Point, grid, grouped, same};
use crate::expression::{Condition, Environment, Expression, Reference, Shown, Unit};
use crate::figures::FigureResult;
use crate::metric::{RunMetric, numbered};
use crate::paper::Published;
use crate::record::Record;
use crate::report::style::HUES;
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

impl<'a> PlotSource<'a> {
    pub(crate) fn title(&self) -> &'a str {
        self.plot.title.as_ref().unwrap_or(&self.figure.info.title)
    }

    /// The prefix of ids in the drawing, so that they are unique on a page.
    pub(crate) fn id(&self) -> String {
        let plain = |character: char| if character.is_ascii_alphanumeric() { character } else { '-' };
        let narrow = if self.is_narrow() { "-narrow" } else { "" };
        format!("{}-{}{narrow}", self.figure.info.id, self.plot.name).chars().map(plain).collect()
    }

    /// The same drawing for a narrow page.
    pub(crate) fn narrow(&self) -> Self {
        Self { width: super::NARROW, ..*self }
    }

    /// Whether only one panel fits side by side.
    pub(crate) fn is_narrow(&self) -> bool {
        self.width < super::WIDTH
    }

    /// The curves of the drawing with their place in the scenario, which decides their colour.
    pub(crate) fn curves(&self) -> Vec<(usize, &'a Curve)> {
        let wanted = |curve: &Curve| self.plot.curves.is_empty() || self.plot.curves.contains(&curve.name);
        self.figure.scenario.curves.iter().enumerate().filter(|(_, curve)| wanted(curve)).collect()
    }

    /// The curves that share the colours: those of the scenario, so that a curve looks the same in all its drawings. If they
    /// are more than colours, those of the drawing.
    fn coloured(&self) -> Vec<&'a Curve> {
        let simulated = |curve: &&Curve| simulated_twin(&curve.name).is_none();
        let all: Vec<&Curve> = self.figure.scenario.curves.iter().filter(simulated).collect();
        match all.len() > HUES {
            true => self.curves().into_iter().map(|(_, curve)| curve).filter(simulated).collect(),
            false => all,
        }
    }

    /// The colour of a curve by its place. An emulated curve has the colour of its simulated twin.
    pub(crate) fn hue(&self, index: usize) -> usize {
        let name = self.figure.scenario.curves.get(index).map_or("", |curve| &curve.name);
        let name = simulated_twin(name).unwrap_or(name);
        let coloured = self.coloured();
        coloured.iter().position(|curve| curve.name == name).unwrap_or(coloured.len())
    }

    /// The number of colours of curves.
    pub(crate) fn hues(&self) -> usize {
        self.curves().into_iter().map(|(index, _)| self.hue(index) + 1).max().unwrap_or(1)
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
}

/// The words in place of a drawing without data.
pub(crate) fn nothing(source: &PlotSource<'_>) -> &'static str {
    let is_processor_time = |text: &String| Expression::parse(text).is_ok_and(|y| y.is_processor_time());
    if source.plot.y.iter().all(is_processor_time) { "no CPU: simulated hosts have none" } else { "no data" }
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
