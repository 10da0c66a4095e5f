//! Models of packet loss on the link.

mod bernoulli;
mod bit_errors;
mod gilbert_elliott;
mod model;
mod pattern;
mod periodic;
mod recorded;
mod sparing;

pub use bernoulli::Bernoulli;
pub use bit_errors::BitErrors;
pub use gilbert_elliott::{GilbertElliott, GilbertElliottSpec};
pub use model::LossModel;
pub use pattern::{ParsePatternError, Pattern};
pub use periodic::Periodic;
pub use recorded::{LossTrace, MAX_RECORDED_PACKETS, ParseLossTraceError, RecordedLoss};
pub use sparing::Sparing;

/// A loss model, as a path description names it.
#[derive(Clone, Debug, PartialEq)]
pub enum LossSpec {
    /// Independent loss of each packet, with this probability in 0..=1.
    Bernoulli(f64),
    /// Bursts of loss from a link with a good and a bad state.
    GilbertElliott(GilbertElliottSpec),
    /// Independent bit errors with this probability in 0..=1. A packet with a wrong bit is lost.
    BitErrors(f64),
    /// One packet of every period.
    Periodic(Periodic),
    /// Chosen packets, at most 64.
    Pattern(Pattern),
    /// Chosen packets, at most [`MAX_RECORDED_PACKETS`].
    Trace(LossTrace),
}
