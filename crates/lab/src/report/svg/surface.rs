//! Drawings of measurements that no scenario made: a value over a grid, and values with ranges over another value.

use super::canvas::{Anchor, Canvas};
use super::chart::upright;
use super::data::with_unit;
use super::heat::{self, Cell, Panel, Side};
use super::legend::LegendRow;
use super::panel::{ROW, colour};
use super::scale::{Scale, round_up};
use super::words::printed;
use super::{WIDTH, framed};
use crate::aggregate::Estimate;
use crate::expression::{Shown, Unit};
use crate::scenario::Scale as Spacing;
use crate::scenario::axis::axis_value;

/// Margins of the curves: tick labels to the left, and the axis' name below.
pub(super) const LEFT: f64 = 60.0;
pub(super) const RIGHT: f64 = 24.0;
pub(super) const BELOW: f64 = 46.0;
/// Height of the curves.
const HEIGHT: f64 = 320.0;
/// Space for the label of a tick across.
const TICK_WIDTH: f64 = 64.0;
/// Radius of the marked point.
const MARK: f64 = 7.0;

/// The names of a drawing.
#[derive(Clone, Copy, Debug)]
pub struct Caption<'a> {
    /// The prefix of its ids: letters, digits and hyphens.
    pub id: &'a str,
    /// Its title.
    pub title: &'a str,
    /// Its content in words, for screen readers.
    pub shows: &'a str,
}

/// A quantity of a drawing: its name and its unit.
#[derive(Clone, Copy, Debug)]
pub struct Quantity<'a> {
    /// The name for readers.
    pub name: &'a str,
    /// The unit of its numbers.
    pub unit: Unit,
}

/// One value over a grid of two quantities.
#[derive(Clone, Debug)]
pub struct Surface<'a> {
    /// Its name.
    pub caption: Caption<'a>,
    /// The value.
    pub value: Quantity<'a>,
    /// The quantity across, and its values from left to right, as they are written: `150us`.
    pub across: (&'a str, Vec<String>),
    /// The quantity upwards, and its values from below.
    pub up: (&'a str, Vec<String>),
    /// Column, row and value.
    pub cells: Vec<(usize, usize, f64)>,
}

/// A curve through points with ranges.
#[derive(Clone, Debug)]
pub struct RangeCurve {
    /// Its name.
    pub name: String,
    /// The points: the place across, and the mean, the least and the greatest value there.
    pub points: Vec<(f64, [f64; 3])>,
}

/// Curves of one quantity over another of the same unit.
#[derive(Clone, Debug)]
pub struct RangeCurves<'a> {
    /// Its name.
    pub caption: Caption<'a>,
    /// The quantity across.
    pub across: Quantity<'a>,
    /// The quantity upwards.
    pub up: Quantity<'a>,
    /// The curves, in order.
    pub curves: Vec<RangeCurve>,
    /// The name of the dotted line on which both quantities are equal.
    pub equal: &'a str,
    /// A point that stands out, and its name.
    pub marked: Option<((f64, f64), &'a str)>,
}

/// Draws a surface as a heat map with its numbers. The text of an SVG file.
#[must_use]
pub fn surface(surface: &Surface<'_>) -> String {
    let value = |text: &String| printed(&axis_value(text), Unit::of_quantity(text));
    let side = |(name, values): &(&str, Vec<String>)| Side {
        name: (*name).to_owned(),
        values: values.iter().map(value).collect(),
    };
    let (x, y) = (side(&surface.across), side(&surface.up));
    let cell = |&(column, row, mean): &(usize, usize, f64)| Cell {
        column,
        row,
        estimate: Some(Estimate { mean, half_width: None }),
        published: None,
    };
    let panel = Panel { title: String::new(), cells: surface.cells.iter().map(cell).collect() };
    let values = || surface.cells.iter().map(|(.., value)| *value);
    let range = (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
    let shown = surface.value.unit.shown_for(range.1);
    let mut canvas = Canvas::alone(true);
    canvas.text("title", (6.0, 20.0), Anchor::Start, surface.caption.title);
    let words = with_unit(surface.value.name, shown);
    canvas.text("words", (6.0, 20.0 + ROW), Anchor::Start, &words);
    // Its panel has no title of its own.
    let top = 24.0;
    heat::draw_panel(&mut canvas, &panel, (&x, &y), (0.0, top, WIDTH), (range, shown));
    framed(&canvas.finish(), (WIDTH, top + heat::height(y.values.len())), surface.caption, true)
}

/// Draws the horizontal axis, which lies at `bottom`, with its ticks and its name. Returns the unit of its numbers, which
/// fits the greatest one.
pub(super) fn across(canvas: &mut Canvas, x: &Scale, bottom: f64, (quantity, greatest): (Quantity<'_>, f64)) -> Shown {
    let shown = quantity.unit.shown_for(greatest);
    canvas.line("axis", (LEFT, bottom), (WIDTH - RIGHT, bottom));
    for tick in x.ticks(&[], TICK_WIDTH) {
        let Some(place) = x.place(tick) else { continue };
        canvas.line("axis", (place, bottom), (place, bottom + 4.0));
        canvas.text("tick", (place, bottom + 17.0), Anchor::Middle, &shown.number(tick));
    }
    let words = with_unit(quantity.name, shown);
    canvas.text("words", ((LEFT + WIDTH - RIGHT) / 2.0, bottom + 36.0), Anchor::Middle, &words);
    shown
}

/// Draws curves with ranges. The text of an SVG file.
#[must_use]
pub fn range_curves(drawing: &RangeCurves<'_>) -> String {
    let mut canvas = Canvas::alone(true);
    canvas.text("title", (6.0, 20.0), Anchor::Start, drawing.caption.title);
    let mut top = legend(&mut canvas, drawing, 20.0 + ROW);
    let points = || drawing.curves.iter().flat_map(|curve| &curve.points);
    let high = points().flat_map(|(_, values)| *values).fold(0.0, f64::max);
    let right = points().map(|(place, _)| *place).fold(0.0, f64::max);
    let (high, right) = (round_up(high), round_up(right));
    let up = drawing.up.unit.shown_for(high);
    canvas.text("words", (6.0, top + 8.0), Anchor::Start, &with_unit(drawing.up.name, up));
    top += ROW + 6.0;
    let bottom = top + HEIGHT;
    let x = Scale::new(Spacing::Linear, (0.0, right), (LEFT, WIDTH - RIGHT));
    let y = Scale::new(Spacing::Linear, (0.0, high), (bottom, top));
    upright(&mut canvas, &y, (LEFT, WIDTH - RIGHT), |tick| Some(up.number(tick)));
    across(&mut canvas, &x, bottom, (drawing.across, right));
    let at = |place: f64, value: f64| Some((x.place(place)?, y.place(value)?));
    let end = high.min(right);
    if let (Some(from), Some(to)) = (at(0.0, 0.0), at(end, end)) {
        canvas.line("published", from, to);
    }
    for (index, curve) in drawing.curves.iter().enumerate() {
        draw_curve(&mut canvas, curve, &class(drawing, index), at);
    }
    if let Some((place, name)) = drawing.marked
        && let Some((left, height)) = at(place.0, place.1)
    {
        canvas.put(&format!(
            "<circle class=\"whisker\" fill=\"none\" cx=\"{}\" cy=\"{}\" r=\"{MARK}\"/>",
            super::number(left),
            super::number(height)
        ));
        // Below a plateau and to the right of its edge there is room.
        canvas.text("tick", (left + MARK + 3.0, (height + 20.0).min(bottom - 6.0)), Anchor::Start, name);
    }
    framed(&canvas.finish(), (WIDTH, bottom + BELOW), drawing.caption, true)
}

fn class(drawing: &RangeCurves<'_>, index: usize) -> String {
    colour(index, drawing.curves.len(), true)
}

fn draw_curve(canvas: &mut Canvas, curve: &RangeCurve, class: &str, at: impl Fn(f64, f64) -> Option<(f64, f64)>) {
    let points: Vec<(f64, f64)> = curve.points.iter().filter_map(|(place, [mean, ..])| at(*place, *mean)).collect();
    canvas.path(&format!("line thin {class}"), &super::canvas::through(&points));
    for (place, [mean, low, high]) in &curve.points {
        if let (Some(low), Some(high)) = (at(*place, *low), at(*place, *high)) {
            canvas.line(&format!("leader {class}"), low, high);
        }
        if let Some(point) = at(*place, *mean) {
            canvas.circle(&format!("dot {class}"), point, 2.6);
        }
    }
}

/// Writes the legend and returns the height below it.
fn legend(canvas: &mut Canvas, drawing: &RangeCurves<'_>, top: f64) -> f64 {
    let mut row = LegendRow::at(top, canvas, WIDTH);
    for (index, curve) in drawing.curves.iter().enumerate() {
        row.sample(&format!("line {}", class(drawing, index)), &curve.name);
    }
    row.sample("published", drawing.equal);
    row.end() + 8.0
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPTION: Caption<'_> = Caption { id: "goodput", title: "Goodput <1>", shows: "Goodput & loss" };
    const RATE: Quantity<'_> = Quantity { name: "Goodput", unit: Unit::BitsPerSecond };

    #[test]
    fn a_surface_has_each_number_once_in_its_unit() {
        let texts = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect();
        let drawn = surface(&Surface {
            caption: CAPTION,
            value: RATE,
            across: ("Time between bursts", texts(&["1500us", "100us"])),
            up: ("Datagrams in a burst", texts(&["1", "12"])),
            cells: vec![(0, 0, 7.8e6), (1, 0, 117e6), (1, 1, 940e6)],
        });
        for text in ["1.5\u{a0}ms", "100\u{a0}µs", ">7.8<", ">117<", ">940<", "Goodput (Mbit/s)", "Goodput &lt;1&gt;"]
        {
            assert_eq!(drawn.matches(text).count(), 1 + usize::from(text.contains("&lt;")), "{text} in {drawn}");
        }
        assert!(drawn.starts_with("<svg") && drawn.trim_end().ends_with("</svg>"));
    }

    #[test]
    fn curves_have_ranges_names_and_a_mark() {
        let curve = |name: &str, scale: f64| RangeCurve {
            name: name.to_owned(),
            points: (1..4).map(|step| (f64::from(step) * 1e8, [scale * f64::from(step) * 1e8; 3])).collect(),
        };
        let drawn = range_curves(&RangeCurves {
            caption: CAPTION,
            across: Quantity { name: "Sending rate", unit: Unit::BitsPerSecond },
            up: RATE,
            curves: vec![curve("W = 2", 1.0), curve("W = 5", 0.9)],
            equal: "everything arrives",
            marked: Some(((2e8, 2e8), "best")),
        });
        assert_eq!(drawn.matches("class=\"dot").count(), 6);
        assert_eq!(drawn.matches("class=\"leader").count(), 6);
        for text in ["W = 2", "W = 5", "everything arrives", "best", "Sending rate (Mbit/s)"] {
            assert!(drawn.contains(text), "{text}");
        }
        assert!(!drawn.contains("NaN") && !drawn.contains("inf"));
    }

    #[test]
    fn nothing_measured_draws_axes_only() {
        let drawn = range_curves(&RangeCurves {
            caption: CAPTION,
            across: RATE,
            up: RATE,
            curves: Vec::new(),
            equal: "equal",
            marked: None,
        });
        assert!(!drawn.contains("NaN") && !drawn.contains("inf"), "{drawn}");
    }
}
