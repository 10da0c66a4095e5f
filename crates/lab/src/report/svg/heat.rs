//! A metric over two axes, as colours with the numbers in them. Each curve has one panel.

use super::canvas::{Anchor, Canvas, rows};
use super::chart::extent;
use super::data::{PlotSource, meant_at, shown, with_unit};
use super::marks::in_words;
use super::panel::ROW;
use super::words::{capital, titled, uncapital};
use crate::aggregate::{Estimate, Point};
use crate::expression::{Expression, Shown};
use crate::paper::Published;
use crate::scenario::Axis;

/// Space to the left of a panel, for the values of the vertical axis.
const LEFT: f64 = 84.0;
/// Space below a panel, for the horizontal axis.
const BELOW: f64 = 48.0;
/// Height of a cell.
const CELL: f64 = 36.0;

/// The most cells in a row where two panels stand side by side.
const MOST_BESIDE: usize = 6;

/// Colours from least to greatest, in equal steps. The lightness falls throughout, so that the map reads without colour
/// too.
const STOPS: [(f64, f64, f64); 5] =
    [(250.0, 241.0, 222.0), (214.0, 225.0, 203.0), (141.0, 187.0, 181.0), (62.0, 132.0, 158.0), (28.0, 70.0, 118.0)];
/// Text in a cell is light from this share of the range on.
const LIGHT_FROM: f64 = 0.62;

pub(super) struct Cell<'a> {
    pub(super) column: usize,
    pub(super) row: usize,
    pub(super) estimate: Option<Estimate>,
    pub(super) published: Option<&'a Published>,
}

/// The names along one side of a map.
pub(super) struct Side {
    pub(super) name: String,
    pub(super) values: Vec<String>,
}

pub(super) struct Panel<'a> {
    pub(super) title: String,
    pub(super) cells: Vec<Cell<'a>>,
}

/// The height of a panel with so many rows of cells.
pub(super) fn height(rows: usize) -> f64 {
    ROW + 10.0 + CELL * rows as f64 + BELOW
}

/// The axes from left to right and from bottom to top.
pub(super) fn axes<'a>(source: &PlotSource<'a>) -> Option<(&'a Axis, &'a Axis)> {
    let [x, y] = [source.plot.x.as_ref(), source.plot.by.first()].map(|name| source.axis(name?));
    x.zip(y)
}

pub(super) fn draw(canvas: &mut Canvas, source: &PlotSource<'_>) -> f64 {
    let Some((x, y)) = axes(source) else {
        canvas.text("words", (source.width / 2.0, 44.0), Anchor::Middle, "no data: a heat map needs two axes");
        return 80.0;
    };
    // Many columns and few rows change places where the columns do not fit.
    let turned = source.is_narrow() && x.values.len() > MOST_BESIDE && y.values.len() < x.values.len();
    let (x, y) = if turned { (y, x) } else { (x, y) };
    let panels = panels(source, x, y);
    let values = panels.iter().flat_map(|panel| &panel.cells).filter_map(|cell| Some(cell.estimate?.mean));
    let range = source.plot.y_axis.range.map_or_else(|| extent(values), |[low, high]| (low, high));
    let shown = shown(&source.plot.y_axis, source.unit(), range.1);
    let mut words = with_unit(&source.y_words(), shown);
    if panels.iter().flat_map(|panel| &panel.cells).any(|cell| cell.published.is_some()) {
        words.push_str(", outlined: published number below ours");
    }
    let side = |axis: &Axis, name: String| Side {
        name,
        values: axis.values.iter().map(|value| source.value_words(axis, value)).collect(),
    };
    let label = |axis: &Axis| capital(&source.figure.scenario.axis_words(axis));
    let across = if turned { label(x) } else { source.x_words(&x.name) };
    let sides = (side(x, across), side(y, label(y)));
    let mut top = 6.0;
    for row in rows(&words, source.width - 12.0) {
        canvas.text("words", (6.0, top + 8.0), Anchor::Start, &row);
        top += ROW;
    }

    let columns = if panels.len() == 1 || x.values.len() > MOST_BESIDE || source.is_narrow() { 1 } else { 2 };
    let width = source.width / columns as f64;
    for row in panels.chunks(columns) {
        for (column, panel) in row.iter().enumerate() {
            draw_panel(canvas, panel, (&sides.0, &sides.1), (column as f64 * width, top, width), (range, shown));
        }
        top += height(y.values.len());
    }
    top
}

pub(super) fn panels<'a>(source: &PlotSource<'a>, x: &Axis, y: &Axis) -> Vec<Panel<'a>> {
    let metric = source.metrics().into_iter().next().unwrap_or_default();
    let Ok(expression) = Expression::parse(&metric) else { return Vec::new() };
    let mut panels = Vec::new();
    for (rest, points) in source.groups(&[&x.name, &y.name]) {
        for (index, curve) in source.curves() {
            let published = source.published(&metric, index);
            // A published number for a whole row or map would hide in each cell. The table shows it.
            let here = |point: &Point| {
                let full = |p: &&&Published| p.point.contains_key(&x.name) && p.point.contains_key(&y.name);
                published.iter().find(|p| full(p) && meant_at(p, point)).copied()
            };
            let cells = points.iter().filter_map(|point| {
                Some(Cell {
                    column: x.values.iter().position(|value| Some(value) == point.get(&x.name))?,
                    row: y.values.iter().position(|value| Some(value) == point.get(&y.name))?,
                    estimate: source.estimate(&curve.name, point, &expression),
                    published: here(point),
                })
            });
            let title = titled(curve, &source.describe(&rest));
            panels.push(Panel { title, cells: cells.collect() });
        }
    }
    panels
}

pub(super) fn draw_panel(
    canvas: &mut Canvas,
    panel: &Panel<'_>,
    (x, y): (&Side, &Side),
    (left, top, width): (f64, f64, f64),
    (range, shown): ((f64, f64), Shown),
) {
    canvas.text("title", (left + 6.0, top + 14.0), Anchor::Start, &panel.title);
    let (x0, y0) = (left + LEFT, top + ROW + 8.0);
    let step = (width - LEFT - 10.0) / x.values.len().max(1) as f64;
    let bottom = y0 + CELL * y.values.len() as f64;
    let row_top = |row: usize| bottom - CELL * (row as f64 + 1.0);
    for cell in &panel.cells {
        let at = (x0 + step * cell.column as f64, row_top(cell.row));
        let middle = at.0 + step / 2.0;
        let Some(Estimate { mean, .. }) = cell.estimate else {
            canvas.rect("empty", (at.0 + 1.0, at.1 + 1.0), (step - 4.0, CELL - 4.0), None);
            canvas.text("tick", (middle - 1.0, at.1 + CELL / 2.0 + 3.0), Anchor::Middle, "no data");
            continue;
        };
        let share = if range.1 > range.0 { ((mean - range.0) / (range.1 - range.0)).clamp(0.0, 1.0) } else { 1.0 };
        let kind = if cell.published.is_some() { "cell outlined" } else { "cell" };
        canvas.rect(kind, (at.0 + 1.0, at.1 + 1.0), (step - 4.0, CELL - 4.0), Some(&fill(share)));
        let class = if share >= LIGHT_FROM { "light" } else { "dark" };
        let text = shown.number(mean);
        match cell.published {
            None => canvas.text(class, (middle - 1.0, at.1 + CELL / 2.0 + 3.0), Anchor::Middle, &text),
            Some(published) => {
                canvas.text(class, (middle - 1.0, at.1 + 14.0), Anchor::Middle, &text);
                let words = in_words(&shown.number(published.value), published.bound);
                canvas.text(&format!("small {class}"), (middle - 1.0, at.1 + CELL - 8.0), Anchor::Middle, &words);
            }
        }
    }
    for (column, value) in x.values.iter().enumerate() {
        let middle = x0 + step * (column as f64 + 0.5) - 1.0;
        canvas.text("tick", (middle, bottom + 15.0), Anchor::Middle, value);
    }
    for (row, value) in y.values.iter().enumerate() {
        canvas.text("tick", (x0 - 8.0, row_top(row) + CELL / 2.0 + 3.0), Anchor::End, value);
    }
    let middle = x0 + (width - LEFT - 10.0) / 2.0;
    let axes = format!("{} → against {} ↑", x.name, uncapital(&y.name));
    canvas.text("words", (middle, bottom + 33.0), Anchor::Middle, &axes);
}

/// The colour of a share of the range.
fn fill(share: f64) -> String {
    let place = share.clamp(0.0, 1.0) * (STOPS.len() - 1) as f64;
    let index = (place.floor() as usize).min(STOPS.len() - 2);
    let (from, to, part) = (STOPS[index], STOPS[index + 1], place - index as f64);
    let mix = |from: f64, to: f64| (from + (to - from) * part).round() as u8;
    format!("#{:02x}{:02x}{:02x}", mix(from.0, to.0), mix(from.1, to.1), mix(from.2, to.2))
}
