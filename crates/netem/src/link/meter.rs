//! Depth of a queue over time.

use farhaul_units::Instant;

use crate::counters::{QueueDepth, Tally};

/// Records the depth of one queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Meter {
    high_water: Tally,
    packet_nanos: u128,
    byte_nanos: u128,
    /// The integrals cover the time up to here.
    until: Instant,
}

impl Meter {
    /// Adds the time since the last call, during which `waiting` did not change.
    pub(super) fn elapse(&mut self, now: Instant, waiting: Tally) {
        if waiting.packets > 0 {
            let nanos = u128::from(now.as_nanos().saturating_sub(self.until.as_nanos()));
            self.packet_nanos += nanos * u128::from(waiting.packets);
            self.byte_nanos += nanos * u128::from(waiting.bytes);
        }
        self.until = self.until.max(now);
    }

    /// Records that the queue holds `waiting` after arrivals.
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
