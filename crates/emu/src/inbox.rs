//! Packets that were found when the emulator looked at its hosts, and when they came.
//!
//! A TUN device does not say when a packet was handed over, only that it was after the last look. What is found after a short
//! time is taken to have come just now, and so are the few packets that are found after a long one: probably the whole machine stood
//! still, and its hosts, too. What piled up while only the emulator had no processor is taken to have come evenly in that time, and
//! goes onto the links at the pace at which it was sent: if all had come at the moment of the look, a link would be idle for that
//! time and then lose what does not fit its queue, neither of which would have happened on the path that is emulated.
//!
//! Whether only the emulator had no processor cannot be told from whether all had none and the hosts were back first. So what is
//! taken to have come in a pause has its place on the links as of then, but is at its host no sooner than if it had come just now
//! (`engine.rs`): nothing crosses a path in less time than the path takes, since of round trips hosts remember the least. It may
//! instead have come earlier than it is taken to have; by how much is part of the emulator's lateness.

use std::collections::VecDeque;

use farhaul_units::{Duration, Instant};

use crate::network::HostId;
use crate::packet::Packet;

/// Hosts hand over in trains, this far apart at most while they send all the time: the first train of a pause may have come so long
/// after its begin.
const TRAIN: Duration = Duration::from_micros(300);
/// What is further apart was not sent all the time: 300 Mbit/s in packets of 1500 bytes. Taken to have come so far apart, a few
/// packets that were sent together would never meet in a queue.
const LONGEST_SHARE: Duration = Duration::from_micros(40);

/// When a packet is taken to have come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Dated {
    pub(crate) at: Instant,
    /// By when it had come for certain.
    pub(crate) seen: Instant,
    /// How much earlier it probably came, if it was found after a pause.
    pub(crate) waited: Duration,
}

/// What one look has found, by hosts.
#[derive(Debug)]
pub(crate) struct Inbox {
    hosts: Vec<VecDeque<(Dated, Packet)>>,
}

impl Inbox {
    /// An inbox for packets of so many hosts.
    pub(crate) fn of(hosts: usize) -> Self {
        Self { hosts: (0..hosts).map(|_| VecDeque::new()).collect() }
    }

    /// Adds a packet that `from` sent after all that it has sent before.
    pub(crate) fn add(&mut self, from: HostId, packet: Packet) {
        self.hosts[from.0 as usize].push_back((Dated::default(), packet));
    }

    /// All packets of `from` came after `since` and not after `until`.
    pub(crate) fn date(&mut self, from: HostId, since: Instant, until: Instant) {
        let found = &mut self.hosts[from.0 as usize];
        let Ok(packets @ 1..) = u32::try_from(found.len()) else { return };
        let pause = until.saturating_since(since + TRAIN) / packets;
        let share = if pause <= LONGEST_SHARE { pause } else { Duration::ZERO };
        for (after, (dated, _)) in (0..packets).rev().zip(found) {
            // Had they come evenly, one of them would have come in the middle of each share of the pause.
            let waited = (pause * after + pause / 2).saturating_sub(share * after);
            *dated = Dated { at: until.saturating_sub(share * after), seen: until, waited };
        }
    }

    /// The earliest packet, and who sent it.
    pub(crate) fn pop(&mut self) -> Option<(Dated, HostId, Packet)> {
        let first =
            |(host, found): (usize, &VecDeque<_>)| found.front().map(|(dated, _): &(Dated, Packet)| (dated.at, host));
        let (_, host) = self.hosts.iter().enumerate().filter_map(first).min()?;
        let (dated, packet) = self.hosts[host].pop_front()?;
        Some((dated, HostId(host as u32), packet))
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;
    use crate::pool::Pool;

    /// Hosts 0, 1 and so on handed over so many packets between two looks: when each is taken to have come, whose it is, and which.
    fn dated(packets: &[u8], since: u64, until: u64) -> Vec<(u64, u32, u8)> {
        let pool = Rc::new(Pool::default());
        let mut inbox = Inbox::of(packets.len());
        for (host, packets) in (0..).map(HostId).zip(packets) {
            for number in 0..*packets {
                inbox.add(host, Packet::new(pool.copy(&[number]).unwrap(), None, 0));
            }
            inbox.date(host, Instant::from_nanos(since), Instant::from_nanos(until));
        }
        let of = |(dated, from, packet): (Dated, HostId, Packet)| (dated.at.as_nanos(), from.0, packet.bytes()[0]);
        std::iter::from_fn(|| inbox.pop().map(of)).collect()
    }

    #[test]
    fn a_packet_that_is_found_alone_after_a_long_pause_has_waited_for_half_of_it() {
        let waited = |until: u64| {
            let pool = Rc::new(Pool::default());
            let mut inbox = Inbox::of(1);
            inbox.add(HostId(0), Packet::new(pool.copy(&[0]).unwrap(), None, 0));
            inbox.date(HostId(0), Instant::ZERO, Instant::from_nanos(until));
            inbox.pop().unwrap().0.waited
        };
        assert_eq!((waited(300_000), waited(4_300_000)), (Duration::ZERO, Duration::from_millis(2)));
    }

    #[test]
    fn what_is_found_after_a_short_time_came_just_now_and_in_order() {
        let found = dated(&[0, 1, 3], 100, 180_000);
        assert_eq!(found, [(180_000, 1, 0), (180_000, 2, 0), (180_000, 2, 1), (180_000, 2, 2)]);
    }

    #[test]
    fn what_piled_up_came_evenly_and_what_did_not_just_now() {
        let pause = 3_000_000;
        assert_eq!(dated(&[1], 0, pause), [(3_000_000, 0, 0)]);
        assert_eq!(dated(&[0, 2], 0, pause), [(3_000_000, 1, 0), (3_000_000, 1, 1)]);
        assert_eq!(dated(&[67], 0, pause)[0], (pause, 0, 0), "a packet each 40 µs would be 68");
        let found = dated(&[250], 0, pause);
        assert_eq!(found[..2], [(310_800, 0, 0), (321_600, 0, 1)]);
        assert_eq!(found[249], (3_000_000, 0, 249));
    }
}
