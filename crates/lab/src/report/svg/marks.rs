//! Marks for what a paper reports: always in ink, never in a curve's colour alone, so that nobody takes them for ours.

use super::canvas::{Canvas, through};
use crate::figures::Bound;

/// Where a published number stands.
#[derive(Clone, Copy, Debug)]
pub(super) enum Spot {
    /// At a value of the horizontal axis.
    At(f64, f64),
    /// At all of them.
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
    /// Which line of the panel it is about.
    pub(super) line: usize,
    /// As it was written.
    pub(super) text: String,
}

/// From the middle of a mark to its corners.
const RADIUS: f64 = 5.0;

/// A diamond for a number, hollow if it is about one; a triangle that points to where the value may lie.
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

/// How a published number is said: `≥ 98%`.
pub(crate) fn in_words(text: &str, bound: Bound) -> String {
    match bound {
        Bound::Is => text.to_owned(),
        Bound::About => format!("about {text}"),
        Bound::AtLeast => format!("≥ {text}"),
        Bound::AtMost => format!("≤ {text}"),
    }
}
