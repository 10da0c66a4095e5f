//! Models of packet loss on the link.

mod bernoulli;
mod bit_errors;
mod gilbert_elliott;
mod pattern;
mod periodic;
mod recorded;
mod sparing;

pub use bernoulli::Bernoulli;
pub use bit_errors::BitErrors;
pub use gilbert_elliott::{GilbertElliott, GilbertElliottSpec};
pub use pattern::{ParsePatternError, Pattern};
pub use periodic::Periodic;
pub use recorded::{LossTrace, MAX_RECORDED_PACKETS, ParseLossTraceError, RecordedLoss};
pub use sparing::Sparing;

use farhaul_units::Instant;

use crate::{Impairment, Outlet, WireLen};

/// A rule that decides which packets the link loses. The others pass at once.
pub trait LossModel {
    /// Whether a packet of `bytes` bytes that comes at `now` is lost. Called once for each packet, in order.
    fn loses(&mut self, now: Instant, bytes: u32) -> bool;
}

impl<P: WireLen, L: LossModel> Impairment<P> for L {
    fn apply(&mut self, now: Instant, packet: P, out: &mut Outlet<P>) {
        if self.loses(now, packet.wire_len()) { out.lose(packet) } else { out.pass(now, packet) }
    }
}

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
