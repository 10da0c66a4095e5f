//! This side's recent peak send rate, which bounds the arrival rate that a peer can claim.

use farhaul_units::{Duration, Instant, PacketRate};

use crate::consts::SYN_INTERVAL;

/// A receiver cannot see packets arrive faster than this multiple of their send rate (attack B9).
const MAX_ARRIVAL_RATIO: f64 = 2.0;
/// Shortest memory of the peak. A driver that wakes late sends little in one interval and more in the next.
const MEMORY: Duration = SYN_INTERVAL.saturating_mul(10);

/// This side's recent peak send rate, which bounds the arrival rate that a peer can claim (attack B9). A pause does not
/// lower it, because packets that arrive now were sent half an RTT ago.
#[derive(Clone, Copy, Debug)]
pub struct SentRate {
    /// Start of the present SYN interval, and the packets sent in it.
    interval: (Instant, u64),
    /// Most packets in one interval, in this period and in the one before.
    most: u64,
    most_before: u64,
    period_start: Instant,
}

impl SentRate {
    /// Nothing was sent yet.
    pub const fn new(now: Instant) -> Self {
        Self { interval: (now, 0), most: 0, most_before: 0, period_start: now }
    }

    /// Counts sent packets.
    pub fn note(&mut self, now: Instant, packets: u32) {
        let (since, count) = &mut self.interval;
        if now - *since >= SYN_INTERVAL {
            (*since, *count) = (now, 0);
        }
        *count += u64::from(packets);
        self.most = self.most.max(*count);
    }

    /// The largest credible arrival rate: twice the peak send rate.
    pub fn at_most(&mut self, now: Instant, round_trip: Duration) -> PacketRate {
        if now - self.period_start >= (2 * round_trip).max(MEMORY) {
            self.most_before = std::mem::replace(&mut self.most, self.interval.1);
            self.period_start = now;
        }
        let most = self.most.max(self.most_before);
        PacketRate::new(most as f64 / SYN_INTERVAL.as_secs_f64() * MAX_ARRIVAL_RATIO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND_TRIP: Duration = Duration::from_millis(1);

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// A driver that sent 100 packets in each of ten intervals, and then half of that.
    fn sent() -> SentRate {
        let mut sent = SentRate::new(at(0));
        (0..10).for_each(|syn| sent.note(at(syn * 10), 100));
        sent.note(at(100), 50);
        sent
    }

    #[test]
    fn the_arrival_rate_is_at_most_twice_the_send_rate() {
        assert!((sent().at_most(at(110), ROUND_TRIP).packets_per_second() - 20_000.0).abs() < 1e-6);
    }

    #[test]
    fn one_interval_of_a_late_driver_does_not_lower_it_and_a_tenth_of_a_second_does() {
        let mut sent = sent();
        let mut at_most = |millis| {
            sent.note(at(millis), 50);
            sent.at_most(at(millis), ROUND_TRIP).packets_per_second()
        };
        assert!((at_most(120) - 20_000.0).abs() < 1e-6 && (at_most(200) - 20_000.0).abs() < 1e-6);
        assert!((at_most(220) - 10_000.0).abs() < 1e-6);
    }
}
