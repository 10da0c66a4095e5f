//! The last word of a handshake, which the peer may ask for again.

use farhaul_units::{Duration, Instant};
use farhaul_wire::udt4::Handshake;

/// Where the answer to the peer's handshake stands.
#[derive(Debug, Default)]
pub(crate) enum Answer {
    /// Nothing was asked yet.
    #[default]
    None,
    Due(Box<Handshake>),
    SentAt(Instant),
}

impl Answer {
    /// Whether another one may be sent: one leaves in each round trip at most (attack A7).
    pub(crate) fn is_rested(&self, now: Instant, round_trip: Duration) -> bool {
        match self {
            Self::None => true,
            Self::Due(_) => false,
            Self::SentAt(at) => now - *at >= round_trip,
        }
    }

    /// This is to be sent.
    pub(crate) fn give(&mut self, packet: Handshake) {
        *self = Self::Due(Box::new(packet));
    }

    /// The packet to send now.
    pub(crate) fn poll(&mut self, now: Instant) -> Option<Handshake> {
        if !self.is_due() {
            return None;
        }
        match std::mem::replace(self, Self::SentAt(now)) {
            Self::Due(packet) => Some(*packet),
            Self::None | Self::SentAt(_) => None,
        }
    }

    pub(crate) const fn is_due(&self) -> bool {
        matches!(self, Self::Due(_))
    }
}
