//! Goodput over an interval, and the share of retransmissions.

use farhaul_proto::{ConnectionId, Stats};
use farhaul_units::{Instant, Rate};

use crate::network::NodeId;
use crate::sample::Samples;

/// The rate at which the receiving application read new bytes between `from` and `to`, from the samples in that
/// interval. `None` with fewer than two samples there.
pub fn goodput(samples: &Samples, host: NodeId, id: ConnectionId, from: Instant, to: Instant) -> Option<Rate> {
    let mut inside = samples.flow(host, id).filter(|(at, _)| (from..=to).contains(at));
    let (start, first) = inside.next()?;
    let (end, last) = inside.last()?;
    Rate::from_bytes_in(last.totals.bytes_read - first.totals.bytes_read, end - start)
}

/// Packets retransmitted between two snapshots, as a share of all packets sent between them. Zero if none were sent.
pub fn retransmission_share(earlier: &Stats, later: &Stats) -> f64 {
    let sent = later.totals.packets_sent.saturating_sub(earlier.totals.packets_sent);
    let again = later.totals.packets_retransmitted.saturating_sub(earlier.totals.packets_retransmitted);
    if sent == 0 { 0.0 } else { again as f64 / sent as f64 }
}

#[cfg(test)]
mod tests {
    use farhaul_units::Duration;

    use super::*;
    use crate::sample::{FlowSample, Sample};

    const ID: ConnectionId = ConnectionId::from_parts(0, 0);

    /// One sample per second, with these total bytes read.
    fn samples(totals: &[u64]) -> Samples {
        let mut samples = Samples::every(Duration::from_secs(1));
        for (second, &bytes) in totals.iter().enumerate() {
            let mut stats = Stats::default();
            stats.totals.bytes_read = bytes;
            let at = Instant::ZERO + Duration::from_secs(second as u64);
            samples.add(Sample { at, flows: vec![FlowSample { host: 1, id: ID, stats }], links: Vec::new() });
        }
        samples
    }

    fn second(n: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(n)
    }

    #[test]
    fn goodput_is_bytes_read_over_time_between_samples() {
        let samples = samples(&[0, 0, 1_000, 3_000, 9_000]);
        let rate = |from, to| goodput(&samples, 1, ID, second(from), second(to)).map(Rate::bits_per_second);
        assert_eq!(rate(1, 3), Some(12_000));
        assert_eq!(rate(3, 4), Some(48_000));
        assert_eq!(rate(4, 9), None, "one sample makes no interval");
        assert_eq!(goodput(&samples, 0, ID, second(0), second(4)), None, "no such connection");
    }

    #[test]
    fn the_retransmission_share_of_no_packets_is_zero() {
        let mut later = Stats::default();
        assert_eq!(retransmission_share(&Stats::default(), &later), 0.0);
        later.totals.packets_sent = 400;
        later.totals.packets_retransmitted = 100;
        assert_eq!(retransmission_share(&Stats::default(), &later), 0.25);
    }
}
