//! Packets that were found when the emulator looked at its hosts, and when they came.
//!
//! A TUN device does not say when a packet was handed over, only that it was after the last look. Packets that are found
//! together are taken to have come evenly in between, each in the middle of its share of the time: one that is found alone is
//! early as often as late, and what piled up while the emulator had no processor goes onto the links at the pace at which it was
//! sent. If all had come at the moment of the look, a link would be idle for that time and then lose what does not fit its
//! queue, neither of which would have happened on the path that is emulated.

use std::collections::VecDeque;

use farhaul_units::{Duration, Instant};

use crate::network::HostId;
use crate::packet::Packet;

/// What one look has found, by hosts.
#[derive(Debug)]
pub(crate) struct Inbox {
    hosts: Vec<VecDeque<(Instant, Packet)>>,
}

impl Inbox {
    /// An inbox for packets of so many hosts.
    pub(crate) fn of(hosts: usize) -> Self {
        Self { hosts: (0..hosts).map(|_| VecDeque::new()).collect() }
    }

    /// Adds a packet that `from` sent after all that it has sent before.
    pub(crate) fn add(&mut self, from: HostId, packet: Packet) {
        self.hosts[from.0 as usize].push_back((Instant::ZERO, packet));
    }

    /// All packets of `from` came after `since` and not after `until`.
    pub(crate) fn date(&mut self, from: HostId, since: Instant, until: Instant) {
        let found = &mut self.hosts[from.0 as usize];
        let (span, halves) = ((until - since).as_nanos(), 2 * found.len() as u128);
        for (index, (at, _)) in found.iter_mut().enumerate() {
            let middle = span * (2 * index as u128 + 1) / halves;
            *at = since + Duration::from_nanos(middle as u64);
        }
    }

    /// The earliest packet, and who sent it.
    pub(crate) fn pop(&mut self) -> Option<(Instant, HostId, Packet)> {
        let first = |(host, found): (usize, &VecDeque<_>)| found.front().map(|(at, _): &(Instant, Packet)| (*at, host));
        let (_, host) = self.hosts.iter().enumerate().filter_map(first).min()?;
        let (at, packet) = self.hosts[host].pop_front()?;
        Some((at, HostId(host as u32), packet))
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;
    use crate::pool::Pool;

    #[test]
    fn what_is_found_together_came_evenly_and_in_order() {
        let pool = Rc::new(Pool::default());
        let mut inbox = Inbox::of(3);
        let mut add = |host: u32, packets: u8| {
            for number in 0..packets {
                inbox.add(HostId(host), Packet::new(pool.copy(&[number]).unwrap(), None, 0));
            }
            inbox.date(HostId(host), Instant::from_nanos(100), Instant::from_nanos(180));
        };
        add(2, 4);
        add(1, 1);
        add(0, 0);
        let found: Vec<(u64, u32, u8)> = std::iter::from_fn(|| inbox.pop())
            .map(|(at, from, packet)| (at.as_nanos(), from.0, packet.bytes()[0]))
            .collect();
        assert_eq!(found, [(110, 2, 0), (130, 2, 1), (140, 1, 0), (150, 2, 2), (170, 2, 3)]);
    }
}
