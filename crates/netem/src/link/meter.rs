//! How full a queue was, over time.

use farhaul_units::Instant;

use crate::{QueueDepth, Tally};

/// Watches one queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Meter {
    high_water: Tally,
    packet_nanos: u128,
    byte_nanos: u128,
    /// Until when the integrals go.
    until: Instant,
}

impl Meter {
    /// `waiting` has been true since the last call; it may change at `now`.
    pub(super) fn elapse(&mut self, now: Instant, waiting: Tally) {
        if waiting.packets > 0 {
            let nanos = u128::from(now.as_nanos().saturating_sub(self.until.as_nanos()));
            self.packet_nanos += nanos * u128::from(waiting.packets);
            self.byte_nanos += nanos * u128::from(waiting.bytes);
        }
        self.until = self.until.max(now);
    }

    /// Packets have arrived, and `waiting` are waiting.
    pub(super) fn note(&mut self, waiting: Tally) {
        self.high_water = self.high_water.max(waiting);
    }

    pub(super) fn depth(&self, waiting: Tally, average: f64) -> QueueDepth {
        QueueDepth {
            waiting,
            high_water: self.high_water,
            packet_nanos: self.packet_nanos,
            byte_nanos: self.byte_nanos,
            average,
        }
    }
}
