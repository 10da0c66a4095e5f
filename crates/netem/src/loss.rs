//! Which packets get lost on the link.

mod bernoulli;
mod pattern;

pub use bernoulli::Bernoulli;
pub use pattern::{ParsePatternError, Pattern};

/// A loss model as a path description names it.
#[derive(Clone, Debug, PartialEq)]
pub enum LossSpec {
    /// Each packet by itself, with this probability in 0..=1.
    Bernoulli(f64),
    /// Chosen packets.
    Pattern(Pattern),
}
