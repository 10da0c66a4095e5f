//! A drawing of a distribution: how many measured values fall into each of some bins.

use super::canvas::{Anchor, Canvas};
use super::chart::upright;
use super::panel::{ROW, colour};
use super::scale::{Scale, round_up};
use super::surface::{BELOW, Caption, LEFT, Quantity, RIGHT, across};
use super::{WIDTH, framed};
use crate::scenario::Scale as Spacing;

/// Height of the bars.
const HEIGHT: f64 = 240.0;
/// Space between two bars.
const GAP: f64 = 2.0;
/// A last bin that is wider than the first by this factor holds everything above.
const WIDER: f64 = 1.01;

/// Counts of values in bins.
#[derive(Clone, Debug)]
pub struct Histogram<'a> {
    /// Its name.
    pub caption: Caption<'a>,
    /// The measured quantity, across.
    pub across: Quantity<'a>,
    /// The name of the counted things, upwards.
    pub counted: &'a str,
    /// From, to and count of each bin, in order. All are as wide as the first one. A wider last one holds all values
    /// above: it is drawn as wide as the others and says so.
    pub bins: Vec<(f64, f64, u64)>,
    /// Values that stand out, and their names.
    pub marked: Vec<(f64, &'a str)>,
}

/// Draws a histogram. The text of an SVG file.
#[must_use]
pub fn histogram(drawing: &Histogram<'_>) -> String {
    let mut canvas = Canvas::alone(true);
    canvas.text("title", (6.0, 20.0), Anchor::Start, drawing.caption.title);
    canvas.text("words", (6.0, 20.0 + ROW), Anchor::Start, drawing.counted);
    // Names of marks stand above the bars.
    let top = 20.0 + 3.0 * ROW;
    let bottom = top + HEIGHT;
    match drawing.bins.first() {
        Some(&(first, end, _)) => draw(&mut canvas, drawing, (first, end - first), (top, bottom)),
        None => {
            canvas.text("words", (WIDTH / 2.0, (top + bottom) / 2.0), Anchor::Middle, "no data");
            canvas.line("axis", (LEFT, bottom), (WIDTH - RIGHT, bottom));
        }
    }
    framed(&canvas.finish(), (WIDTH, bottom + BELOW), drawing.caption, true)
}

fn draw(canvas: &mut Canvas, drawing: &Histogram<'_>, (first, step): (f64, f64), (top, bottom): (f64, f64)) {
    let right = first + step * drawing.bins.len() as f64;
    let most = drawing.bins.iter().map(|(.., count)| *count).max().unwrap_or(0).max(1);
    let x = Scale::new(Spacing::Linear, (first, right), (LEFT, WIDTH - RIGHT));
    let y = Scale::new(Spacing::Linear, (0.0, round_up(most as f64)), (bottom, top));
    upright(canvas, &y, (LEFT, WIDTH - RIGHT), |count| (count.fract() == 0.0).then(|| format!("{count}")));
    let class = format!("bar {}", colour(0, 1, false));
    for (index, &(_, _, count)) in drawing.bins.iter().enumerate() {
        let edge = |index: usize| x.place(first + step * index as f64);
        let (Some(left), Some(end), Some(height)) = (edge(index), edge(index + 1), y.place(count as f64)) else {
            continue;
        };
        if count > 0 {
            canvas.rect(&class, (left + GAP / 2.0, height), (end - left - GAP, bottom - height), None);
            // Small counts beside a large one would not be seen.
            canvas.text("tick", ((left + end) / 2.0, height - 4.0), Anchor::Middle, &count.to_string());
        }
    }
    let shown = across(canvas, &x, bottom, (drawing.across, right));
    for (value, name) in &drawing.marked {
        let Some(place) = x.place(*value).filter(|_| (first..=right).contains(value)) else { continue };
        canvas.line("published", (place, top - ROW), (place, bottom));
        canvas.text("tick", (place + 4.0, top - ROW), Anchor::Start, name);
    }
    if let Some(&(from, to, _)) = drawing.bins.last()
        && to - from > step * WIDER
    {
        let above = format!("the last bar: up to {}\u{a0}{}", shown.number(to), shown.suffix);
        canvas.text("words", (WIDTH - RIGHT, 20.0 + ROW), Anchor::End, &above);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expression::Unit;

    fn drawn(bins: Vec<(f64, f64, u64)>, marked: Vec<(f64, &str)>) -> String {
        histogram(&Histogram {
            caption: Caption { id: "delays", title: "Delays", shows: "Delays of messages" },
            across: Quantity { name: "Round trip", unit: Unit::Seconds },
            counted: "messages",
            bins,
            marked,
        })
    }

    #[test]
    fn every_filled_bin_has_a_bar_with_its_count() {
        let bins = vec![(0.011, 0.012, 143), (0.012, 0.013, 0), (0.013, 0.014, 2)];
        let drawn = drawn(bins, vec![(0.0115, "mean")]);
        assert_eq!(drawn.matches("class=\"bar").count(), 2);
        for text in [">143<", ">2<", ">mean<", "Round trip (ms)", ">messages<"] {
            assert!(drawn.contains(text), "{text} in {drawn}");
        }
        assert!(!drawn.contains("the last bar") && !drawn.contains("NaN"), "{drawn}");
    }

    #[test]
    fn a_wide_last_bin_is_as_wide_as_the_others_and_tells_its_end() {
        let drawn = drawn(vec![(0.011, 0.012, 5), (0.012, 0.4, 1)], vec![(0.2, "far away")]);
        assert!(drawn.contains("the last bar: up to 400") && !drawn.contains("far away"), "{drawn}");
    }

    #[test]
    fn nothing_measured_is_said() {
        let drawn = drawn(Vec::new(), Vec::new());
        assert!(drawn.contains("no data") && !drawn.contains("NaN") && !drawn.contains("inf"));
    }
}
