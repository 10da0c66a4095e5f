//! Goodput over an interval, and the share of retransmissions.

use farhaul_proto::{ConnectionId, Stats};
use farhaul_units::{Duration, Instant, Rate};

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

/// Goodput of each `window`: `(end of the window, rate)`.
pub fn goodput_series(samples: &Samples, host: NodeId, id: ConnectionId, window: Duration) -> Vec<(Instant, Rate)> {
    let mut series = Vec::new();
    let mut start: Option<(Instant, u64)> = None;
    for (at, stats) in samples.flow(host, id) {
        let bytes = stats.totals.bytes_read;
        match start {
            Some((began, before)) if at - began >= window => {
                series.extend(Rate::from_bytes_in(bytes - before, at - began).map(|rate| (at, rate)));
                start = Some((at, bytes));
            }
            None => start = Some((at, bytes)),
            Some(_) => {}
        }
    }
    series
}

/// Packets retransmitted between two snapshots, as a share of all packets sent between them. Zero if none were sent.
pub fn retransmission_share(earlier: &Stats, later: &Stats) -> f64 {
    let sent = later.totals.packets_sent.saturating_sub(earlier.totals.packets_sent);
    let again = later.totals.packets_retransmitted.saturating_sub(earlier.totals.packets_retransmitted);
    if sent == 0 { 0.0 } else { again as f64 / sent as f64 }
}

#[cfg(test)]
mod tests {
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
    fn a_series_has_one_rate_per_window() {
        let series = goodput_series(&samples(&[0, 500, 1_000, 3_000, 5_000, 5_000]), 1, ID, Duration::from_secs(2));
        let expected = [(2, 4_000), (4, 16_000)].map(|(at, bits)| (second(at), Rate::from_bits_per_second(bits)));
        assert_eq!(series, expected);
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
