//! Capacity estimate from probe pairs. Two packets sent back to back arrive as far apart as the bottleneck serves them.
//!
//! Every 16th packet and its successor form a pair. A pair that the kernel merged into one train counts as closer than
//! measurable. Without merged pairs, only pairs separated by other traffic would remain. A gigabit would then look like
//! a tenth of it.

use farhaul_units::{Instant, PacketRate, SeqNo};

/// Distance of pairs in packets. Source: UDT4 wire, §2.
pub(crate) const PROBE_INTERVAL: u32 = 16;
/// Pair intervals kept. Source: libudt 4.11 (the draft says 16).
pub(crate) const WINDOW: usize = 64;
/// Fewest intervals for an estimate.
const MIN_SAMPLES: usize = 4;
/// Interval of packets in one train, ns. libudt measures such a pair as two receive calls in a row.
const MERGED: u64 = 1_000;
/// Intervals further than this factor from the median are discarded (2004 paper §3.2).
const OUTLIER: u64 = 8;

/// Median-filtered probe pair intervals.
#[derive(Clone, Debug)]
pub(crate) struct Capacity {
    /// The first packet of a pair, until the second arrives.
    pending: Option<(SeqNo, Instant)>,
    /// Intervals in nanoseconds, the newest overwrites the oldest. Grows with arriving pairs, because most connections
    /// of a busy port get few.
    intervals: Vec<u64>,
    next: usize,
}

impl Capacity {
    pub(crate) const fn new() -> Self {
        Self { pending: None, intervals: Vec::new(), next: 0 }
    }

    /// A packet arrived. `now` is the arrival time of its train.
    #[inline]
    pub(crate) fn on_arrival(&mut self, seq: SeqNo, now: Instant) {
        match seq.value() % PROBE_INTERVAL {
            0 => self.pending = Some((seq, now)),
            1 => {
                if let Some((first, at)) = self.pending.take()
                    && first.next() == seq
                {
                    self.record(((now - at).as_nanos() as u64).max(MERGED));
                }
            }
            _ => {}
        }
    }

    /// The bottleneck's rate in packets per second; `None` without enough pairs.
    pub(crate) fn estimate(&self) -> Option<PacketRate> {
        if self.intervals.len() < MIN_SAMPLES {
            return None;
        }
        let mut sorted = self.intervals.clone();
        let middle = sorted.len() / 2;
        let median = *sorted.select_nth_unstable(middle).1;
        let good = || sorted.iter().filter(|&&ns| ns > median / OUTLIER && ns < median * OUTLIER);
        let mean = good().sum::<u64>() as f64 / good().count().max(1) as f64;
        Some(PacketRate::new(1e9 / mean))
    }

    fn record(&mut self, nanos: u64) {
        if self.intervals.len() < WINDOW {
            self.intervals.push(nanos);
        } else {
            self.intervals[self.next] = nanos;
        }
        self.next = (self.next + 1) % WINDOW;
    }
}

#[cfg(test)]
mod tests {
    use farhaul_units::Duration;

    use super::*;

    #[test]
    fn a_gigabit_link_spaces_pairs_by_twelve_microseconds() {
        let mut capacity = Capacity::new();
        for i in 0..100u32 {
            let at = Instant::ZERO + Duration::from_micros(1_000) * i;
            // Other traffic separates a tenth of the pairs.
            let gap = if i % 10 == 0 { 500 } else { 12 };
            capacity.on_arrival(SeqNo::new(16 * i), at);
            capacity.on_arrival(SeqNo::new(16 * i + 1), at + Duration::from_micros(gap));
        }
        let rate = capacity.estimate().unwrap().packets_per_second();
        assert!((rate - 83_333.0).abs() < 10.0, "{rate}");
    }

    #[test]
    fn merged_pairs_count_as_fast_however_many_others_are_separated() {
        let mut capacity = Capacity::new();
        for i in 0..100u32 {
            let at = Instant::ZERO + Duration::from_micros(1_000) * i;
            let gap = if i % 10 == 0 { 500 } else { 0 };
            capacity.on_arrival(SeqNo::new(16 * i), at);
            capacity.on_arrival(SeqNo::new(16 * i + 1), at + Duration::from_micros(gap));
        }
        let rate = capacity.estimate().unwrap().packets_per_second();
        assert!((rate - 1e6).abs() < 1.0, "{rate}");
    }

    #[test]
    fn packets_that_are_no_pair_do_not_count() {
        let mut capacity = Capacity::new();
        for i in 0..100u32 {
            let at = Instant::ZERO + Duration::from_micros(1_000) * i;
            capacity.on_arrival(SeqNo::new(16 * i), at);
            capacity.on_arrival(SeqNo::new(16 * i + 17), at + Duration::from_micros(12));
        }
        assert_eq!(capacity.estimate(), None);
    }
}
