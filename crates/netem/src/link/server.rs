//! Takes packets out of the queue and puts them on the link.

use farhaul_units::Instant;

use super::opportunities::Opportunities;
use super::transmitter::Transmitter;

/// Sends one packet after the other.
#[derive(Clone, Debug)]
pub(super) enum Server {
    /// At a rate, constant or changing.
    Rate(Transmitter),
    /// At the delivery opportunities of a recorded link.
    Trace(Opportunities),
}

impl Server {
    /// When the next transmission can begin.
    pub(super) fn free_at(&self) -> Instant {
        match self {
            Self::Rate(transmitter) => transmitter.free_at(),
            Self::Trace(opportunities) => opportunities.free_at(),
        }
    }

    /// Skips the idle time before `now`.
    pub(super) fn idle_until(&mut self, now: Instant) {
        match self {
            Self::Rate(transmitter) => transmitter.idle_until(now),
            Self::Trace(opportunities) => opportunities.idle_until(now),
        }
    }

    /// Sends a packet and returns when its last bit is out.
    pub(super) fn send(&mut self, bytes: u32) -> Instant {
        match self {
            Self::Rate(transmitter) => transmitter.send(bytes),
            Self::Trace(opportunities) => opportunities.send(bytes),
        }
    }
}
