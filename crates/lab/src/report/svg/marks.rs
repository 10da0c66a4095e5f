//! Marks for published numbers. They always have an outline in ink, so that readers do not take them for ours.

use super::canvas::{Canvas, through};
use crate::paper::Bound;

/// The place of a published number.
#[derive(Clone, Copy, Debug)]
pub(super) enum Spot {
    /// At a value of the horizontal axis.
    At(f64, f64),
    /// At all values of the horizontal axis.
    Across(f64),
}

impl Spot {
    pub(super) fn value(self) -> f64 {
        match self {
            Self::At(_, value) | Self::Across(value) => value,
        }
    }
}

/// A published number in a panel.
#[derive(Clone, Debug)]
pub(super) struct Mark {
    pub(super) spot: Spot,
    pub(super) bound: Bound,
    /// The index of the line that the number is about.
    pub(super) line: usize,
    /// The number as it was written.
    pub(super) text: String,
}

/// From the centre of a mark to its corners.
const RADIUS: f64 = 5.0;

/// A diamond for a number, hollow for "about", or a triangle that points to the allowed values.
pub(super) fn symbol(canvas: &mut Canvas, at: (f64, f64), bound: Bound, colour: &str) {
    let (x, y) = at;
    let r = RADIUS;
    let corners = match bound {
        Bound::Is | Bound::About => vec![(x, y - r), (x + r, y), (x, y + r), (x - r, y)],
        Bound::AtLeast => vec![(x - r, y), (x + r, y), (x, y - 1.6 * r)],
        Bound::AtMost => vec![(x - r, y), (x + r, y), (x, y + 1.6 * r)],
    };
    let fill = if bound == Bound::About { "mark hollow" } else { "mark" };
    canvas.path(&format!("{fill} {colour}"), &format!("{}Z", through(&corners)));
}

/// A published number in words: `≥ 98%`.
pub(crate) fn in_words(text: &str, bound: Bound) -> String {
    match bound {
        Bound::Is => text.to_owned(),
        Bound::About => format!("about {text}"),
        Bound::AtLeast => format!("≥ {text}"),
        Bound::AtMost => format!("≤ {text}"),
    }
}
