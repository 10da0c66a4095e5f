//! How fast packets arrive, for the peer's controller.
//!
//! libudt takes the median of 16 gaps between packets. Receive offloads make gaps meaningless (all packets of one call
//! arrive "at once"), so this side counts packets over time instead, one SYN interval at least.

use farhaul_units::{Duration, Instant, PacketRate};

use crate::udt::consts::SYN_INTERVAL;

/// Fewest packets that make a measurement; libudt needs more than eight valid gaps of sixteen.
const MIN_PACKETS: u64 = 8;
/// A slow flow is measured over at most this long.
const MAX_WINDOW: Duration = Duration::from_millis(500);

/// Packets counted since the last measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArrivalRate {
    since: Option<Instant>,
    packets: u64,
    latest: Option<PacketRate>,
}

impl ArrivalRate {
    pub(crate) const fn new() -> Self {
        Self { since: None, packets: 0, latest: None }
    }

    /// `packets` packets arrived.
    pub(crate) fn on_arrival(&mut self, now: Instant, packets: u64) {
        match self.since {
            // The first packets only start the clock: when those before them would have come is not known.
            None => self.since = Some(now),
            Some(_) => self.packets += packets,
        }
    }

    /// The speed since the last measurement if enough arrived; otherwise the last one. `None` when there never was one,
    /// or nothing came for long.
    pub(crate) fn measure(&mut self, now: Instant) -> Option<PacketRate> {
        let elapsed = now - self.since?;
        if elapsed >= SYN_INTERVAL && self.packets >= MIN_PACKETS {
            self.latest = PacketRate::from_packets_in(self.packets, elapsed);
            self.since = Some(now);
            self.packets = 0;
        } else if elapsed > MAX_WINDOW {
            *self = Self::new();
        }
        self.latest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_in_one_call_counts_over_the_time_it_took() {
        let mut rate = ArrivalRate::new();
        let mut now = Instant::ZERO;
        for _ in 0..11 {
            rate.on_arrival(now, 40);
            now += Duration::from_millis(1);
        }
        let measured = rate.measure(Instant::ZERO + Duration::from_millis(10)).unwrap();
        assert!((measured.packets_per_second() - 40_000.0).abs() < 1.0, "{measured}");
    }

    #[test]
    fn nothing_is_known_before_enough_arrived() {
        let mut rate = ArrivalRate::new();
        rate.on_arrival(Instant::ZERO, 1);
        assert_eq!(rate.measure(Instant::ZERO + Duration::from_millis(10)), None);
    }
}
