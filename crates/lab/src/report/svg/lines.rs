//! A metric over an axis. A panel has one line for each curve. With a second axis, each curve has a panel, and each
//! value a line.

use super::chart::Horizontal;
use super::data::{PlotSource, meant_at};
use super::marks::{Mark, Spot};
use super::panel::{Line, Panel};
use super::words::{axis_unit, capital, titled, uncapital};
use crate::aggregate::{Point, grouped};
use crate::expression::{Expression, Unit};
use crate::metric::Quantity;
use crate::paper::Published;
use crate::scenario::Curve;

pub(super) fn panels(source: &PlotSource<'_>) -> (Horizontal, Vec<Panel>) {
    let x = source.plot.x.as_deref().unwrap_or_default();
    let horizontal = horizontal(source, x);
    let mut within = vec![x];
    within.extend(source.plot.by.iter().map(String::as_str));
    let metrics = source.metrics();
    let curves = source.curves();
    // Curves with one line each share a panel. With more lines, each curve has its own.
    let together = source.plot.by.is_empty();
    let mut panels = Vec::new();
    for (group, (rest, points)) in source.groups(&within).into_iter().enumerate() {
        let place = source.describe(&rest);
        let mut shared = Panel { title: capital(&place), group, ..Panel::default() };
        for (index, curve) in &curves {
            let mut own = Panel { title: titled(curve, &place), group, ..Panel::default() };
            let panel = if together { &mut shared } else { &mut own };
            for (by, row) in rows(source, &points, x) {
                for (number, metric) in metrics.iter().enumerate() {
                    let mut line = Line::new(name(source, metric, curve, &by, metrics.len()));
                    line.colour =
                        if together { source.hue(*index) * metrics.len() + number } else { panel.lines.len() };
                    line.ordered = !together;
                    line.emulated = together && !curve.world.is_simulated();
                    trace(source, &mut line, &curve.name, &row, metric, &horizontal);
                    let line_number = panel.lines.len();
                    let published = source.published(metric, *index);
                    panel.marks.extend(published.into_iter().filter_map(|published| {
                        let meant = row.iter().filter(|point| meant_at(published, point)).collect::<Vec<_>>();
                        mark(source, published, &meant, &horizontal, line_number)
                    }));
                    panel.lines.push(line);
                }
            }
            if !together {
                panels.push(own);
            }
        }
        if together {
            panels.push(shared);
        }
    }
    (horizontal, panels)
}

fn horizontal(source: &PlotSource<'_>, x: &str) -> Horizontal {
    let Some(axis) = source.axis(x) else {
        // Not an axis: a metric against a metric.
        return Horizontal {
            name: x.to_owned(),
            unit: Quantity::unit_of_key(x),
            values: Vec::new(),
            words: Vec::new(),
        };
    };
    let numbers: Option<Vec<f64>> = axis.values.iter().map(|value| value.number).collect();
    let unit = axis_unit(axis);
    match numbers {
        Some(values) => Horizontal { name: x.to_owned(), unit, values, words: Vec::new() },
        None => Horizontal {
            name: x.to_owned(),
            unit: Unit::Number,
            values: (0..axis.values.len()).map(|index| index as f64).collect(),
            words: axis.values.iter().map(|value| source.value_words(axis, value)).collect(),
        },
    }
}

/// The points of each line, by the values of the axes that tell lines apart.
fn rows(source: &PlotSource<'_>, points: &[Point], x: &str) -> Vec<(Point, Vec<Point>)> {
    let by = |point: &Point| -> Point {
        let axes = source.plot.by.iter().filter(|axis| *axis != x);
        axes.filter_map(|axis| Some((axis.clone(), point.get(axis)?.clone()))).collect()
    };
    grouped(points.iter().map(|point| (by(point), point.clone())))
}

fn name(source: &PlotSource<'_>, metric: &str, curve: &Curve, by: &Point, metrics: usize) -> String {
    let mut parts = Vec::new();
    if by.is_empty() {
        parts.extend((!curve.label.is_empty()).then(|| curve.label.clone()));
    } else {
        let axes = source.plot.by.iter().filter_map(|axis| source.axis(axis));
        parts.extend(axes.filter_map(|axis| Some(source.value_words(axis, by.get(&axis.name)?))));
    }
    if metrics > 1 || parts.is_empty() {
        let words = source.short_words(metric, Some(curve));
        parts.push(if parts.is_empty() { words } else { uncapital(&words) });
    }
    parts.join(", ")
}

fn trace(source: &PlotSource<'_>, line: &mut Line, curve: &str, row: &[Point], metric: &str, horizontal: &Horizontal) {
    let Ok(expression) = Expression::parse(metric) else { return };
    for point in row {
        let x = place(source, point, horizontal).or_else(|| {
            let expression = Expression::parse(&horizontal.name).ok()?;
            Some(source.estimate(curve, point, &expression)?.mean)
        });
        if let Some(x) = x {
            line.add(x, source.estimate(curve, point, &expression));
        }
    }
    line.points.sort_by(|one, other| one.0.total_cmp(&other.0));
    line.band.sort_by(|one, other| one.0.total_cmp(&other.0));
}

/// The horizontal position of a point: its number, or the index of its word.
fn place(source: &PlotSource<'_>, point: &Point, horizontal: &Horizontal) -> Option<f64> {
    let value = point.get(&horizontal.name)?;
    if horizontal.words.is_empty() {
        return value.number;
    }
    let values = &source.axis(&horizontal.name)?.values;
    values.iter().position(|known| known.text == value.text).map(|index| index as f64)
}

fn mark(
    source: &PlotSource<'_>,
    published: &Published,
    meant: &[&Point],
    horizontal: &Horizontal,
    line: usize,
) -> Option<Mark> {
    let spot = if published.point.contains_key(&horizontal.name) {
        Spot::At(place(source, meant.first()?, horizontal)?, published.value)
    } else if meant.is_empty() {
        return None;
    } else {
        Spot::Across(published.value)
    };
    Some(Mark { spot, bound: published.bound, line, text: published.text.clone() })
}
