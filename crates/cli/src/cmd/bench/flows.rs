//! Several flows as one measurement.

use std::collections::BTreeMap;
use std::time::Duration;

use farhaul_transfer::internal::Limit;
use farhaul_transfer::internal::limit::share;
use farhaul_transfer::internal::report::{CpuSeconds, Direction, Peer, Report, RttMicros, goodput};
use farhaul_units::ByteSize;

use super::Measured;
use crate::exit::Fault;
use crate::output::human::{percent, rate, time};
use crate::output::json::{ErrorRecord, Flow};

/// Adds up all flows in `end`, which has the common fields. The first failure of a flow is the result.
pub(super) fn sum(end: Report, flows: &[Measured]) -> (Measured, Vec<Flow>) {
    let mut sum = end;
    let ends: Vec<&Report> = flows.iter().map(|(end, _)| end).collect();
    for end in &ends {
        sum.bytes += end.bytes;
        sum.seconds = sum.seconds.max(end.seconds);
        sum.packets_sent += end.packets_sent;
        sum.packets_retransmitted += end.packets_retransmitted;
        sum.packets_received += end.packets_received;
    }
    sum.packets_dropped = drops(ends.iter().map(|end| end.packets_dropped));
    let of_packets = |end: &Report| match end.direction {
        Some(Direction::Received) => end.packets_received as f64,
        _ => end.packets_sent as f64,
    };
    let lost: f64 = ends.iter().map(|end| end.loss_ratio * of_packets(end)).sum();
    sum.loss_ratio = share(lost, ends.iter().map(|end| of_packets(end)).sum());
    sum.rtt_us = round_trips(ends.iter().map(|end| end.rtt_us));
    sum.peer = peers(&ends);
    // All flows run at once, so the longest one spans the receiver's time.
    let receiving = ends.iter().map(|end| receiving(end)).max().unwrap_or_default();
    sum.goodput_bps = goodput(sum.bytes, receiving);
    (sum.limited_by, sum.limited_by_share) = strongest(&ends).unzip();
    let all = flows.iter().zip(1..).map(|((end, result), number)| flow(number, end, result)).collect();
    let failed = flows.iter().find_map(|(_, result)| result.as_ref().err().cloned());
    ((sum, failed.map_or(Ok(()), Err)), all)
}

/// The packets that died in sockets, of all flows in which any did.
fn drops(of: impl Iterator<Item = Option<u64>>) -> Option<u64> {
    of.flatten().reduce(u64::saturating_add)
}

/// Time from the receiver's first byte to its last.
fn receiving(end: &Report) -> Duration {
    let seconds = end.goodput_bps.map(|goodput| end.bytes as f64 * 8.0 / goodput as f64);
    seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).unwrap_or_default()
}

/// The limit with the largest share over all flows, and its mean share.
fn strongest(ends: &[&Report]) -> Option<(Limit, f64)> {
    let mut shares: BTreeMap<Limit, f64> = BTreeMap::new();
    for end in ends {
        if let Some((limit, share)) = end.limited_by.zip(end.limited_by_share) {
            *shares.entry(limit).or_default() += share;
        }
    }
    let (limit, total) = shares.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    Some((limit, share(total, ends.len() as f64)))
}

/// RTT over all flows: the least minimum, the mean of the means, the largest 99th percentile.
fn round_trips(all: impl Iterator<Item = RttMicros> + Clone) -> RttMicros {
    let measured = all.filter(|rtt| *rtt != RttMicros::default());
    let count = measured.clone().count() as u64;
    RttMicros {
        min: measured.clone().map(|rtt| rtt.min).min().unwrap_or(0),
        mean: measured.clone().map(|rtt| rtt.mean).sum::<u64>().checked_div(count).unwrap_or(0),
        p99: measured.map(|rtt| rtt.p99).max().unwrap_or(0),
    }
}

/// The other side of all flows. Each flow reports the processor time of the whole process, so the largest applies.
fn peers(ends: &[&Report]) -> Option<Peer> {
    let peers: Vec<&Peer> = ends.iter().map(|end| end.peer.as_ref()).collect::<Option<_>>()?;
    let total = |of: fn(&Peer) -> Option<u64>| peers.iter().map(|peer| of(peer)).sum();
    let cpu = |a: CpuSeconds, b: CpuSeconds| if a.total() < b.total() { b } else { a };
    let rtts = peers.iter().filter_map(|peer| peer.rtt_us);
    Some(Peer {
        bytes: peers.iter().map(|peer| peer.bytes).sum(),
        seconds: peers.iter().map(|peer| peer.seconds).fold(0.0, f64::max),
        packets_sent: total(|peer| peer.packets_sent),
        packets_retransmitted: total(|peer| peer.packets_retransmitted),
        packets_received: total(|peer| peer.packets_received),
        packets_lost: total(|peer| peer.packets_lost),
        packets_dropped: drops(peers.iter().map(|peer| peer.packets_dropped)),
        rtt_us: rtts.clone().next().map(|_| round_trips(rtts)),
        cpu_seconds: peers.iter().filter_map(|peer| peer.cpu_seconds).reduce(cpu),
        disk_seconds: None,
    })
}

fn flow(number: u64, end: &Report, result: &Result<(), Fault>) -> Flow {
    Flow {
        flow: number,
        bytes: end.bytes,
        seconds: end.seconds,
        goodput_bps: end.goodput_bps,
        packets_sent: end.packets_sent,
        packets_retransmitted: end.packets_retransmitted,
        packets_received: end.packets_received,
        loss_ratio: end.loss_ratio,
        rtt_us: end.rtt_us,
        peer: end.peer.clone(),
        limited_by: end.limited_by,
        limited_by_share: end.limited_by_share,
        error: result.as_ref().err().map(ErrorRecord::from),
    }
}

/// A flow in one line.
pub(super) fn line(flow: &Flow) -> String {
    let peer = flow.peer.clone().unwrap_or_default();
    // The sender's counters are the right ones.
    let (sent, again) = match flow.packets_sent > peer.packets_sent.unwrap_or(0) {
        true => (flow.packets_sent, flow.packets_retransmitted),
        false => (peer.packets_sent.unwrap_or(0), peer.packets_retransmitted.unwrap_or(0)),
    };
    format!(
        "flow {:>3}   {:>8}   {:>11}   RTT {:>7}   {:>7} retransmitted",
        flow.flow,
        ByteSize(flow.bytes).to_string(),
        rate(flow.goodput_bps),
        time(Duration::from_micros(flow.rtt_us.mean)),
        percent(share(again as f64, sent as f64)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Code;

    fn end(bytes: u64, goodput_bps: u64, limit: Limit, share: f64) -> Report {
        Report {
            direction: Some(Direction::Sent),
            bytes,
            seconds: 1.0,
            goodput_bps: Some(goodput_bps),
            packets_sent: 100,
            loss_ratio: 0.01,
            rtt_us: RttMicros { min: 10, mean: 20, p99: 30 },
            limited_by: Some(limit),
            limited_by_share: Some(share),
            ..Report::default()
        }
    }

    #[test]
    fn the_sum_has_all_bytes_in_the_time_of_the_longest_flow() {
        let flows = [
            (end(1_000, 8_000, Limit::Congestion, 0.9), Ok(())),
            (end(3_000, 12_000, Limit::Congestion, 0.7), Ok(())),
            (end(1_000, 8_000, Limit::Cpu, 1.0), Ok(())),
        ];
        let ((sum, result), all) = sum(Report::default(), &flows);
        assert_eq!((sum.bytes, sum.goodput_bps, sum.packets_sent), (5_000, Some(20_000), 300));
        assert_eq!((sum.limited_by, sum.rtt_us.p99, all.len()), (Some(Limit::Congestion), 30, 3));
        assert!((sum.loss_ratio - 0.01).abs() < 1e-9 && result.is_ok());
    }

    #[test]
    fn one_failed_flow_fails_the_measurement_and_is_named() {
        let failed = Fault::new(Code::PeerLost, "gone");
        let flows = [(end(1, 8, Limit::Cpu, 1.0), Ok(())), (Report::default(), Err(failed.clone()))];
        let ((_, result), all) = sum(Report::default(), &flows);
        assert_eq!(result, Err(failed));
        assert!(all[0].error.is_none() && all[1].error.is_some());
    }
}
