//! Capacity estimate from packet pairs (paper:udt-2004 §3.5.2). Every sixteenth packet and its successor leave back to
//! back. They arrive as far apart as the bottleneck serves them.

use farhaul_units::{Instant, PacketRate, SeqNo};

/// Distance of pairs in packets. Source: paper §3.5.2.
pub(super) const PAIR_INTERVAL: u32 = 16;
/// Pairs kept. Source: paper §3.5.2.
const WINDOW: usize = 16;
/// Smallest interval of a pair in nanoseconds, because packets merged into one receive call have no measurable
/// interval.
const MERGED: u64 = 1_000;

/// The last intervals between the packets of a pair.
#[derive(Clone, Debug, Default)]
pub(super) struct PacketPair {
    /// The first packet of a pair and its arrival.
    pending: Option<(SeqNo, Instant)>,
    /// Nanoseconds. The newest overwrites the oldest.
    distances: [u64; WINDOW],
    seen: usize,
}

impl PacketPair {
    /// A packet arrived beyond all others. Retransmissions do not count, because they do not leave in pairs.
    pub(super) fn on_arrival(&mut self, seq: SeqNo, now: Instant) {
        match seq.value() % PAIR_INTERVAL {
            0 => self.pending = Some((seq, now)),
            1 => {
                if let Some((_, at)) = self.pending.take().filter(|(first, _)| first.next() == seq) {
                    self.distances[self.seen % WINDOW] = ((now - at).as_nanos() as u64).max(MERGED);
                    self.seen += 1;
                }
            }
            _ => {}
        }
    }

    /// NB = 1/MP in packets per second; `None` before the first pair.
    pub(super) fn estimate(&self) -> Option<PacketRate> {
        let count = self.seen.min(WINDOW);
        let mut sorted = self.distances;
        let known = &mut sorted[..count];
        known.sort_unstable();
        let median = (known.get(count.checked_sub(1)? / 2)? + known.get(count / 2)?) / 2;
        Some(PacketRate::new(1e9 / median as f64))
    }
}

#[cfg(test)]
mod tests {
    use farhaul_units::Duration;

    use super::*;

    fn at(micros: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(micros)
    }

    #[test]
    fn the_median_of_sixteen_pairs_is_the_capacity() {
        let mut pair = PacketPair::default();
        assert_eq!(pair.estimate(), None);
        for round in 0..40u64 {
            // Other traffic separated a third of the pairs.
            let distance = if round % 3 == 0 { 500 } else { 12 };
            pair.on_arrival(SeqNo::new(16 * round as u32), at(1_000 * round));
            pair.on_arrival(SeqNo::new(16 * round as u32 + 1), at(1_000 * round + distance));
        }
        assert!((pair.estimate().unwrap().packets_per_second() - 1e6 / 12.0).abs() < 1.0);
    }

    #[test]
    fn only_packets_that_follow_each_other_are_a_pair() {
        let mut pair = PacketPair::default();
        pair.on_arrival(SeqNo::new(16), at(0));
        pair.on_arrival(SeqNo::new(33), at(12));
        pair.on_arrival(SeqNo::new(49), at(24));
        assert_eq!(pair.estimate(), None);
    }
}
