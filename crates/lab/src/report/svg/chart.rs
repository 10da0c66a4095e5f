//! Panels with lines: axes, bands, lines, published marks.

use std::collections::BTreeMap;

use super::canvas::{Anchor, Canvas, number, rows, through, width};
use super::data::{PlotSource, shown, with_unit};
use super::escape;
use super::legend;
use super::marks::{Mark, Spot, symbol};
use super::panel::{Area, Line, Panel, ROW};
use super::scale::{Scale, round_up};
use crate::expression::{Shown, Unit};
use crate::scenario::Scale as Spacing;

/// The most space for labels at the ends of lines, as a share of the panel, where several panels stand side by side.
const MOST_FOR_LABELS: f64 = 0.3;

/// Panels share an axis unless one of them would use less than this share of it.
const FLAT: f64 = 0.2;

/// Space to the left of a panel, for tick labels.
const LEFT: f64 = 52.0;
/// Space to the right of a panel without labels.
const RIGHT: f64 = 14.0;
/// Space below a panel, for tick labels and the axis' name.
const BELOW: f64 = 44.0;
/// Space for a tick's label, horizontally and vertically.
const TICK_WIDTH: f64 = 52.0;
const TICK_HEIGHT: f64 = 34.0;
/// The least space between the labels of two ticks.
const APART: f64 = 8.0;
/// From the axis' name to the top of the plot, so that the name stays clear of the topmost tick.
pub(super) const CLEAR: f64 = 14.0;
/// From the end of the axis to the first and last value, so that no mark sits on the axis.
const INSET: f64 = 8.0;

/// The horizontal axis.
#[derive(Clone, Debug)]
pub(super) struct Horizontal {
    /// The name of the axis or metric, or `time`.
    pub(super) name: String,
    pub(super) unit: Unit,
    /// The values of the grid; none over time.
    pub(super) values: Vec<f64>,
    /// The words of the values, if they are no numbers.
    pub(super) words: Vec<String>,
}

/// The settings that all panels share.
struct Frame<'a> {
    source: &'a PlotSource<'a>,
    horizontal: &'a Horizontal,
    x_range: (f64, f64),
    x_shown: Shown,
    /// Number of colours.
    colours: usize,
    labelled: bool,
    /// The width of a panel with its margins.
    cell: f64,
}

/// Draws all panels and returns the height.
pub(super) fn draw(canvas: &mut Canvas, source: &PlotSource<'_>, content: (Horizontal, Vec<Panel>)) -> f64 {
    let (horizontal, panels) = content;
    if panels.iter().all(|panel| panel.lines.iter().all(|line| line.points.is_empty())) {
        canvas.text("words", (source.width / 2.0, 44.0), Anchor::Middle, super::data::nothing(source));
        return 80.0;
    }
    let over_time = panels.iter().any(|panel| panel.lines.iter().any(|line| line.over_time));
    let together = panels.len() == 1 || (over_time && panels.len() <= 2);
    let columns = if together || source.is_narrow() { 1 } else { 2 };
    let height = if panels.len() == 1 { 250.0 } else { 170.0 };
    let cell = source.width / columns as f64;
    let room = panels.iter().map(legend::room).fold(0.0, f64::max);
    let is_roomy = (panels.len() == 1 && !source.is_narrow()) || room <= MOST_FOR_LABELS * cell;
    let labelled = is_roomy && panels.iter().all(|panel| legend::fits(panel, height));
    let colours = panels.iter().flat_map(|panel| &panel.lines).map(|line| line.colour + 1).max().unwrap_or(1);
    let x_range = x_range(source, &horizontal, &panels);
    let x_shown = shown(&source.plot.x_axis, horizontal.unit, x_range.1);
    let frame = Frame { source, horizontal: &horizontal, x_range, x_shown, colours, labelled, cell };

    let own_axes = over_time || uneven(&panels);
    let mut top = legend::above(canvas, source, &panels, colours, labelled);
    let right = if labelled { room } else { RIGHT };
    let title_rows = panels.iter().map(|panel| title_rows(&panel.title, cell).len()).max().unwrap_or(0);
    let head = ROW * (title_rows + 1) as f64;
    for (index, row) in panels.chunks(columns).enumerate() {
        for (column, panel) in row.iter().enumerate() {
            let left = column as f64 * cell;
            let area = Area {
                left: left + LEFT,
                right: left + cell - right,
                top: top + head + CLEAR - 4.0,
                bottom: top + head + CLEAR - 4.0 + height,
            };
            let y_range = y_range(source, panels.iter().filter(|other| !own_axes || other.group == panel.group));
            frame.panel(canvas, panel, &area, y_range, index * columns + column);
        }
        top += head + CLEAR - 4.0 + height + BELOW;
    }
    top
}

/// Whether some group of panels would be flat on a shared axis.
fn uneven(panels: &[Panel]) -> bool {
    let mut greatest: BTreeMap<usize, f64> = BTreeMap::new();
    for panel in panels {
        let points = panel.lines.iter().flat_map(|line| &line.points).map(|point| point.1.abs());
        let of_group = greatest.entry(panel.group).or_default();
        *of_group = points.fold(*of_group, f64::max);
    }
    let of_groups = || greatest.values().copied().filter(|value| *value > 0.0);
    of_groups().fold(f64::INFINITY, f64::min) < FLAT * of_groups().fold(0.0, f64::max)
}

/// The title in one row. If it does not fit, the curve is in the first row and the point in the second, each in as many rows
/// as it needs.
fn title_rows(title: &str, room: f64) -> Vec<String> {
    // Titles are bold and a tenth wider.
    let room = (room - 12.0) / 1.1;
    if width(title) <= room {
        return if title.is_empty() { Vec::new() } else { vec![title.to_owned()] };
    }
    let parts = title.split_once(": ").map_or(vec![title], |(curve, point)| vec![curve, point]);
    parts.into_iter().flat_map(|part| rows(part, room)).collect()
}

impl Frame<'_> {
    fn panel(&self, canvas: &mut Canvas, panel: &Panel, area: &Area, y_range: (f64, f64), index: usize) {
        let plot = self.source.plot;
        let x = Scale::new(plot.x_axis.scale, self.x_range, (area.left + INSET, area.right - INSET));
        let y = Scale::new(plot.y_axis.scale, y_range, (area.bottom, area.top));
        self.titles(canvas, panel, area, y_range);
        let shown = shown(&plot.y_axis, self.source.unit(), y_range.1);
        upright(canvas, &y, (area.left, area.right), |tick| Some(shown.number(tick)));
        self.across(canvas, &x, area);

        let clip = format!("{}-panel-{index}", self.source.id());
        let [left, top, width, height] =
            [area.left, area.top - 2.0, area.right - area.left, area.bottom - area.top + 4.0].map(number);
        canvas.put(&format!(
            "<clipPath id=\"{0}\"><rect x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{height}\"/></clipPath>\n\
             <g clip-path=\"url(#{0})\">",
            clip
        ));
        for line in &panel.lines {
            self.line(canvas, line, &x, &y);
        }
        canvas.put("</g>");
        for mark in &panel.marks {
            self.mark(canvas, panel, mark, (&x, &y), area);
        }
        if self.labelled {
            legend::beside(canvas, panel, (&x, &y), area, self.colours);
        }
    }

    fn titles(&self, canvas: &mut Canvas, panel: &Panel, area: &Area, y_range: (f64, f64)) {
        let plot = self.source.plot;
        let left = area.left - LEFT + 6.0;
        for (above, row) in title_rows(&panel.title, self.cell).into_iter().rev().enumerate() {
            canvas.text("title", (left, area.top - CLEAR - ROW * (above + 1) as f64), Anchor::Start, &row);
        }
        let shown = shown(&plot.y_axis, self.source.unit(), y_range.1);
        let words = with_unit(&self.source.y_words(), shown);
        canvas.text("words", (area.left - LEFT + 6.0, area.top - CLEAR), Anchor::Start, &words);
    }

    fn across(&self, canvas: &mut Canvas, x: &Scale, area: &Area) {
        let plot = self.source.plot;
        canvas.line("axis", (area.left, area.bottom), (area.right, area.bottom));
        let counts = matches!(self.horizontal.unit, Unit::Packets | Unit::Number);
        let with_units = plot.x_axis.scale == Spacing::Log && plot.x_axis.unit.is_none() && !counts;
        let label = |tick: f64| match self.horizontal.words.get(tick as usize) {
            Some(word) => word.clone(),
            None if with_units => self.horizontal.unit.print(tick),
            None => self.x_shown.number(tick),
        };
        let widest = self.horizontal.values.iter().map(|value| width(&label(*value))).fold(0.0, f64::max);
        for tick in x.ticks(&self.horizontal.values, TICK_WIDTH.max(widest + APART)) {
            let Some(place) = x.place(tick) else { continue };
            canvas.line("axis", (place, area.bottom), (place, area.bottom + 4.0));
            let text = label(tick);
            // Keeps the last label on the drawing.
            let middle = place.min(self.source.width - width(&text) / 2.0);
            canvas.text("tick", (middle, area.bottom + 17.0), Anchor::Middle, &text);
        }
        let words = self.source.x_words(&self.horizontal.name);
        let words = if with_units { words } else { with_unit(&words, self.x_shown) };
        canvas.text("words", ((area.left + area.right) / 2.0, area.bottom + 34.0), Anchor::Middle, &words);
    }

    fn line(&self, canvas: &mut Canvas, line: &Line, x: &Scale, y: &Scale) {
        let class = line.class(self.colours);
        let at = |(value, height): (f64, f64)| Some((x.place(value)?, y.place(height)?));
        let there = line.band.iter().filter_map(|(value, _, high)| at((*value, *high)));
        let back = line.band.iter().rev().filter_map(|(value, low, _)| at((*value, *low)));
        let band: Vec<(f64, f64)> = there.chain(back).collect();
        if line.band.len() > 1 {
            canvas.path(&format!("band {class}"), &format!("{}Z", through(&band)));
        } else if let [one, other] = band[..] {
            canvas.line(&format!("line {class}"), one, other);
        }
        let points: Vec<(f64, f64)> = line.points.iter().filter_map(|point| at(*point)).collect();
        let kind = if line.over_time { "line thin" } else { "line" };
        canvas.path(&format!("{kind} {class}"), &through(&points));
        if !line.over_time {
            for point in points {
                canvas.circle(&format!("dot {class}"), point, 2.6);
            }
        }
    }

    fn mark(&self, canvas: &mut Canvas, panel: &Panel, mark: &Mark, (x, y): (&Scale, &Scale), area: &Area) {
        let class = panel.lines.get(mark.line).map(|line| line.class(self.colours)).unwrap_or_default();
        let Some(height) = y.place(mark.spot.value()) else { return };
        if !(area.top - 0.5..=area.bottom + 0.5).contains(&height) {
            return;
        }
        let place = match mark.spot {
            Spot::At(value, _) => x.place(value),
            Spot::Across(_) => {
                canvas.line("published", (area.left, height), (area.right, height));
                Some(area.right - INSET)
            }
        };
        canvas.put(&format!("<g><title>published: {}</title>", escape(&mark.text)));
        if let Some(place) = place {
            symbol(canvas, (place, height), mark.bound, &class);
        }
        canvas.put("</g>");
    }
}

/// Draws grid lines from the left to the right edge, and the labels of the vertical axis. A tick without a label has no
/// line.
pub(super) fn upright(
    canvas: &mut Canvas,
    y: &Scale,
    (left, right): (f64, f64),
    label: impl Fn(f64) -> Option<String>,
) {
    // Numbers of a logarithmic axis may stand closer: between decades there are few round ones.
    let room = if y.is_log() { ROW } else { TICK_HEIGHT };
    for tick in y.ticks(&[], room) {
        let Some((place, label)) = y.place(tick).zip(label(tick)) else { continue };
        canvas.line("grid", (left, place), (right, place));
        canvas.text("tick", (left - 8.0, place + 4.0), Anchor::End, &label);
    }
}

fn x_range(source: &PlotSource<'_>, horizontal: &Horizontal, panels: &[Panel]) -> (f64, f64) {
    if let Some([low, high]) = source.plot.x_axis.range {
        return (low, high);
    }
    let points = panels.iter().flat_map(|panel| &panel.lines).flat_map(|line| &line.points).map(|point| point.0);
    let (low, high) = extent(points.chain(horizontal.values.iter().copied()));
    if horizontal.name == "time" { (low.min(0.0), high) } else { (low, high) }
}

fn y_range<'p>(source: &PlotSource<'_>, panels: impl Iterator<Item = &'p Panel>) -> (f64, f64) {
    let mut values = Vec::new();
    let mut least = f64::INFINITY;
    for panel in panels {
        let points = || panel.lines.iter().flat_map(|line| &line.points).map(|point| point.1);
        least = points().fold(least, f64::min);
        values.extend(points());
        values.extend(panel.lines.iter().flat_map(|line| &line.band).flat_map(|(_, low, high)| [*low, *high]));
        values.extend(panel.marks.iter().map(|mark| mark.spot.value()));
    }
    let (low, high) = range_of(source, values);
    // A rate, time or share is never negative. Where all values are positive, intervals below zero are cut off.
    let linear = source.plot.y_axis.range.is_none() && source.plot.y_axis.scale == Spacing::Linear;
    (if linear && least >= 0.0 { low.max(0.0) } else { low }, high)
}

/// The range of the vertical axis: the scenario's, or from zero to the first round number above all values.
pub(super) fn range_of(source: &PlotSource<'_>, values: Vec<f64>) -> (f64, f64) {
    let axis = &source.plot.y_axis;
    if let Some([low, high]) = axis.range {
        return (low, high);
    }
    match axis.scale {
        Spacing::Log => extent(values.into_iter().filter(|value| *value > 0.0)),
        Spacing::Linear => {
            let (low, high) = extent(values);
            let round = if source.unit() == Unit::Share { round_up(high.min(1.0)) } else { round_up(high) };
            (low.min(0.0), round.max(low.min(0.0)))
        }
    }
}

pub(super) fn extent(values: impl IntoIterator<Item = f64>) -> (f64, f64) {
    let found = values.into_iter().filter(|value| value.is_finite()).fold(None, |found: Option<(f64, f64)>, value| {
        let (low, high) = found.unwrap_or((value, value));
        Some((low.min(value), high.max(value)))
    });
    found.unwrap_or((0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::super::WIDTH;
    use super::*;

    #[test]
    fn a_title_that_is_too_long_for_its_panel_takes_two_rows() {
        let title = "UDT of the 2004 paper: link 100mbit-1ms, queue drop-tail";
        assert_eq!(title_rows(title, WIDTH), [title]);
        assert_eq!(title_rows(title, WIDTH / 2.0), ["UDT of the 2004 paper", "link 100mbit-1ms, queue drop-tail"]);
        assert!(title_rows("", WIDTH).is_empty());
        let long = "Goodput target 1 Mbit/s, datagrams in a burst 2, loss 0.04 %, round-trip time 100 ms";
        let rows = title_rows(long, WIDTH / 2.0);
        assert!(rows.len() == 2 && rows.iter().all(|row| 1.1 * width(row) <= WIDTH / 2.0), "{rows:?}");
    }
}
