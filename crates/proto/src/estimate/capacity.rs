//! Capacity estimate from probe pairs. Two packets sent back to back arrive as far apart as the bottleneck serves them.
//!
//! Every 16th packet and its successor form a pair. Kernels and network cards merge packets, and hand over a run of them as if
//! they had arrived together. Where more than a quarter of the pairs is merged, the estimate is that of longer trains, unless
//! the peer's law is UDT's. Without any, merged pairs count as closer than measurable. If only the others counted, which other traffic
//! separated, a gigabit would look like a tenth of it.

use farhaul_units::{Instant, PacketRate, SeqNo};
use farhaul_wire::udt4::Timestamp;

use super::Trains;

/// Distance of pairs in packets. Source: UDT4 wire, §2.
pub(crate) const PROBE_INTERVAL: u32 = 16;
/// Pair intervals kept. Source: libudt 4.11 (the draft says 16).
pub(crate) const WINDOW: usize = 64;
/// Fewest intervals for an estimate.
const MIN_SAMPLES: usize = 4;
/// Interval of packets in one train, ns. libudt measures such a pair as two receive calls in a row.
const MERGED: u64 = 1_000;
/// If more than one pair in so many is merged, no pair shows the capacity.
const SEPARATED: usize = 4;
/// The estimate where pairs are merged and no trains show the capacity, packets/s.
pub(crate) const MERGED_RATE: f64 = 1e9 / MERGED as f64;
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
    /// The estimate where pairs are merged; `None` for UDT's own law, which takes libudt's.
    trains: Option<Trains>,
}

impl Capacity {
    pub(crate) fn new(trains: bool) -> Self {
        Self { pending: None, intervals: Vec::new(), next: 0, trains: trains.then(Trains::new) }
    }

    /// A packet arrived that had `left` the peer. `now` is the arrival time of its run.
    #[inline]
    pub(crate) fn on_arrival(&mut self, seq: SeqNo, left: Timestamp, now: Instant) {
        if let Some(trains) = &mut self.trains {
            trains.on_arrival(seq, left, now);
        }
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
    pub(crate) fn estimate(&self, now: Instant) -> Option<PacketRate> {
        if self.intervals.len() < MIN_SAMPLES {
            return None;
        }
        // A host that merges pairs hands over others one after the other, which shows its speed and not the path's.
        let merged = self.intervals.iter().filter(|&&ns| ns == MERGED).count();
        if let Some(trains) = self.trains.as_ref().filter(|_| merged * SEPARATED > self.intervals.len()) {
            return Some(trains.estimate(now).unwrap_or(PacketRate::new(MERGED_RATE)));
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
        let mut capacity = Capacity::new(false);
        for i in 0..100u32 {
            let at = Instant::ZERO + Duration::from_micros(1_000) * i;
            let left = Timestamp::new(1_000 * i);
            // Other traffic separates a tenth of the pairs.
            let gap = if i % 10 == 0 { 500 } else { 12 };
            capacity.on_arrival(SeqNo::new(16 * i), left, at);
            capacity.on_arrival(SeqNo::new(16 * i + 1), left, at + Duration::from_micros(gap));
        }
        let rate = capacity.estimate(Instant::ZERO).unwrap().packets_per_second();
        assert!((rate - 83_333.0).abs() < 10.0, "{rate}");
    }

    #[test]
    fn merged_pairs_count_as_fast_however_many_others_are_separated() {
        let mut capacity = Capacity::new(false);
        for i in 0..100u32 {
            let at = Instant::ZERO + Duration::from_micros(1_000) * i;
            let left = Timestamp::new(1_000 * i);
            let gap = if i % 10 == 0 { 500 } else { 0 };
            capacity.on_arrival(SeqNo::new(16 * i), left, at);
            capacity.on_arrival(SeqNo::new(16 * i + 1), left, at + Duration::from_micros(gap));
        }
        let rate = capacity.estimate(Instant::ZERO).unwrap().packets_per_second();
        assert!((rate - 1e6).abs() < 1.0, "{rate}");
    }

    #[test]
    fn trains_show_the_capacity_where_many_pairs_are_merged() {
        let mut capacity = Capacity::new(true);
        for train in 0..100 {
            for packet in 0..40 {
                // Runs of eight packets, whose last ones arrived 96 µs apart.
                let arrived = Duration::from_micros(1_000) * train + Duration::from_micros(96) * (packet / 8);
                let (seq, left) = (SeqNo::new(40 * train + packet), Timestamp::new(1_000 * train));
                capacity.on_arrival(seq, left, Instant::ZERO + arrived);
            }
        }
        let rate = capacity.estimate(Instant::from_nanos(100_000_000)).unwrap().packets_per_second();
        assert!((rate - 83_333.0).abs() < 10.0, "{rate}");
        let later = capacity.estimate(Instant::from_nanos(20_000_000_000)).unwrap().packets_per_second();
        assert!((later - MERGED_RATE).abs() < 1.0, "{later}");
    }

    #[test]
    fn packets_that_are_no_pair_do_not_count() {
        let mut capacity = Capacity::new(false);
        for i in 0..100u32 {
            let at = Instant::ZERO + Duration::from_micros(1_000) * i;
            let left = Timestamp::new(1_000 * i);
            capacity.on_arrival(SeqNo::new(16 * i), left, at);
            capacity.on_arrival(SeqNo::new(16 * i + 17), left, at + Duration::from_micros(12));
        }
        assert_eq!(capacity.estimate(Instant::ZERO), None);
    }
}
