//! Panels: sets of axes with their lines and marks.

use super::marks::Mark;
use crate::aggregate::Estimate;
use crate::report::style::{DASHES, HUES, STEPS};

/// Height of a line of text.
pub(super) const ROW: f64 = 18.0;

/// One line of a panel.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) label: String,
    /// The index of its colour in the drawing.
    pub(super) colour: usize,
    /// Whether the lines have an order.
    pub(super) ordered: bool,
    /// Whether its runs were emulated.
    pub(super) emulated: bool,
    /// Whether it is a series, which has no marks at its points.
    pub(super) over_time: bool,
    pub(super) points: Vec<(f64, f64)>,
    /// `(x, low, high)`.
    pub(super) band: Vec<(f64, f64, f64)>,
}

impl Line {
    pub(super) fn new(label: String) -> Self {
        Self {
            label,
            colour: 0,
            ordered: false,
            emulated: false,
            over_time: false,
            points: Vec::new(),
            band: Vec::new(),
        }
    }

    /// Adds a point with its interval, if there is one.
    pub(super) fn add(&mut self, x: f64, estimate: Option<Estimate>) {
        let Some(Estimate { mean, half_width }) = estimate else { return };
        self.points.push((x, mean));
        self.band.extend(half_width.map(|half| (x, mean - half, mean + half)));
    }

    /// The classes of its colour and dash.
    pub(super) fn class(&self, of: usize) -> String {
        in_world(colour(self.colour, of, self.ordered), self.emulated)
    }
}

/// The classes of the colour of one of several things. With more things than colours, also the class of a dash.
pub(super) fn colour(index: usize, of: usize, ordered: bool) -> String {
    let (colour, dash) = if ordered && of > 2 {
        let step = ((index * (STEPS - 1)) as f64 / (of - 1) as f64).round() as usize;
        // With more lines than steps, neighbours may have the same colour.
        (format!("r{}", step.min(STEPS - 1)), if of > STEPS { index % 2 } else { 0 })
    } else {
        (format!("s{}", index % HUES), index / HUES % (DASHES + 1))
    };
    if dash == 0 { colour } else { format!("{colour} d{dash}") }
}

/// Adds the class of emulated runs.
pub(super) fn in_world(class: String, emulated: bool) -> String {
    if emulated { class + " emulated" } else { class }
}

/// One set of axes.
#[derive(Clone, Debug, Default)]
pub(super) struct Panel {
    pub(super) title: String,
    /// The point of the grid. Panels of the same point share their vertical axis.
    pub(super) group: usize,
    pub(super) lines: Vec<Line>,
    pub(super) marks: Vec<Mark>,
}

/// The area of a panel's lines.
pub(super) struct Area {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}
