//! Ranges of the settings, and their reasons.

use std::time::Duration;

use farhaul_proto::{Config, udt};
use farhaul_units::Rate;

use crate::error::Error;

/// Largest packet that fits an IP packet.
const LARGEST_MSS: u32 = 65_535;
/// Largest flow window: an eighth of UDT's 2^31 sequence numbers, so that their order is unambiguous.
const LARGEST_WINDOW: u32 = 1 << 28;
/// Long enough to mean never, but far from overflows of time.
const LONGEST_TIME: Duration = Duration::from_secs(365 * 24 * 3_600);
/// UDT's unit of time (2004 paper §3.1: SYN). An idle connection need not send more often.
const SHORTEST_KEEP_ALIVE: Duration = Duration::from_millis(10);
/// Longer than any peer or address translator waits.
const LONGEST_KEEP_ALIVE: Duration = Duration::from_secs(3_600);
/// Packets by which a path may reorder: a millisecond at 800 Gbit/s. Each gap below it takes memory.
const LARGEST_TOLERANCE: u32 = 65_536;

/// Checks that all settings are in their ranges.
pub(super) fn check(config: &Config) -> Result<(), Error> {
    let out_of_range = |option, range| Err(Error::InvalidOption { option, range });
    if !(udt::MIN_MSS..=LARGEST_MSS).contains(&config.mss) {
        return out_of_range("mss", "from 576, which every IPv4 host takes, to 65535 bytes");
    }
    if !(2..=LARGEST_WINDOW).contains(&config.max_flow_window) {
        return out_of_range("max_flow_window", "from 2 to 268435456 packets");
    }
    let times = [
        ("connect_timeout", Some(config.connect_timeout)),
        ("rendezvous_timeout", Some(config.udt.rendezvous_timeout)),
        ("peer_timeout", Some(config.peer_timeout)),
        ("linger", Some(config.linger)),
        ("stall_timeout", config.stall_timeout),
        ("min_progress", config.min_progress.map(|floor| floor.time)),
    ];
    let is_out = |time: Duration| time.is_zero() || time > LONGEST_TIME;
    if let Some((option, _)) = times.into_iter().find(|(_, time)| time.is_some_and(is_out)) {
        return out_of_range(option, "above zero and at most a year");
    }
    if !(SHORTEST_KEEP_ALIVE..=LONGEST_KEEP_ALIVE).contains(&config.keep_alive) {
        return out_of_range("keep_alive", "from 10 milliseconds to an hour");
    }
    if config.reorder_tolerance > LARGEST_TOLERANCE {
        return out_of_range("reorder_tolerance", "at most 65536 packets");
    }
    if config.send_buffer < u64::from(config.mss) || config.recv_buffer < u64::from(config.mss) {
        return out_of_range("send_buffer and recv_buffer", "at least one packet long");
    }
    if config.max_rate == Some(Rate::ZERO) {
        return out_of_range("max_rate", "above zero");
    }
    if config.backlog == 0 || config.max_connections == 0 {
        return out_of_range("backlog and max_connections", "at least 1");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use farhaul_proto::MinProgress;

    use super::*;
    use crate::{Builder, Endpoint};

    fn bind(builder: Builder) -> Result<Endpoint, Error> {
        builder.bind(SocketAddr::from(([127, 0, 0, 1], 0)))
    }

    #[test]
    fn settings_out_of_range_are_refused_by_name() {
        for (builder, name) in [
            (Endpoint::builder().plain().mss(udt::MIN_MSS - 1), "mss"),
            (Endpoint::builder().plain().mss(65_536), "mss"),
            (Endpoint::builder().plain().max_flow_window(1), "max_flow_window"),
            (Endpoint::builder().plain().max_flow_window(u32::MAX), "max_flow_window"),
            (Endpoint::builder().plain().connect_timeout(Duration::ZERO), "connect_timeout"),
            (Endpoint::builder().plain().rendezvous_timeout(Duration::MAX), "rendezvous_timeout"),
            (Endpoint::builder().plain().peer_timeout(Duration::ZERO), "peer_timeout"),
            (Endpoint::builder().plain().linger(Duration::ZERO), "linger"),
            (Endpoint::builder().plain().stall_timeout(Duration::ZERO), "stall_timeout"),
            (Endpoint::builder().plain().min_progress(MinProgress { bytes: 1, time: Duration::MAX }), "min_progress"),
            (Endpoint::builder().plain().keep_alive(Duration::ZERO), "keep_alive"),
            (Endpoint::builder().plain().keep_alive(Duration::MAX), "keep_alive"),
            (Endpoint::builder().plain().reorder_tolerance(u32::MAX), "reorder_tolerance"),
            (Endpoint::builder().plain().send_buffer(100), "send_buffer"),
            (Endpoint::builder().plain().max_rate(Rate::ZERO), "max_rate"),
            (Endpoint::builder().plain().backlog(0), "backlog"),
        ] {
            let message = bind(builder).unwrap_err().to_string();
            assert!(message.contains(name), "{message}");
        }
    }

    #[test]
    fn the_smallest_packet_size_is_the_one_that_peers_agree_to() {
        let small = || bind(Endpoint::builder().plain().mss(udt::MIN_MSS)).unwrap();
        let (here, there) = (small(), small());
        let listener = there.listen().unwrap();
        here.connect(there.local_addr()).unwrap();
        listener.accept().unwrap();
        let message = bind(Endpoint::builder().plain().mss(575)).unwrap_err().to_string();
        assert!(message.contains(&udt::MIN_MSS.to_string()), "{message}");
    }
}
