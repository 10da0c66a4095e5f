//! The data from the other side of a pipe.

use farhaul_session::{MAX_REFUSAL, refusal_in};
use farhaul_units::Instant;

/// Amount and times of the received data.
#[derive(Default)]
pub(super) struct Arrived {
    pub(super) bytes: u64,
    pub(super) first: Option<Instant>,
    pub(super) last: Option<Instant>,
    /// The first bytes, up to the longest refusal.
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

    /// Whether all data is the refusal that a daemon of this program sends to callers of another protocol.
    pub(super) fn is_refusal(&self) -> bool {
        self.bytes == self.head.len() as u64 && refusal_in(&self.head).is_some()
    }
}
