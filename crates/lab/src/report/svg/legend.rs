//! Names of lines: labels at their ends, or a legend above the panels, never on the data.

use super::canvas::{Anchor, Canvas, rows, through, width};
use super::data::PlotSource;
use super::marks::symbol;
use super::panel::{Area, Panel, ROW};
use super::scale::Scale;
use super::words::capital;
use crate::paper::Bound;

/// Left edge of legends.
const LEFT: f64 = 6.0;
/// Width of a sample of a line.
const SAMPLE: f64 = 26.0;
/// From one entry to the next.
const GAP: f64 = 18.0;
/// The distance between labels at the ends of lines.
const APART: f64 = 16.0;
/// Lines whose ends are closer than this have no visible order.
const TOGETHER: f64 = 6.0;
/// From a line's end to the sample of the line beside its label.
const LEADER: f64 = 14.0;
/// The width of that sample.
const KEY: f64 = 16.0;

/// Writes the legend above all panels and returns its height: marks, and the lines unless they are labelled.
pub(super) fn above(canvas: &mut Canvas, source: &PlotSource<'_>, panels: &[Panel], of: usize, labelled: bool) -> f64 {
    let mut row = LegendRow::at(14.0, canvas, source.width);
    let by = source.by_words();
    // Over time, the title of a panel names the point of the grid.
    let over_time = panels.iter().flat_map(|panel| &panel.lines).any(|line| line.over_time);
    if !by.is_empty() && !over_time {
        row.text(&if labelled { format!("Lines by {by}") } else { format!("{}:", capital(&by)) });
    }
    if !labelled {
        let mut seen: Vec<(&str, String)> = Vec::new();
        for line in panels.iter().flat_map(|panel| &panel.lines) {
            let entry = (line.label.as_str(), line.class(of));
            if !seen.contains(&entry) {
                row.sample(&format!("line {}", entry.1), &line.label);
                seen.push(entry);
            }
        }
    }
    let marks = panels.iter().flat_map(|panel| &panel.marks);
    row.meaning(source, marks.map(|mark| mark.bound), has_bands(panels));
    row.end()
}

/// Writes the legend of a drawing without lines.
pub(super) fn meaning(
    canvas: &mut Canvas,
    source: &PlotSource<'_>,
    curves: &[(String, &str)],
    bounds: Vec<Bound>,
    bars: bool,
) -> f64 {
    let mut row = LegendRow::at(14.0, canvas, source.width);
    for (class, label) in curves {
        row.block(class, label);
    }
    row.meaning(source, bounds.into_iter(), bars);
    row.end()
}

fn has_bands(panels: &[Panel]) -> bool {
    panels.iter().flat_map(|panel| &panel.lines).any(|line| !line.band.is_empty())
}

/// Entries from left to right, in as many rows as they need.
pub(super) struct LegendRow<'c> {
    canvas: &'c mut Canvas,
    x: f64,
    y: f64,
    width: f64,
}

impl<'c> LegendRow<'c> {
    /// Entries from the height `y` down, on a drawing of this width.
    pub(super) fn at(y: f64, canvas: &'c mut Canvas, width: f64) -> Self {
        Self { canvas, x: LEFT, y, width }
    }

    /// The height below all entries.
    pub(super) fn end(self) -> f64 {
        if self.x > LEFT { self.y + 10.0 } else { self.y - 14.0 }
    }

    fn make_room(&mut self, needed: f64) {
        if self.x > LEFT && self.x + needed > self.width - LEFT {
            self.x = LEFT;
            self.y += ROW;
        }
    }

    fn text(&mut self, text: &str) {
        self.make_room(width(text));
        self.canvas.text("words", (self.x, self.y), Anchor::Start, text);
        self.x += width(text) + 10.0;
    }

    pub(super) fn sample(&mut self, class: &str, label: &str) {
        self.make_room(SAMPLE + 6.0 + width(label));
        let middle = self.y - 4.0;
        self.canvas.line(class, (self.x, middle), (self.x + SAMPLE, middle));
        self.labelled(SAMPLE, label);
    }

    fn block(&mut self, class: &str, label: &str) {
        self.make_room(SAMPLE + width(label));
        self.canvas.rect(&format!("bar {class}"), (self.x, self.y - 9.0), (12.0, 10.0), None);
        self.labelled(12.0, label);
    }

    fn labelled(&mut self, sample: f64, label: &str) {
        let indent = self.x + sample + 6.0;
        let rows = rows(label, self.width - LEFT - indent);
        for (number, row) in rows.iter().enumerate() {
            self.y += if number > 0 { ROW } else { 0.0 };
            self.canvas.text("words", (indent, self.y), Anchor::Start, row);
        }
        // A label of several rows takes the whole width.
        self.x = if rows.len() > 1 { self.width } else { indent + width(label) + GAP };
    }

    fn meaning(&mut self, source: &PlotSource<'_>, bounds: impl Iterator<Item = Bound>, interval: bool) {
        let bounds: Vec<Bound> = bounds.collect();
        for (bound, label) in [
            (Bound::Is, "published"),
            (Bound::About, "published: about"),
            (Bound::AtLeast, "published: at least"),
            (Bound::AtMost, "published: at most"),
        ] {
            if bounds.contains(&bound) {
                self.make_room(12.0 + 6.0 + width(label));
                symbol(self.canvas, (self.x + 6.0, self.y - 4.0), bound, "");
                self.labelled(12.0, label);
            }
        }
        if interval {
            let seeds = source.figure.scenario.seeds.len();
            self.text(&format!("± 95\u{a0}% interval of {seeds} seeds"));
        }
    }
}

/// The widest label at the end of a line. A longer one belongs in a legend above.
const MOST_ROOM: f64 = 190.0;

/// Whether the labels of a panel of this height fit beside their lines without overlap.
pub(super) fn fits(panel: &Panel, height: f64) -> bool {
    let rows = (height / APART).floor() as usize + 1;
    panel.lines.len() <= rows && panel.lines.iter().all(|line| width(&line.label) <= MOST_ROOM)
}

/// The space for labels at the ends of a panel's lines.
pub(super) fn room(panel: &Panel) -> f64 {
    let widest = panel.lines.iter().map(|line| width(&line.label)).fold(0.0, f64::max);
    LEADER + KEY + 14.0 + widest.min(MOST_ROOM)
}

/// Draws a label at the end of each line.
pub(super) fn beside(canvas: &mut Canvas, panel: &Panel, (x, y): (&Scale, &Scale), area: &Area, of: usize) {
    let mut ends: Vec<(usize, (f64, f64))> = Vec::new();
    for (index, line) in panel.lines.iter().enumerate() {
        let last = line.points.last().and_then(|(value, height)| Some((x.place(*value)?, y.place(*height)?)));
        if let Some((right, height)) = last {
            ends.push((index, (right, height.clamp(area.top, area.bottom))));
        }
    }
    order(&mut ends);
    let mut heights: Vec<f64> = ends.iter().map(|(_, end)| end.1).collect();
    heights.sort_by(f64::total_cmp);
    for ((index, end), label) in ends.iter().zip(spread(&heights, area.top, area.bottom)) {
        let line = &panel.lines[*index];
        if line.label.is_empty() {
            continue;
        }
        let knee = area.right.max(end.0) + 4.0;
        let key = knee + LEADER;
        canvas.path(&format!("leader {}", line.class(of)), &through(&[*end, (knee, end.1), (key, label)]));
        canvas.line(&format!("line {}", line.class(of)), (key, label), (key + KEY, label));
        canvas.text("words", (key + KEY + 4.0, label + 4.0), Anchor::Start, &line.label);
    }
}

/// Orders labels from top to bottom as the ends of their lines. Ends without a visible order keep the order of the
/// lines, so that `udt-2` follows `udt-1`.
fn order(ends: &mut [(usize, (f64, f64))]) {
    ends.sort_by(|one, other| one.1.1.total_cmp(&other.1.1));
    let mut begin = 0;
    while begin < ends.len() {
        let top = ends[begin].1.1;
        let close = ends[begin..].iter().take_while(|(_, end)| end.1 - top <= TOGETHER).count();
        ends[begin..begin + close].sort_by_key(|(index, _)| *index);
        begin += close;
    }
}

/// Positions as near as possible to the wanted ones, which rise, without overlap.
fn spread(wanted: &[f64], top: f64, bottom: f64) -> Vec<f64> {
    let mut places: Vec<f64> = Vec::with_capacity(wanted.len());
    for height in wanted {
        let least = places.last().map_or(top, |last| last + APART);
        places.push(height.max(least));
    }
    let mut most = bottom;
    for place in places.iter_mut().rev() {
        *place = place.min(most);
        most = *place - APART;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_never_meet() {
        let places = spread(&[10.0, 10.0, 11.0, 95.0, 99.0], 0.0, 100.0);
        assert!(places.windows(2).all(|pair| pair[1] - pair[0] >= APART - 1e-9), "{places:?}");
        assert!(places.iter().all(|place| (0.0..=100.0).contains(place)));
        assert_eq!(spread(&[20.0, 70.0], 0.0, 100.0), [20.0, 70.0]);
    }

    #[test]
    fn labels_of_lines_that_end_together_stand_in_the_order_of_the_lines() {
        let mut ends = [(2, (0.0, 50.0)), (0, (0.0, 51.0)), (1, (0.0, 49.0)), (3, (0.0, 5.0))];
        order(&mut ends);
        assert_eq!(ends.map(|(index, _)| index), [3, 0, 1, 2]);
    }
}
