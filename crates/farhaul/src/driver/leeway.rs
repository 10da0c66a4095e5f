//! How long packets may wait for others, so that one wake-up of the driver thread serves them together.
//!
//! A wait of a small part of the round trip costs nobody anything. Where the round trip is short or unknown, or connections are many, the
//! wait is as short as pays at all.

use std::time::Duration;

use farhaul_units::Instant;

/// Shortest leeway. Pacing asks for a train more often above 100 Mbit/s, and paced traffic of 1 Gbit/s brings a datagram every 12 µs, but
/// a wake-up costs more than a train. Half a millisecond gathers forty packets, and is short compared with any wide-area RTT.
pub(super) const LEAST: Duration = Duration::from_micros(500);
/// Longest leeway. Linux sends paced TCP in trains of 1 ms at most, so queues along the path cope with them.
const MOST: Duration = Duration::from_millis(1);
/// Part of the round trip.
const SHARE: u32 = 10;
/// Interval of looking at the round trips.
const INTERVAL: Duration = Duration::from_millis(100);
/// Most connections whose round trips are looked at.
pub(super) const MOST_CONNECTIONS: usize = 8;

/// The leeway of a driver thread.
#[derive(Debug)]
pub(super) struct Leeway {
    time: Duration,
    next_look: Instant,
}

impl Default for Leeway {
    fn default() -> Self {
        Self { time: LEAST, next_look: Instant::ZERO }
    }
}

impl Leeway {
    /// The leeway.
    pub(super) const fn time(&self) -> Duration {
        self.time
    }

    /// Looks at the shortest round trip, now and then. `None` if it is unknown.
    pub(super) fn look(&mut self, now: Instant, round_trip: impl FnOnce() -> Option<Duration>) {
        if now >= self.next_look {
            self.next_look = now + INTERVAL;
            self.time = (round_trip().unwrap_or_default() / SHARE).clamp(LEAST, MOST);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_leeway_is_a_part_of_the_round_trip_within_bounds() {
        for (micros, leeway) in [(None, 500), (Some(40), 500), (Some(7_000), 700), (Some(100_000), 1_000)] {
            let mut one = Leeway::default();
            one.look(Instant::ZERO, || micros.map(Duration::from_micros));
            assert_eq!(one.time(), Duration::from_micros(leeway), "{micros:?}");
        }
    }

    #[test]
    fn round_trips_are_looked_at_now_and_then() {
        let (mut leeway, mut looks) = (Leeway::default(), 0);
        for millis in 0..1_000 {
            leeway.look(Instant::from_nanos(millis * 1_000_000), || {
                looks += 1;
                None
            });
        }
        assert_eq!(looks, 10);
    }
}
