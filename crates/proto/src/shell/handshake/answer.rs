//! The last packet of a handshake, which the peer may request again.

use farhaul_units::{Duration, Instant};
use farhaul_wire::udt4::Handshake;

/// The state of the answer to the peer's handshake.
#[derive(Debug, Default)]
pub(crate) enum Answer {
    /// No answer was requested yet.
    #[default]
    None,
    Due(Box<Handshake>),
    SentAt(Instant),
}

impl Answer {
    /// Whether another answer may be sent: at most one per RTT (attack A7).
    pub(crate) fn is_rested(&self, now: Instant, round_trip: Duration) -> bool {
        match self {
            Self::None => true,
            Self::Due(_) => false,
            Self::SentAt(at) => now - *at >= round_trip,
        }
    }

    /// Queues `packet` as the answer.
    pub(crate) fn give(&mut self, packet: Handshake) {
        *self = Self::Due(Box::new(packet));
    }

    /// The answer to send now.
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
