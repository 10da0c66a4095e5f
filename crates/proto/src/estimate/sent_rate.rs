//! How fast this side sent of late, which bounds what a peer can claim to have received.

use farhaul_units::{Duration, Instant, PacketRate};

use crate::udt::consts::SYN_INTERVAL;

/// A receiver cannot see packets arrive faster than this multiple of the rate they were sent at (attack B9).
const MAX_ARRIVAL_RATIO: f64 = 2.0;

/// The fastest that this side sent of late: bounds what the peer can claim to have received (attack B9). A pause does not
/// lower it: what arrives now left half a round trip ago.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SentRate {
    /// The present SYN interval, and the packets that left in it.
    interval: (Instant, u64),
    /// Most packets in one interval, in this period and in the one before.
    most: u64,
    most_before: u64,
    period_start: Instant,
}

impl SentRate {
    pub(crate) const fn new(now: Instant) -> Self {
        Self { interval: (now, 0), most: 0, most_before: 0, period_start: now }
    }

    /// Packets left.
    pub(crate) fn note(&mut self, now: Instant, packets: u32) {
        let (since, count) = &mut self.interval;
        if now - *since >= SYN_INTERVAL {
            (*since, *count) = (now, 0);
        }
        *count += u64::from(packets);
        self.most = self.most.max(*count);
    }

    /// What can have arrived at most.
    pub(crate) fn at_most(&mut self, now: Instant, round_trip: Duration) -> PacketRate {
        if now - self.period_start >= (2 * round_trip).max(SYN_INTERVAL) {
            self.most_before = std::mem::replace(&mut self.most, self.interval.1);
            self.period_start = now;
        }
        let most = self.most.max(self.most_before);
        PacketRate::new(most as f64 / SYN_INTERVAL.as_secs_f64() * MAX_ARRIVAL_RATIO)
    }
}
