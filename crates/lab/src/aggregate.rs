//! Means over seeds with their 95 % confidence intervals.

use std::collections::BTreeMap;

use farhaul_sim::measure::interval::mean_interval;

use crate::expression::{Environment, Expression, Reference, Unit};
use crate::figures::FigureResult;
use crate::metric::Quantity;
use crate::record::{AxisValue, Record};
use crate::scenario::Scenario;
use crate::world::twin::{emulated_twin, simulated_twin};

/// A point of a grid: the value of each axis by its name.
pub type Point = BTreeMap<String, AxisValue>;

/// A mean over seeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// In base units.
    pub mean: f64,
    /// Half the width of the 95 % confidence interval; `None` for a single run.
    pub half_width: Option<f64>,
}

impl Estimate {
    fn of(values: &[f64]) -> Option<Self> {
        let interval = mean_interval(values);
        let half_width = Some(interval.half_width).filter(|half_width| half_width.is_finite());
        (!values.is_empty() && interval.mean.is_finite()).then_some(Self { mean: interval.mean, half_width })
    }

    /// The mean with its interval: `941 ± 2.1 Mbit/s`.
    #[must_use]
    pub fn print(self, unit: Unit) -> String {
        let shown = unit.shown_for(self.mean);
        match self.half_width {
            Some(half_width) if half_width > 0.0 => {
                // More than two digits of the interval would be noise.
                let size = shown.factor * half_width;
                let digit = libm::pow(10.0, libm::log10(size).floor() - 1.0);
                let rounded = (size / digit).round() * digit / shown.factor;
                format!("{}\u{a0}±\u{a0}{}", shown.number(self.mean), shown.print(rounded))
            }
            _ => shown.print(self.mean),
        }
    }
}

/// All runs of one curve at one point.
#[derive(Clone, Debug)]
struct Cell<'a> {
    curve: &'a str,
    point: &'a Point,
    runs: Vec<&'a Record>,
    /// Means of the metrics that every run has.
    means: BTreeMap<&'a str, f64>,
}

/// All runs of one figure.
#[derive(Clone, Debug)]
struct MeasuredFigure<'a> {
    scenario: &'a Scenario,
    cells: Vec<Cell<'a>>,
}

/// The runs of all figures, by figure, curve and point.
///
/// A metric counts only if every seed of the scenario was run and every run has it. A mean over other runs would be a
/// different measurement.
#[derive(Clone, Debug, Default)]
pub struct Measurements<'a> {
    figures: BTreeMap<&'a str, MeasuredFigure<'a>>,
}

impl<'a> Measurements<'a> {
    /// Aggregates the runs of figures that may refer to each other.
    #[must_use]
    pub fn new(results: impl IntoIterator<Item = &'a FigureResult>) -> Self {
        let figures =
            results.into_iter().map(|result| (result.info.id.as_str(), MeasuredFigure::new(result))).collect();
        Self { figures }
    }

    /// The values of names at a point of a curve of a figure.
    #[must_use]
    pub fn at<'m>(&'m self, figure: &'m str, curve: &'m str, point: &'m Point) -> FigurePlace<'m> {
        FigurePlace { measurements: self, figure, curve, point, seed: None }
    }

    fn cell(&self, figure: &str, curve: &str, point: &Point) -> Option<&Cell<'a>> {
        self.figures.get(figure)?.cells.iter().find(|cell| cell.curve == curve && lies_at(cell.point, point))
    }

    /// The runs of a curve at a point, in the order of their seeds.
    pub(crate) fn runs(&self, figure: &str, curve: &str, point: &Point) -> &[&'a Record] {
        self.cell(figure, curve, point).map_or(&[], |cell| &cell.runs)
    }
}

impl<'a> MeasuredFigure<'a> {
    fn new(result: &'a FigureResult) -> Self {
        let mut cells: Vec<Cell<'a>> = Vec::new();
        let mut index: BTreeMap<(&str, Vec<&str>), usize> = BTreeMap::new();
        for record in &result.records {
            let texts = record.point.values().map(|value| value.text.as_str()).collect();
            let at = *index.entry((record.curve.as_str(), texts)).or_insert(cells.len());
            if at == cells.len() {
                cells.push(Cell {
                    curve: &record.curve,
                    point: &record.point,
                    runs: Vec::new(),
                    means: BTreeMap::new(),
                });
            }
            cells[at].runs.push(record);
        }
        for cell in &mut cells {
            cell.runs.sort_by_key(|run| run.seed);
            cell.runs.dedup_by_key(|run| run.seed);
            let emulated = result.emulated.as_ref().filter(|_| simulated_twin(cell.curve).is_some());
            let seeds = &emulated.map_or(&result.scenario, |emulated| &emulated.scenario).seeds;
            let complete = seeds.iter().all(|seed| cell.runs.iter().any(|run| run.seed == *seed));
            if complete {
                cell.means = means(&cell.runs);
            }
        }
        Self { scenario: &result.scenario, cells }
    }
}

fn means<'a>(runs: &[&'a Record]) -> BTreeMap<&'a str, f64> {
    let Some(first) = runs.first() else { return BTreeMap::new() };
    let mean = |name: &str| {
        let values: Option<Vec<f64>> = runs.iter().map(|run| run.metrics.get(name).copied()).collect();
        Estimate::of(&values?).map(|estimate| estimate.mean)
    };
    first.metrics.keys().filter_map(|name| Some((name.as_str(), mean(name)?))).collect()
}

/// Whether a point of another figure is this point: every axis of the other figure has the same value here.
fn lies_at(other: &Point, point: &Point) -> bool {
    other.iter().all(|(axis, value)| point.get(axis).is_some_and(|here| same(here, value)))
}

/// Whether two values of an axis are equal, however they are written: `0.1ms` is `100us`.
pub(crate) fn same(one: &AxisValue, other: &AxisValue) -> bool {
    match (one.number, other.number) {
        (Some(one), Some(other)) => (one - other).abs() <= 1e-9 * one.abs().max(other.abs()),
        _ => one.text == other.text,
    }
}

/// One curve of one figure at one point, as expressions see it.
#[derive(Clone, Copy, Debug)]
pub struct FigurePlace<'m> {
    measurements: &'m Measurements<'m>,
    figure: &'m str,
    curve: &'m str,
    point: &'m Point,
    /// One run instead of the mean over all.
    seed: Option<u64>,
}

impl FigurePlace<'_> {
    /// The expression over the means, with its interval over the seeds.
    #[must_use]
    pub fn estimate(&self, expression: &Expression) -> Option<Estimate> {
        let mean = expression.number(self).ok()?;
        let runs = self.measurements.runs(self.figure, self.curve, self.point);
        let each: Option<Vec<f64>> =
            runs.iter().map(|run| expression.number(&Self { seed: Some(run.seed), ..*self }).ok()).collect();
        let half_width = each.and_then(|values| Estimate::of(&values)?.half_width);
        Some(Estimate { mean, half_width })
    }
}

impl Environment for FigurePlace<'_> {
    fn number(&self, reference: &Reference) -> Option<f64> {
        if reference.curve.is_none()
            && reference.figure.is_none()
            && let Some(value) = self.point.get(&reference.name)
        {
            return value.number;
        }
        let figure = reference.figure.as_deref().unwrap_or(self.figure);
        let curves = &self.measurements.figures.get(figure)?.scenario.curves;
        // The same curve of another figure. If that figure has no curve of this name, its first curve.
        let curve = match &reference.curve {
            // An emulated curve refers to other emulated curves.
            Some(curve) if simulated_twin(self.curve).is_some() => &emulated_twin(curve),
            Some(curve) => curve,
            None if curves.iter().any(|curve| curve.name == self.curve) => self.curve,
            None => &curves.first()?.name,
        };
        let cell = self.measurements.cell(figure, curve, self.point)?;
        match self.seed {
            None => cell.means.get(reference.name.as_str()).copied(),
            Some(seed) => cell.runs.iter().find(|run| run.seed == seed)?.metrics.get(&reference.name).copied(),
        }
    }

    fn text(&self, axis: &str) -> Option<&str> {
        self.point.get(axis).map(|value| value.text.as_str())
    }

    fn unit(&self, reference: &Reference) -> Unit {
        match self.point.get(&reference.name) {
            Some(value) => Unit::of_quantity(&value.text),
            None => Quantity::unit_of_key(&reference.name),
        }
    }
}

/// All points of a scenario's grid. The last axis changes fastest.
#[must_use]
pub fn grid(scenario: &Scenario) -> Vec<Point> {
    let mut points = vec![Point::new()];
    for axis in &scenario.axes {
        points = points
            .iter()
            .flat_map(|point| {
                axis.values.iter().map(move |value| {
                    let mut point = point.clone();
                    point.insert(axis.name.clone(), value.clone());
                    point
                })
            })
            .collect();
    }
    points
}

/// Puts items with equal keys together, in the order in which the keys first come.
pub(crate) fn grouped<K: PartialEq, T>(items: impl IntoIterator<Item = (K, T)>) -> Vec<(K, Vec<T>)> {
    let mut groups: Vec<(K, Vec<T>)> = Vec::new();
    for (key, item) in items {
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, group)) => group.push(item),
            None => groups.push((key, vec![item])),
        }
    }
    groups
}

/// A point in words, in the order of the scenario's axes: `rate 100mbit, rtt 10ms`.
#[must_use]
pub fn describe(point: &Point, scenario: &Scenario) -> String {
    let axes = scenario.axes.iter().filter_map(|axis| Some(format!("{} {}", axis.name, point.get(&axis.name)?.text)));
    axes.collect::<Vec<_>>().join(", ")
}
