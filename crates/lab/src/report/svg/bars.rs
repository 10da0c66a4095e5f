//! A metric by category: values of an axis, or several metrics. Each curve has one bar.

use super::canvas::{Anchor, Canvas, width};
use super::chart::{CLEAR, range_of, upright};
use super::data::{PlotSource, meant_at, shown, with_unit};
use super::legend;
use super::marks::symbol;
use super::panel::{Area, ROW, colour, in_world};
use super::scale::Scale;
use super::words::capital;
use crate::aggregate::{Estimate, Point};
use crate::expression::Expression;
use crate::paper::{Bound, Published};
use crate::scenario::Scale as Spacing;

/// Height of a panel.
const HEIGHT: f64 = 190.0;
/// The most rows that names of categories take.
const MOST_NAME_ROWS: usize = 4;
/// Space to the left of a panel.
const LEFT: f64 = 52.0;

pub(super) struct Bar<'a> {
    curve: usize,
    pub(super) estimate: Option<Estimate>,
    published: Option<&'a Published>,
}

pub(super) struct Panel<'a> {
    pub(super) title: String,
    pub(super) categories: Vec<(String, Vec<Bar<'a>>)>,
}

pub(super) fn draw(canvas: &mut Canvas, source: &PlotSource<'_>) -> f64 {
    let panels = panels(source);
    let bars: Vec<&Bar<'_>> = panels.iter().flat_map(|panel| &panel.categories).flat_map(|(_, bars)| bars).collect();
    if bars.iter().all(|bar| bar.estimate.is_none()) {
        canvas.text("words", (source.width / 2.0, 44.0), Anchor::Middle, super::data::nothing(source));
        return 80.0;
    }
    let of = source.hues();
    let curves: Vec<(String, &str)> =
        source.curves().iter().map(|(index, curve)| (class(source, *index, of), curve.label.as_str())).collect();
    let bounds: Vec<Bound> = bars.iter().filter_map(|bar| bar.published).map(|published| published.bound).collect();
    let whiskers = bars.iter().any(|bar| bar.estimate.is_some_and(|estimate| estimate.half_width.is_some()));
    let mut top = legend::meaning(canvas, source, &curves, bounds, whiskers);
    for panel in &panels {
        let head = if panel.title.is_empty() { ROW } else { 2.0 * ROW };
        let above = top + head + CLEAR - 4.0;
        let area = Area { left: LEFT, right: source.width - 10.0, top: above, bottom: above + HEIGHT };
        draw_panel(canvas, source, panel, &area, of);
        top = area.bottom + 44.0 + ROW * (name_rows(panel, &area) - 1) as f64;
    }
    top
}

/// The class of a curve's bars.
fn class(source: &PlotSource<'_>, curve: usize, of: usize) -> String {
    let emulated = source.figure.scenario.curves.get(curve).is_some_and(|curve| !curve.world.is_simulated());
    in_world(colour(source.hue(curve), of, false), emulated)
}

pub(super) fn panels<'a>(source: &PlotSource<'a>) -> Vec<Panel<'a>> {
    let metrics = source.metrics();
    let axis = source.plot.x.as_deref().and_then(|name| source.axis(name));
    let within: Vec<&str> = axis.iter().map(|axis| axis.name.as_str()).collect();
    let mut panels = Vec::new();
    for (rest, points) in source.groups(&within) {
        let mut categories = Vec::new();
        for point in &points {
            for metric in &metrics {
                let mut name = Vec::new();
                name.extend(axis.and_then(|axis| Some(source.value_words(axis, point.get(&axis.name)?))));
                if metrics.len() > 1 || source.plot.y.iter().any(|metric| metric.ends_with('*')) {
                    name.push(source.short_words(metric, None));
                }
                categories.push((name.join(", "), bars(source, metric, point)));
            }
        }
        panels.push(Panel { title: capital(&source.describe(&rest)), categories });
    }
    panels
}

fn bars<'a>(source: &PlotSource<'a>, metric: &str, point: &Point) -> Vec<Bar<'a>> {
    let Ok(expression) = Expression::parse(metric) else { return Vec::new() };
    let curves = source.curves().into_iter();
    let bar = |(curve, of): (usize, &crate::scenario::Curve)| Bar {
        curve,
        estimate: source.estimate(&of.name, point, &expression),
        published: source.published(metric, curve).into_iter().find(|published| meant_at(published, point)),
    };
    curves.map(bar).collect()
}

fn draw_panel(canvas: &mut Canvas, source: &PlotSource<'_>, panel: &Panel<'_>, area: &Area, of: usize) {
    let bars = || panel.categories.iter().flat_map(|(_, bars)| bars);
    let mut values: Vec<f64> = bars().filter_map(|bar| bar.published.map(|published| published.value)).collect();
    for estimate in bars().filter_map(|bar| bar.estimate) {
        values.extend([estimate.mean, estimate.mean + estimate.half_width.unwrap_or(0.0)]);
    }
    let range = range_of(source, values);
    let spacing = source.plot.y_axis.scale;
    let y = Scale::new(spacing, range, (area.bottom, area.top));
    let shown = shown(&source.plot.y_axis, source.unit(), range.1);
    if !panel.title.is_empty() {
        canvas.text("title", (6.0, area.top - CLEAR - ROW), Anchor::Start, &panel.title);
    }
    canvas.text("words", (6.0, area.top - CLEAR), Anchor::Start, &with_unit(&source.y_words(), shown));
    upright(canvas, &y, (area.left, area.right), |tick| Some(shown.number(tick)));

    let zero = if spacing == Spacing::Linear { y.place(0.0).unwrap_or(area.bottom) } else { area.bottom };
    let step = step(panel, area);
    let name_rows = name_rows(panel, area);
    for (index, (name, bars)) in panel.categories.iter().enumerate() {
        let middle = area.left + step * (index as f64 + 0.5);
        let thick = (step * 0.7 / bars.len().max(1) as f64).min(44.0);
        let left = middle - thick * bars.len() as f64 / 2.0;
        for (number, bar) in bars.iter().enumerate() {
            let class = class(source, bar.curve, of);
            draw_bar(canvas, bar, (left + thick * number as f64, thick), (&y, zero), &class, area);
        }
        let half = width(name) / 2.0;
        let inside = middle.max(half).min(source.width - half);
        canvas.text("tick", (inside, area.bottom + 17.0 + ROW * (index % name_rows) as f64), Anchor::Middle, name);
    }
    canvas.line("axis", (area.left, zero), (area.right, zero));
    let label = source.x_words(source.plot.x.as_deref().unwrap_or_default());
    let below = area.bottom + 34.0 + ROW * (name_rows - 1) as f64;
    canvas.text("words", ((area.left + area.right) / 2.0, below), Anchor::Middle, &label);
}

/// Width of a category.
fn step(panel: &Panel<'_>, area: &Area) -> f64 {
    (area.right - area.left) / panel.categories.len().max(1) as f64
}

/// The rows that the names of the categories need. Neighbours are in different rows, so that none overlaps.
fn name_rows(panel: &Panel<'_>, area: &Area) -> usize {
    let widest = panel.categories.iter().map(|(name, _)| width(name)).fold(0.0, f64::max);
    let needed = (widest / step(panel, area)).ceil();
    (1..MOST_NAME_ROWS).find(|rows| needed <= *rows as f64).unwrap_or(MOST_NAME_ROWS)
}

fn draw_bar(
    canvas: &mut Canvas,
    bar: &Bar<'_>,
    (left, thick): (f64, f64),
    (y, zero): (&Scale, f64),
    class: &str,
    area: &Area,
) {
    let middle = left + thick / 2.0;
    let place = |value: f64| y.place(value).map(|place| place.clamp(area.top, area.bottom));
    if let Some((estimate, end)) = bar.estimate.and_then(|estimate| Some((estimate, place(estimate.mean)?))) {
        let inside = (thick - 2.0).max(1.0);
        canvas.rect(&format!("bar {class}"), (left + 1.0, end.min(zero)), (inside, (zero - end).abs()), None);
        let ends = estimate.half_width.map(|half| (place(estimate.mean - half), place(estimate.mean + half)));
        if let Some((Some(low), Some(high))) = ends {
            canvas.line("whisker", (middle, low), (middle, high));
        }
    }
    if bar.estimate.is_none() {
        canvas.text("tick", (middle, zero - 4.0), Anchor::Middle, "–");
    }
    if let Some((published, height)) = bar.published.and_then(|published| Some((published, place(published.value)?))) {
        symbol(canvas, (middle, height), published.bound, "");
    }
}
