//! Callers in the middle of their handshakes, by network and host: who must make room for another one (attack A6).
//!
//! A caller that is there finishes within a round trip. One that only fills places does not, and has the more of them the faster it
//! calls. So a caller without room takes the oldest place of the host and the network with the most, and never a place of one
//! that has fewer than itself.

use core::net::{IpAddr, Ipv6Addr};
use std::collections::{BTreeMap, VecDeque};

use farhaul_units::{Duration, Instant};

use crate::endpoint::handshake::Network;

/// Time for a handshake before the caller has to make room for its equals: the round trip of a satellite (600 ms), and a
/// packet that was lost.
const PATIENCE: Duration = Duration::from_secs(1);
/// One network has this part of all places at most.
const SHARE: usize = 4;

/// The callers of one host, in the order in which they came: since when, and the slot.
type Places = VecDeque<(Instant, u32)>;

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Callers {
    networks: BTreeMap<Network, BTreeMap<IpAddr, Places>>,
    /// The addresses of the slots.
    addresses: BTreeMap<u32, IpAddr>,
}

/// The place for one more caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallerPlace {
    Free,
    /// That of the caller in this slot.
    Of(u32),
    /// None now.
    Later,
}

/// One network of IPv6 belongs to one host, which has all of its addresses.
fn host(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V6(ip) => Ipv6Addr::from(u128::from(ip) >> 64 << 64).into(),
        ip @ IpAddr::V4(_) => ip,
    }
}

/// The largest of some groups, and of several the one with the oldest caller.
fn largest<'a, K: Copy + 'a>(groups: impl Iterator<Item = (K, usize, Option<Instant>)>) -> Option<(K, usize)> {
    let best = groups.max_by_key(|(_, size, oldest)| (*size, core::cmp::Reverse(*oldest)));
    best.map(|(group, size, _)| (group, size))
}

fn size(hosts: &BTreeMap<IpAddr, Places>) -> usize {
    hosts.values().map(VecDeque::len).sum()
}

fn oldest(places: &Places) -> Option<Instant> {
    places.front().map(|(since, _)| *since)
}

impl Callers {
    pub(super) fn is_empty(&self) -> bool {
        self.addresses.is_empty()
    }

    /// A caller from `ip` begins its handshake in a slot.
    pub(super) fn enter(&mut self, ip: IpAddr, slot: u32, now: Instant) {
        self.leave(slot);
        self.addresses.insert(slot, ip);
        self.networks.entry(Network::of(ip)).or_default().entry(host(ip)).or_default().push_back((now, slot));
    }

    /// The caller in a slot, if there is one, is in the middle of its handshake no more.
    pub(super) fn leave(&mut self, slot: u32) {
        let Some(ip) = self.addresses.remove(&slot) else { return };
        let (network, host) = (Network::of(ip), host(ip));
        let Some(hosts) = self.networks.get_mut(&network) else { return };
        if let Some(places) = hosts.get_mut(&host) {
            places.retain(|(_, other)| *other != slot);
            if places.is_empty() {
                hosts.remove(&host);
            }
        }
        if hosts.is_empty() {
            self.networks.remove(&network);
        }
    }

    /// The place for a caller from `ip`, whose address was validated. There are `places` in all, and none is free if `is_full`.
    pub(super) fn place(&self, ip: IpAddr, now: Instant, places: usize, is_full: bool) -> CallerPlace {
        let (network, own) = (Network::of(ip), host(ip));
        let ours = self.networks.get(&network).map_or(0, size);
        if ours >= (places / SHARE).max(1) {
            return self.place_within(network, Some(own), now);
        }
        if !is_full {
            return CallerPlace::Free;
        }
        let groups = self
            .networks
            .iter()
            .map(|(network, hosts)| (*network, size(hosts), hosts.values().filter_map(oldest).min()));
        match largest(groups) {
            Some((other, _)) if other == network => self.place_within(network, Some(own), now),
            Some((other, theirs)) if theirs > ours + 1 => self.place_within(other, None, now),
            // An equal makes room once it had its time.
            Some((other, theirs)) if theirs > ours => self.old_place(other, now),
            Some(_) => self.place_within(network, Some(own), now),
            None => CallerPlace::Later,
        }
    }

    /// The place of the largest host in a network. A caller of the same network, from the host `own`, must have less.
    fn place_within(&self, network: Network, own: Option<IpAddr>, now: Instant) -> CallerPlace {
        let Some(hosts) = self.networks.get(&network) else { return CallerPlace::Later };
        let groups = hosts.iter().map(|(host, places)| (*host, places.len(), oldest(places)));
        let Some((host, theirs)) = largest(groups) else { return CallerPlace::Later };
        let ours = own.map_or(0, |own| hosts.get(&own).map_or(0, VecDeque::len));
        let first = hosts.get(&host).and_then(VecDeque::front);
        match first {
            Some((since, slot)) if own.is_none() || theirs > ours + 1 || now - *since >= PATIENCE => {
                CallerPlace::Of(*slot)
            }
            _ => CallerPlace::Later,
        }
    }

    /// The oldest place of a network, if it is old enough.
    fn old_place(&self, network: Network, now: Instant) -> CallerPlace {
        let places = self.networks.get(&network).into_iter().flat_map(BTreeMap::values);
        let first = places.filter_map(VecDeque::front).min();
        first
            .filter(|(since, _)| now - *since >= PATIENCE)
            .map_or(CallerPlace::Later, |(_, slot)| CallerPlace::Of(*slot))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACES: usize = 16;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    /// Callers of these hosts, one each millisecond from the first on, in the slots from 0.
    fn callers(hosts: &[&str]) -> Callers {
        let mut callers = Callers::default();
        hosts.iter().enumerate().for_each(|(slot, host)| callers.enter(ip(host), slot as u32, at(slot as u64)));
        callers
    }

    #[test]
    fn a_network_has_a_quarter_of_the_places() {
        let mut callers = callers(&["10.0.0.1"; 3]);
        assert_eq!(callers.place(ip("10.0.0.1"), at(9), PLACES, false), CallerPlace::Free);
        callers.enter(ip("10.0.0.1"), 3, at(9));
        assert_eq!(callers.place(ip("10.0.0.1"), at(10), PLACES, false), CallerPlace::Later);
        assert_eq!(callers.place(ip("10.0.1.1"), at(10), PLACES, false), CallerPlace::Free, "another network");
        assert_eq!(
            callers.place(ip("10.0.0.1"), at(1_000), PLACES, false),
            CallerPlace::Of(0),
            "the oldest, after its time"
        );
        callers.leave(2);
        assert_eq!(callers.place(ip("10.0.0.1"), at(10), PLACES, false), CallerPlace::Free);
    }

    #[test]
    fn a_host_that_fills_the_places_of_its_network_makes_room_for_its_neighbours_at_once() {
        let callers = callers(&["10.0.0.9", "10.0.0.1", "10.0.0.1", "10.0.0.1"]);
        assert_eq!(callers.place(ip("10.0.0.2"), at(5), PLACES, false), CallerPlace::Of(1));
        assert_eq!(callers.place(ip("10.0.0.9"), at(5), PLACES, false), CallerPlace::Of(1));
        assert_eq!(callers.place(ip("10.0.0.1"), at(5), PLACES, false), CallerPlace::Later);
    }

    #[test]
    fn a_full_table_has_room_for_every_network_that_has_less_than_another_one() {
        let callers = callers(&["10.0.0.1", "10.0.1.1", "10.0.1.1", "10.0.2.1", "10.0.2.1", "10.0.2.1"]);
        for other in ["10.9.9.9", "10.0.0.1", "2001:db8::1"] {
            assert_eq!(callers.place(ip(other), at(9), PLACES, true), CallerPlace::Of(3), "{other}");
        }
        assert_eq!(callers.place(ip("10.0.1.1"), at(9), PLACES, true), CallerPlace::Later, "it would have as much");
        assert_eq!(callers.place(ip("10.0.1.1"), at(1_003), PLACES, true), CallerPlace::Of(3));
        assert_eq!(callers.place(ip("10.0.2.1"), at(9), PLACES, true), CallerPlace::Later, "it has the most");
        assert_eq!(
            Callers::default().place(ip("10.0.2.1"), at(9), PLACES, true),
            CallerPlace::Later,
            "others have them"
        );
    }

    #[test]
    fn equals_have_their_time() {
        let callers = callers(&["10.0.0.1", "10.0.1.1", "10.0.2.1", "10.0.3.1"]);
        assert_eq!(callers.place(ip("10.0.4.1"), at(999), PLACES, true), CallerPlace::Later);
        assert_eq!(callers.place(ip("10.0.4.1"), at(1_000), PLACES, true), CallerPlace::Of(0));
    }

    #[test]
    fn all_addresses_of_a_host_are_one() {
        let callers = callers(&["2001:db8::1", "2001:db8::2", "2001:db8::3", "2001:db8:0:1::1"]);
        assert_eq!(callers.place(ip("2001:db8::4"), at(9), PLACES, false), CallerPlace::Later, "its host has the most");
        assert_eq!(callers.place(ip("2001:db8:0:2::1"), at(9), PLACES, false), CallerPlace::Of(0));
        let callers = self::callers(&["::ffff:10.0.0.1", "10.0.0.1", "10.0.0.1", "10.0.0.1"]);
        assert_eq!(callers.place(ip("10.0.0.1"), at(9), PLACES, false), CallerPlace::Later);
    }

    #[test]
    fn nothing_is_left_of_callers_that_left() {
        let mut callers = callers(&["10.0.0.1", "10.0.0.2", "10.0.1.1"]);
        // A slot that is used again.
        callers.enter(ip("10.0.5.1"), 1, at(9));
        assert_eq!(callers.networks.len(), 3);
        (0..3).for_each(|slot| callers.leave(slot));
        callers.leave(7);
        assert!(callers.is_empty() && callers.networks.is_empty());
    }
}
