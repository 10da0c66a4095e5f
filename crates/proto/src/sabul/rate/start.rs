//! Ours: the start of a transfer. It doubles a modest rate until less arrives than leaves (departure D301).
//!
//! The original begins at 1.2 Gbit/s, whatever the path. Most of the first seconds is then lost on slower ones.
//!
//! ```text
//! rate     10 packets per RTT at first, which counts as 1 ms at least
//! settled  one RTT and 20 ms after a change; arrivals are then counted for half an RTT, at least 20 ms and 10 packets
//! then     arrivals ≥ 0.9·rate: rate ← 2·rate;  else rate ← arrivals/1.125, and the law takes over
//! ```

use farhaul_units::{Duration, Instant};

/// Packets per RTT of the first rate.
const FIRST_PACKETS: f64 = 10.0;
/// Shortest RTT that counts. A loopback would begin at full speed.
const SHORTEST_ROUND_TRIP: Duration = Duration::from_millis(1);
/// The rate doubles as long as this share of it arrives.
const KEEPS_UP: f64 = 0.9;
/// Less is counted than a measurement needs below this time and this number of packets.
const SHORTEST_MEASUREMENT: Duration = Duration::from_millis(20);
const FEWEST_ARRIVALS: u64 = 10;
/// Losses of fewer packets show nothing.
const FEWEST_SENT: u64 = 100;
/// The rate found is lower by the law's own step, so that the queue drains.
const MARGIN: f64 = 1.125;
/// The rate found is at least the last one but two: fewer arrivals show a disturbance and not the path.
const LARGEST_FALL: f64 = 4.0;

/// A start-up under way.
#[derive(Debug)]
pub(super) struct StartUp {
    /// I, µs, and the shortest.
    interval: f64,
    shortest: f64,
    round_trip: Duration,
    /// Not before then do arrivals show the present rate.
    settled: Instant,
    packets: u64,
    time: Duration,
    /// Packets sent and losses reported at the present rate.
    sent: u64,
    lost: u64,
}

impl StartUp {
    pub(super) fn new(round_trip: Duration, shortest: f64, now: Instant) -> Self {
        let round_trip = round_trip.max(SHORTEST_ROUND_TRIP);
        let interval = (round_trip.as_secs_f64() * 1e6 / FIRST_PACKETS).max(shortest);
        Self {
            interval,
            shortest,
            round_trip,
            settled: now + round_trip + SHORTEST_MEASUREMENT,
            packets: 0,
            time: Duration::ZERO,
            sent: 0,
            lost: 0,
        }
    }

    /// I, µs.
    pub(super) const fn interval(&self) -> f64 {
        self.interval
    }

    /// Time after which arrivals show a new rate: one RTT, and a report of arrivals from before.
    fn settling(&self) -> Duration {
        self.round_trip + SHORTEST_MEASUREMENT
    }

    pub(super) fn set_round_trip(&mut self, round_trip: Duration) {
        self.round_trip = round_trip.max(SHORTEST_ROUND_TRIP);
    }

    pub(super) fn on_sent(&mut self, packets: u32) {
        self.sent += u64::from(packets);
    }

    pub(super) fn on_losses(&mut self, losses: u32) {
        self.lost += u64::from(losses);
    }

    /// `packets` arrived in `time`. `busy` is whether the sender always had something to send. Returns I once it is
    /// found.
    pub(super) fn on_arrivals(&mut self, now: Instant, packets: u64, time: Duration, busy: bool) -> Option<f64> {
        if now < self.settled || !busy {
            (self.packets, self.time) = (0, Duration::ZERO);
            let was_settled = now >= self.settled;
            if !busy {
                self.settled = self.settled.max(now + self.settling());
            }
            // Arrivals of an idle sender show nothing, but its losses do.
            let too_fast = self.sent >= FEWEST_SENT && self.lost as f64 > (1.0 - KEEPS_UP) * self.sent as f64;
            return (too_fast && was_settled).then_some(2.0 * self.interval);
        }
        (self.packets, self.time) = (self.packets + packets, self.time + time);
        let expected = self.time.as_secs_f64() * 1e6 / self.interval;
        if self.time < SHORTEST_MEASUREMENT.max(self.round_trip / 2) || expected < FEWEST_ARRIVALS as f64 {
            return None;
        }
        // The last packet may be on its way.
        let share = (self.packets + 1) as f64 / expected;
        if share < KEEPS_UP || self.interval <= self.shortest {
            let slower = (1.0 / share).clamp(1.0, LARGEST_FALL);
            return Some(self.interval * slower * if share < KEEPS_UP { MARGIN } else { 1.0 });
        }
        self.interval = (self.interval / 2.0).max(self.shortest);
        (self.settled, self.packets, self.time) = (now + self.settling(), 0, Duration::ZERO);
        (self.sent, self.lost) = (0, 0);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: Duration = Duration::from_millis(10);

    /// I found on a path of this many packets per second, and the time it took.
    fn find(capacity: f64, round_trip: Duration) -> (f64, Duration) {
        let mut start = StartUp::new(round_trip, 1.0, Instant::ZERO);
        let mut now = Instant::ZERO;
        let mut arrived = 0.0;
        loop {
            now += STEP;
            let before = arrived;
            arrived += (1e6 / start.interval()).min(capacity) * STEP.as_secs_f64();
            let packets = libm::floor(arrived) - libm::floor(before);
            if let Some(found) = start.on_arrivals(now, packets as u64, STEP, true) {
                return (found, now - Instant::ZERO);
            }
            assert!(now < Instant::ZERO + Duration::from_secs(60), "it never ends");
        }
    }

    #[test]
    fn it_ends_one_step_below_the_capacity_of_the_path() {
        for (capacity, millis) in [(83_333.0, 100), (8_333.0, 1), (833.0, 20), (200.0, 200)] {
            let (interval, _) = find(capacity, Duration::from_millis(millis));
            let share = 1e6 / interval / capacity;
            assert!((0.8..=1.0).contains(&share), "{share} of {capacity} packets/s at {millis} ms");
        }
    }

    #[test]
    fn a_gigabit_at_100_ms_takes_three_seconds() {
        let (_, time) = find(83_333.0, Duration::from_millis(100));
        assert!(time < Duration::from_secs(3), "{time:?}");
    }

    #[test]
    fn arrivals_of_an_idle_sender_show_nothing() {
        let mut start = StartUp::new(Duration::from_millis(10), 1.0, Instant::ZERO);
        for tick in 1..100 {
            assert_eq!(start.on_arrivals(Instant::ZERO + STEP * tick, 0, STEP, false), None);
        }
        assert_eq!(start.interval(), 1_000.0);
    }

    #[test]
    fn losses_of_a_sender_that_is_often_idle_end_it() {
        let mut start = StartUp::new(Duration::from_millis(10), 1.0, Instant::ZERO);
        start.on_sent(1_000);
        start.on_losses(99);
        assert_eq!(start.on_arrivals(Instant::ZERO + STEP * 4, 0, STEP, false), None, "a tenth is tolerated");
        start.on_losses(2);
        assert_eq!(start.on_arrivals(Instant::ZERO + STEP * 8, 0, STEP, false), Some(2_000.0));
    }

    #[test]
    fn the_fastest_rate_ends_it() {
        let mut start = StartUp::new(Duration::from_millis(1), 100.0, Instant::ZERO);
        let found = (1..100).find_map(|tick| start.on_arrivals(Instant::ZERO + STEP * tick, 100, STEP, true));
        assert_eq!(found, Some(100.0));
    }
}
