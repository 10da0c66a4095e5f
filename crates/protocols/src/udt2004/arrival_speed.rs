//! Arrival speed: the median filter of paper:udt-2004 §3.5.1 over the last sixteen intervals.
//!
//! Packets of one receive call share the time since the call before evenly, because merged packets have no intervals of
//! their own (departure D130). With one packet per call, this is exactly the paper's filter.

use farhaul_units::{Duration, Instant, PacketRate};

/// Intervals kept. Source: paper §3.5.1.
const WINDOW: usize = 16;
/// Intervals further than this factor from the median are discarded. Source: paper §3.5.1.
const OUTLIER: u64 = 8;
/// More than this many intervals must remain. Source: paper §3.5.1.
const ENOUGH: usize = 8;

/// The last intervals between arrivals.
#[derive(Clone, Debug, Default)]
pub(super) struct ArrivalSpeed {
    /// Nanoseconds. The newest overwrites the oldest.
    intervals: [u64; WINDOW],
    /// Intervals seen so far.
    seen: usize,
    last: Option<Instant>,
}

impl ArrivalSpeed {
    /// `packets` packets arrived together.
    pub(super) fn on_arrival(&mut self, now: Instant, packets: u32) {
        let Some(last) = self.last.replace(now) else { return };
        let each = (now - last).as_nanos() as u64 / u64::from(packets.max(1));
        for _ in 0..packets.min(WINDOW as u32) {
            self.intervals[self.seen % WINDOW] = each;
            self.seen += 1;
        }
    }

    /// Packets per second; `None` if too few intervals agree, for which the paper reports 0.
    pub(super) fn estimate(&self) -> Option<PacketRate> {
        if self.seen < WINDOW {
            return None;
        }
        let mut sorted = self.intervals;
        sorted.sort_unstable();
        let median = (sorted[WINDOW / 2 - 1] + sorted[WINDOW / 2]) / 2;
        //= paper:udt-2004 §3.5.1: without those above 8M and below M/8
        let kept = || sorted.iter().filter(|&&nanos| nanos <= median * OUTLIER && nanos >= median / OUTLIER);
        let (count, sum) = (kept().count(), kept().sum::<u64>());
        (count > ENOUGH && sum > 0).then(|| PacketRate::new(1e9 * count as f64 / sum as f64))
    }

    /// The mean of the kept intervals, pauses included; zero without any.
    pub(super) fn mean_interval(&self) -> Duration {
        let count = self.seen.min(WINDOW);
        let sum: u64 = self.intervals[..count].iter().sum();
        Duration::from_nanos(sum / count.max(1) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The estimate after packets with these intervals in microseconds.
    fn after(micros: &[u64]) -> Option<f64> {
        let mut speed = ArrivalSpeed::default();
        let mut now = Instant::ZERO;
        speed.on_arrival(now, 1);
        for &gap in micros {
            now += Duration::from_micros(gap);
            speed.on_arrival(now, 1);
        }
        speed.estimate().map(PacketRate::packets_per_second)
    }

    #[test]
    fn sixteen_equal_intervals_are_the_speed() {
        assert_eq!(after(&[100; 15]), None);
        assert!((after(&[100; 16]).unwrap() - 10_000.0).abs() < 1e-6);
    }

    #[test]
    fn intervals_beyond_eight_medians_or_below_an_eighth_are_left_out() {
        let mut gaps = [80; 16];
        gaps[3] = 641;
        gaps[9] = 9;
        assert!((after(&gaps).unwrap() - 12_500.0).abs() < 1e-6);
        gaps[3] = 640;
        gaps[9] = 10;
        let mean = (14.0 * 80.0 + 640.0 + 10.0) / 16.0;
        assert!((after(&gaps).unwrap() - 1e6 / mean).abs() < 1e-6);
    }

    #[test]
    fn there_is_no_speed_unless_more_than_eight_intervals_agree() {
        let mut gaps = [10_000; 16];
        gaps[..8].fill(100);
        // The median lies between both halves, and neither half agrees with it: 8 · 100 < 5050 < 10000.
        assert_eq!(after(&gaps), None);
        gaps[8] = 100;
        assert!((after(&gaps).unwrap() - 10_000.0).abs() < 1e-6, "nine of sixteen");
    }

    #[test]
    fn packets_of_one_receive_call_share_its_time() {
        let mut speed = ArrivalSpeed::default();
        for call in 0..4u64 {
            speed.on_arrival(Instant::ZERO + Duration::from_millis(call), 8);
        }
        assert!((speed.estimate().unwrap().packets_per_second() - 8_000.0).abs() < 1e-6);
        assert_eq!(speed.mean_interval(), Duration::from_micros(125));
    }

    #[test]
    fn a_median_of_zero_is_no_speed() {
        let mut speed = ArrivalSpeed::default();
        (0..40).for_each(|_| speed.on_arrival(Instant::ZERO, 1));
        assert_eq!(speed.estimate(), None);
    }
}
