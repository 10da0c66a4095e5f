//! The content of a drawing as numbers, for programs that draw it in their own way.

use serde::Serialize;

use super::data::{PlotSource, shown, with_unit};
use super::marks::Spot;
use super::panel::{Line, Panel};
use super::words::{capital, titled};
use super::{WIDTH, drawn, lines, time};
use crate::aggregate::{Estimate, Measurements, Point};
use crate::expression::{Expression, Unit};
use crate::figures::FigureResult;
use crate::scenario::{Axis, PlotAxis, PlotKind, PlotSpec, Scale};

/// A drawing as numbers in base units.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Content {
    /// The name in the scenario.
    pub name: String,
    /// The title.
    pub title: String,
    /// `lines`, `time`, `bars` or `heat`.
    pub kind: &'static str,
    /// From left to right.
    pub x: ContentAxis,
    /// From bottom to top. Of a heat map, the colour.
    pub y: ContentAxis,
    /// Sets of axes with lines. Bars are a line for each curve, over the numbers of categories. A row of a heat map is a line.
    pub panels: Vec<ContentPanel>,
}

/// The layout of one axis.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ContentAxis {
    /// The name, with its unit in brackets.
    pub label: String,
    /// The factor from base units to that unit.
    pub factor: f64,
    /// Whether equal ratios are equally far apart.
    pub log: bool,
    /// The ends in base units; from the data if absent.
    pub range: Option<[f64; 2]>,
    /// The names of the values 0, 1, …; none if they are numbers.
    pub words: Vec<String>,
}

/// One set of axes.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ContentPanel {
    /// The title; empty if there is only one.
    pub title: String,
    /// The lines.
    pub lines: Vec<ContentLine>,
    /// Published numbers: the index of a line, the place on the horizontal axis (`None` for all of it), and the number.
    pub published: Vec<(usize, Option<f64>, f64)>,
}

/// One line.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ContentLine {
    /// The name for a legend.
    pub label: String,
    /// Places and values.
    pub points: Vec<(f64, f64)>,
    /// The 95 % intervals over seeds: place, least and greatest.
    pub band: Vec<(f64, f64, f64)>,
}

/// The content of all drawings of a figure. `measurements` holds the figure and those to which its expressions refer.
#[must_use]
pub fn contents(figure: &FigureResult, measurements: &Measurements<'_>) -> Vec<Content> {
    drawn(figure, measurements).map(|plot| content(figure, plot, measurements)).collect()
}

fn content(figure: &FigureResult, plot: &PlotSpec, measurements: &Measurements<'_>) -> Content {
    let source = PlotSource { figure, plot, measurements, width: WIDTH };
    let (kind, (x_name, x_unit, x_words), panels) = match plot.kind {
        PlotKind::Lines | PlotKind::Time => {
            let (kind, (horizontal, panels)) = match plot.kind {
                PlotKind::Time => ("time", time::panels(&source)),
                _ => ("lines", lines::panels(&source)),
            };
            let panels = panels.into_iter().map(ContentPanel::from).collect();
            (kind, (horizontal.name, horizontal.unit, horizontal.words), panels)
        }
        PlotKind::Bars => {
            let (categories, panels) = bars(&source);
            ("bars", (plot.x.clone().unwrap_or_default(), Unit::Number, categories), panels)
        }
        PlotKind::Heat => {
            let (columns, panels) = heat(&source);
            ("heat", (plot.x.clone().unwrap_or_default(), Unit::Number, columns), panels)
        }
    };
    let points = || panels.iter().flat_map(|panel: &ContentPanel| &panel.lines).flat_map(|line| &line.points);
    let x_most = points().map(|point| point.0).fold(0.0, f64::max);
    let y_most = points().map(|point| point.1).fold(0.0, f64::max);
    let x = axis(&plot.x_axis, &source.x_words(&x_name), x_unit, x_most, x_words);
    let y = axis(&plot.y_axis, &source.y_words(), source.unit(), y_most, Vec::new());
    let title = plot.title.clone().unwrap_or_else(|| figure.info.title.clone());
    Content { name: plot.name.clone(), title, kind, x, y, panels }
}

fn axis(spec: &PlotAxis, label: &str, unit: Unit, greatest: f64, words: Vec<String>) -> ContentAxis {
    let shown = shown(spec, unit, greatest);
    let (factor, log) = (shown.factor, spec.scale == Scale::Log);
    ContentAxis { label: with_unit(label, shown), factor, log, range: spec.range, words }
}

impl From<Panel> for ContentPanel {
    fn from(panel: Panel) -> Self {
        let published = panel.marks.iter().map(|mark| match mark.spot {
            Spot::At(x, value) => (mark.line, Some(x), value),
            Spot::Across(value) => (mark.line, None, value),
        });
        Self {
            title: panel.title,
            published: published.collect(),
            lines: panel.lines.into_iter().map(ContentLine::from).collect(),
        }
    }
}

impl From<Line> for ContentLine {
    fn from(line: Line) -> Self {
        Self { label: line.label, points: line.points, band: line.band }
    }
}

impl ContentLine {
    fn new(label: String) -> Self {
        Self { label, points: Vec::new(), band: Vec::new() }
    }

    fn add(&mut self, x: f64, estimate: Estimate) {
        let Estimate { mean, half_width } = estimate;
        self.points.push((x, mean));
        self.band.extend(half_width.map(|half| (x, mean - half, mean + half)));
    }
}

/// The names of the categories, and a panel for each place in the grid.
fn bars(source: &PlotSource<'_>) -> (Vec<String>, Vec<ContentPanel>) {
    let metrics = source.metrics();
    let axis = source.plot.x.as_deref().and_then(|name| source.axis(name));
    let within: Vec<&str> = axis.iter().map(|axis| axis.name.as_str()).collect();
    let several = metrics.len() > 1 || source.plot.y.iter().any(|metric| metric.ends_with('*'));
    let mut names: Vec<String> = Vec::new();
    let mut panels = Vec::new();
    for (rest, points) in source.groups(&within) {
        let mut panel = ContentPanel { title: capital(&source.describe(&rest)), ..ContentPanel::default() };
        for (_, curve) in source.curves() {
            let mut line = ContentLine::new(curve.label.clone());
            for (point, metric) in points.iter().flat_map(|point| metrics.iter().map(move |metric| (point, metric))) {
                let of_axis = axis.and_then(|axis| Some(source.value_words(axis, point.get(&axis.name)?)));
                let of_metric = several.then(|| source.short_words(metric, None));
                let name = of_axis.into_iter().chain(of_metric).collect::<Vec<_>>().join(", ");
                let place = names.iter().position(|known| *known == name).unwrap_or_else(|| {
                    names.push(name);
                    names.len() - 1
                });
                let expression = Expression::parse(metric).ok();
                let estimate = expression.and_then(|expression| source.estimate(&curve.name, point, &expression));
                if let Some(estimate) = estimate {
                    line.add(place as f64, estimate);
                }
            }
            panel.lines.push(line);
        }
        panels.push(panel);
    }
    (names, panels)
}

/// The names of the columns, and a panel for each curve with a line for each row.
fn heat(source: &PlotSource<'_>) -> (Vec<String>, Vec<ContentPanel>) {
    let x = source.plot.x.as_deref().and_then(|name| source.axis(name));
    let y = source.plot.by.first().and_then(|name| source.axis(name));
    let metric = source.metrics().into_iter().next().unwrap_or_default();
    let (Some(x), Some(y), Ok(expression)) = (x, y, Expression::parse(&metric)) else { return Default::default() };
    let place = |axis: &Axis, point: &Point| {
        let here = point.get(&axis.name)?;
        axis.values.iter().position(|value| value == here)
    };
    let mut panels = Vec::new();
    for (rest, points) in source.groups(&[&x.name, &y.name]) {
        for (_, curve) in source.curves() {
            let mut lines: Vec<ContentLine> =
                y.values.iter().map(|value| ContentLine::new(source.value_words(y, value))).collect();
            for point in &points {
                let (Some(column), Some(row)) = (place(x, point), place(y, point)) else { continue };
                if let Some(estimate) = source.estimate(&curve.name, point, &expression) {
                    lines[row].add(column as f64, estimate);
                }
            }
            panels.push(ContentPanel { title: titled(curve, &source.describe(&rest)), lines, ..Default::default() });
        }
    }
    (x.values.iter().map(|value| source.value_words(x, value)).collect(), panels)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::gallery;

    #[test]
    fn every_kind_of_drawing_has_its_numbers() {
        let gallery = gallery();
        let measurements = Measurements::new(&gallery);
        let mut kinds = std::collections::BTreeSet::new();
        for figure in &gallery {
            for content in contents(figure, &measurements) {
                let lines = content.panels.iter().flat_map(|panel| &panel.lines);
                assert!(lines.clone().any(|line| !line.points.is_empty()), "{}", content.name);
                let places = lines.flat_map(|line| &line.points).map(|point| point.0);
                let named = content.x.words.len() as f64;
                assert!(named == 0.0 || places.fold(0.0, f64::max) < named, "{}", content.name);
                kinds.insert(content.kind);
            }
        }
        assert_eq!(kinds.into_iter().collect::<Vec<_>>(), ["bars", "heat", "lines", "time"]);
    }
}
