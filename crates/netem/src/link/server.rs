//! What takes packets out of the queue and puts them on the link.

use farhaul_units::Instant;

use super::opportunities::Opportunities;
use super::transmitter::Transmitter;

/// Serves one packet after the other.
#[derive(Clone, Debug)]
pub(super) enum Server {
    /// At a rate, constant or not.
    Rate(Transmitter),
    /// When a recorded link did.
    Trace(Opportunities),
}

impl Server {
    /// When the next packet can begin.
    pub(super) fn free_at(&self) -> Instant {
        match self {
            Self::Rate(transmitter) => transmitter.free_at(),
            Self::Trace(opportunities) => opportunities.free_at(),
        }
    }

    /// Forgets the time before `now`, during which nothing was sent.
    pub(super) fn idle_until(&mut self, now: Instant) {
        match self {
            Self::Rate(transmitter) => transmitter.idle_until(now),
            Self::Trace(opportunities) => opportunities.idle_until(now),
        }
    }

    /// Sends a packet and says when its last bit is out.
    pub(super) fn send(&mut self, bytes: u32) -> Instant {
        match self {
            Self::Rate(transmitter) => transmitter.send(bytes),
            Self::Trace(opportunities) => opportunities.send(bytes),
        }
    }
}
