//! Packets found by one poll of the hosts, with estimated arrival times.
//!
//! A TUN device does not report when a packet was written, only that it was after the last poll. The estimate depends
//! on the time since that poll:
//!
//! - After a short time, all packets are assumed to have arrived just now.
//! - After a long time with few packets, too. Probably the whole machine paused, and its hosts with it.
//! - After a long time with many packets, only the emulator lacked a processor. The packets are assumed to have arrived
//!   evenly in that time, and go onto the links at that pace. If all arrived at the poll, a link would idle during the
//!   pause and then overflow its queue. The emulated path would do neither.
//!
//! The emulator cannot tell its own pause from a pause of the whole machine after which the hosts resumed first. A
//! packet dated into a pause therefore takes its place on the links as of that date. It reaches its host no earlier
//! than if it had arrived just now (`engine.rs`). No packet may cross a path too fast, because hosts keep the minimum
//! RTT. The opposite error, a packet that arrived earlier than estimated, counts as lateness of the emulator.

use std::collections::VecDeque;

use farhaul_units::{Duration, Instant};

use crate::network::HostId;
use crate::packet::Packet;

/// Longest gap between two trains of a host that sends continuously. The first train of a pause may have arrived this
/// late in the pause.
const TRAIN: Duration = Duration::from_micros(300);
/// Longest gap between packets of continuous sending: 300 Mbit/s in packets of 1500 bytes. Dated at longer gaps, a few
/// packets sent together would never meet in a queue.
const LONGEST_SHARE: Duration = Duration::from_micros(40);

/// The estimated arrival of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ArrivalEstimate {
    pub(crate) at: Instant,
    /// The packet had certainly arrived by then.
    pub(crate) latest: Instant,
    /// How much earlier the packet probably arrived, if it was found after a pause.
    pub(crate) waited: Duration,
}

/// The packets found by one poll, by host.
#[derive(Debug)]
pub(crate) struct Inbox {
    hosts: Vec<VecDeque<(ArrivalEstimate, Packet)>>,
}

impl Inbox {
    /// An inbox for `hosts` hosts.
    pub(crate) fn of(hosts: usize) -> Self {
        Self { hosts: (0..hosts).map(|_| VecDeque::new()).collect() }
    }

    /// Adds a packet that `from` sent after all its earlier ones.
    pub(crate) fn add(&mut self, from: HostId, packet: Packet) {
        self.hosts[from.0 as usize].push_back((ArrivalEstimate::default(), packet));
    }

    /// Dates all packets of `from`, which arrived after `since` and not after `until`.
    pub(crate) fn date(&mut self, from: HostId, since: Instant, until: Instant) {
        let found = &mut self.hosts[from.0 as usize];
        let Ok(packets @ 1..) = u32::try_from(found.len()) else { return };
        let pause = until.saturating_since(since + TRAIN) / packets;
        let share = if pause <= LONGEST_SHARE { pause } else { Duration::ZERO };
        for (after, (estimate, _)) in (0..packets).rev().zip(found) {
            // With even arrivals, one packet would have come in the middle of each share of the pause.
            let waited = (pause * after + pause / 2).saturating_sub(share * after);
            *estimate = ArrivalEstimate { at: until.saturating_sub(share * after), latest: until, waited };
        }
    }

    /// The earliest packet, with its arrival and its sender.
    pub(crate) fn pop(&mut self) -> Option<(ArrivalEstimate, HostId, Packet)> {
        let first = |(host, found): (usize, &VecDeque<_>)| {
            found.front().map(|(estimate, _): &(ArrivalEstimate, Packet)| (estimate.at, host))
        };
        let (_, host) = self.hosts.iter().enumerate().filter_map(first).min()?;
        let (estimate, packet) = self.hosts[host].pop_front()?;
        Some((estimate, HostId(host as u32), packet))
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;
    use crate::pool::Pool;

    /// Hosts 0, 1 and so on send these numbers of packets between two polls. Returns the estimated arrival, host and
    /// index of each.
    fn estimate(packets: &[u8], since: u64, until: u64) -> Vec<(u64, u32, u8)> {
        let pool = Rc::new(Pool::default());
        let mut inbox = Inbox::of(packets.len());
        for (host, packets) in (0..).map(HostId).zip(packets) {
            for number in 0..*packets {
                inbox.add(host, Packet::new(pool.copy(&[number]).unwrap(), None, HostId(0)));
            }
            inbox.date(host, Instant::from_nanos(since), Instant::from_nanos(until));
        }
        let of = |(estimate, from, packet): (ArrivalEstimate, HostId, Packet)| {
            (estimate.at.as_nanos(), from.0, packet.bytes()[0])
        };
        std::iter::from_fn(|| inbox.pop().map(of)).collect()
    }

    #[test]
    fn a_packet_that_is_found_alone_after_a_long_pause_has_waited_for_half_of_it() {
        let waited = |until: u64| {
            let pool = Rc::new(Pool::default());
            let mut inbox = Inbox::of(1);
            inbox.add(HostId(0), Packet::new(pool.copy(&[0]).unwrap(), None, HostId(0)));
            inbox.date(HostId(0), Instant::ZERO, Instant::from_nanos(until));
            inbox.pop().unwrap().0.waited
        };
        assert_eq!((waited(300_000), waited(4_300_000)), (Duration::ZERO, Duration::from_millis(2)));
    }

    #[test]
    fn packets_found_after_a_short_time_arrived_just_now_in_order() {
        let found = estimate(&[0, 1, 3], 100, 180_000);
        assert_eq!(found, [(180_000, 1, 0), (180_000, 2, 0), (180_000, 2, 1), (180_000, 2, 2)]);
    }

    #[test]
    fn a_backlog_is_dated_evenly_and_few_packets_just_now() {
        let pause = 3_000_000;
        assert_eq!(estimate(&[1], 0, pause), [(3_000_000, 0, 0)]);
        assert_eq!(estimate(&[0, 2], 0, pause), [(3_000_000, 1, 0), (3_000_000, 1, 1)]);
        assert_eq!(estimate(&[67], 0, pause)[0], (pause, 0, 0), "a packet each 40 µs would be 68");
        let found = estimate(&[250], 0, pause);
        assert_eq!(found[..2], [(310_800, 0, 0), (321_600, 0, 1)]);
        assert_eq!(found[249], (3_000_000, 0, 249));
    }
}
