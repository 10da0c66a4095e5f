//! The instants at which a recorded link delivers packets.

use farhaul_units::Instant;

use crate::trace::{DeliveryTrace, OPPORTUNITY_BYTES, TUNNEL_HEADER};

const NANOS_PER_MILLISECOND: u64 = 1_000_000;

/// Serves packets one after the other at the delivery opportunities of a trace.
#[derive(Clone, Debug)]
pub(super) struct Opportunities {
    trace: DeliveryTrace,
    /// Index of the present or next opportunity within its period.
    index: usize,
    /// When that period began, in nanoseconds.
    period_start: u64,
    /// Bytes left in that opportunity. Never zero: a used-up opportunity is replaced by the next one at once.
    left: u32,
}

impl Opportunities {
    pub(super) fn new(trace: DeliveryTrace) -> Self {
        Self { trace, index: 0, period_start: 0, left: OPPORTUNITY_BYTES }
    }

    /// When the next packet can begin to leave.
    pub(super) fn free_at(&self) -> Instant {
        let stamp = u64::from(self.trace.stamps()[self.index]) * NANOS_PER_MILLISECOND;
        Instant::from_nanos(self.period_start.saturating_add(stamp))
    }

    /// Lets the opportunities up to and including `now` pass unused. As in mahimahi, a packet that arrives exactly at
    /// an opportunity has missed it.
    pub(super) fn idle_until(&mut self, now: Instant) {
        if now < self.free_at() {
            return;
        }
        let period = u64::from(self.trace.period()) * NANOS_PER_MILLISECOND;
        let now = now.as_nanos();
        self.period_start = now - now % period;
        let elapsed = now - self.period_start;
        // The last stamp ends the period, later than every instant within it, so the search always finds one.
        self.index = self.trace.stamps().partition_point(|stamp| u64::from(*stamp) * NANOS_PER_MILLISECOND <= elapsed);
        self.left = OPPORTUNITY_BYTES;
    }

    /// Sends a packet from the present opportunity on. Returns the instant of the opportunity that sends its last byte.
    pub(super) fn send(&mut self, bytes: u32) -> Instant {
        let mut needed = bytes.saturating_add(TUNNEL_HEADER);
        while needed > self.left {
            needed -= self.left;
            self.next_opportunity();
        }
        let end = self.free_at();
        self.left -= needed;
        if self.left == 0 {
            self.next_opportunity();
        }
        end
    }

    fn next_opportunity(&mut self) {
        self.left = OPPORTUNITY_BYTES;
        self.index += 1;
        if self.index == self.trace.opportunities() {
            self.index = 0;
            let period = u64::from(self.trace.period()) * NANOS_PER_MILLISECOND;
            self.period_start = self.period_start.saturating_add(period);
        }
    }
}
