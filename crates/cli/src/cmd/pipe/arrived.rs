//! What the other side of a pipe sent.

use farhaul_session::{MAX_REFUSAL, refusal_in};
use farhaul_units::Instant;

/// What arrived, and when.
#[derive(Default)]
pub(super) struct Arrived {
    pub(super) bytes: u64,
    pub(super) first: Option<Instant>,
    pub(super) last: Option<Instant>,
    /// As many of its first bytes as a refusal may have.
    head: Vec<u8>,
}

impl Arrived {
    pub(super) fn add(&mut self, bytes: &[u8], now: Instant) {
        self.first.get_or_insert(now);
        self.last = Some(now);
        self.bytes += bytes.len() as u64;
        let room = MAX_REFUSAL - self.head.len();
        self.head.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// Whether all of it is what a daemon of this program says to a caller that does not speak its protocol.
    pub(super) fn is_refusal(&self) -> bool {
        self.bytes == self.head.len() as u64 && refusal_in(&self.head).is_some()
    }
}
