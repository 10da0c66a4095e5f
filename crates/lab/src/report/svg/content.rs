//! The content of a drawing as numbers, for programs that draw it in their own way.

use serde::Serialize;

use super::chart::Horizontal;
use super::data::{PlotSource, shown, with_unit};
use super::marks::Spot;
use super::panel::{Line, Panel};
use super::{bars, drawn, heat, lines, time};
use crate::aggregate::Measurements;
use crate::expression::Unit;
use crate::figures::FigureResult;
use crate::scenario::{Axis, PlotAxis, PlotKind, Scale};

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
    drawn(figure, measurements).map(|source| content(&source)).collect()
}

fn content(source: &PlotSource<'_>) -> Content {
    let plot = source.plot;
    let (kind, (horizontal, panels)) = match plot.kind {
        PlotKind::Lines => ("lines", lines::panels(source)),
        PlotKind::Time => ("time", time::panels(source)),
        PlotKind::Bars => ("bars", bars(source)),
        PlotKind::Heat => ("heat", heat(source)),
    };
    let Horizontal { name, unit, words, .. } = horizontal;
    let points = || panels.iter().flat_map(|panel| &panel.lines).flat_map(|line| &line.points);
    let x_most = points().map(|point| point.0).fold(0.0, f64::max);
    let y_most = points().map(|point| point.1).fold(0.0, f64::max);
    let x = axis(&plot.x_axis, &source.x_words(&name), unit, x_most, words);
    let y = axis(&plot.y_axis, &source.y_words(), source.unit(), y_most, Vec::new());
    let panels = panels.into_iter().map(ContentPanel::from).collect();
    Content { name: plot.name.clone(), title: source.title().to_owned(), kind, x, y, panels }
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

/// A panel for each place in the grid, with a line for each curve over the categories.
fn bars(source: &PlotSource<'_>) -> (Horizontal, Vec<Panel>) {
    let mut names: Vec<String> = Vec::new();
    let mut panels = Vec::new();
    for bars::Panel { title, categories } in bars::panels(source) {
        let lines = source.curves().into_iter().map(|(_, curve)| Line::new(curve.label.clone()));
        let mut panel = Panel { title, lines: lines.collect(), ..Panel::default() };
        for (name, bars) in categories {
            let place = names.iter().position(|known| *known == name).unwrap_or_else(|| {
                names.push(name);
                names.len() - 1
            });
            panel.lines.iter_mut().zip(bars).for_each(|(line, bar)| line.add(place as f64, bar.estimate));
        }
        panels.push(panel);
    }
    (in_words(source, names), panels)
}

/// A panel for each curve with a line for each row over the columns.
fn heat(source: &PlotSource<'_>) -> (Horizontal, Vec<Panel>) {
    let Some((x, y)) = heat::axes(source) else { return (in_words(source, Vec::new()), Vec::new()) };
    let names = |axis: &Axis| axis.values.iter().map(|value| source.value_words(axis, value)).collect::<Vec<_>>();
    let panel = |heat::Panel { title, cells }: heat::Panel<'_>| {
        let mut panel = Panel { title, lines: names(y).into_iter().map(Line::new).collect(), ..Panel::default() };
        cells.iter().for_each(|cell| panel.lines[cell.row].add(cell.column as f64, cell.estimate));
        panel
    };
    (in_words(source, names(x)), heat::panels(source, x, y).into_iter().map(panel).collect())
}

fn in_words(source: &PlotSource<'_>, words: Vec<String>) -> Horizontal {
    let name = source.plot.x.clone().unwrap_or_default();
    Horizontal { name, unit: Unit::Number, values: Vec::new(), words }
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
