//! Budgets of networks, so that one network cannot harm the others.

use core::net::IpAddr;

use farhaul_units::{Duration, Instant};
use siphasher::sip::SipHasher24;

/// Number of budgets, assigned to networks by keyed hash: 32 KiB.
///
/// More networks share budgets. Two given networks share one with a chance of 1 : 4096. Without the key nobody can
/// choose or find out which ones do.
const CELLS: usize = 4096;

/// A token bucket per [`Network`].
pub(crate) struct PrefixBudget {
    key: [u8; 16],
    size: u32,
    refill: Duration,
    /// When each bucket is full again if no more tokens are taken. This one number is its whole state. Empty until the first
    /// token is taken, because most endpoints only call.
    full_at: Vec<Instant>,
}

impl PrefixBudget {
    /// Buckets of `size` tokens. An empty bucket refills evenly and is full after `refill`.
    pub(crate) fn new(key: [u8; 16], size: u32, refill: Duration) -> Self {
        Self { key, size, refill, full_at: Vec::new() }
    }

    /// Whether the network of `ip` has a token.
    pub(crate) fn has_left(&self, ip: IpAddr, now: Instant) -> bool {
        let full_at = self.full_at.get(self.cell(ip)).copied().unwrap_or(Instant::ZERO);
        full_at + self.token() <= now + self.refill
    }

    /// Takes a token from the network of `ip`, if it has one.
    pub(crate) fn take(&mut self, ip: IpAddr, now: Instant) {
        if self.has_left(ip, now) {
            let token = self.token();
            let cell = self.cell(ip);
            self.full_at.resize(CELLS, Instant::ZERO);
            self.full_at[cell] = self.full_at[cell].max(now) + token;
        }
    }

    /// Returns a token early.
    pub(crate) fn give_back(&mut self, ip: IpAddr) {
        let (cell, token) = (self.cell(ip), self.token());
        if let Some(full_at) = self.full_at.get_mut(cell) {
            *full_at = full_at.saturating_sub(token);
        }
    }

    /// Time in which one token refills.
    fn token(&self) -> Duration {
        self.refill / self.size
    }

    fn cell(&self, ip: IpAddr) -> usize {
        // Only the low bits select a cell, and the hash is never sent.
        SipHasher24::new_with_key(&self.key).hash(&Network::of(ip).0) as usize % CELLS
    }
}

/// A network: the /24 of an IPv4 address, or the /56 of an IPv6 address, which one site has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Network([u8; 1 + 7]);

impl Network {
    pub(crate) fn of(ip: IpAddr) -> Self {
        let mut bytes = [0; 1 + 7];
        // A dual-stack socket sees IPv4 callers as IPv6 addresses with a common prefix.
        match ip.to_canonical() {
            IpAddr::V4(ip) => {
                bytes[0] = 4;
                bytes[1..4].copy_from_slice(&ip.octets()[..3]);
            }
            IpAddr::V6(ip) => {
                bytes[0] = 6;
                bytes[1..8].copy_from_slice(&ip.octets()[..7]);
            }
        }
        Self(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn budget() -> PrefixBudget {
        PrefixBudget::new([3; 16], 10, Duration::from_secs(1))
    }

    /// Takes tokens until the bucket is empty.
    fn drain(budget: &mut PrefixBudget, from: IpAddr, now: Instant) -> u32 {
        let mut taken = 0;
        while budget.has_left(from, now) {
            budget.take(from, now);
            taken += 1;
        }
        taken
    }

    #[test]
    fn a_bucket_holds_its_size_and_refills_evenly() {
        let mut budget = budget();
        assert_eq!(drain(&mut budget, ip("10.0.0.1"), at(5_000)), 10);
        assert_eq!(drain(&mut budget, ip("10.0.0.1"), at(5_350)), 3);
        assert_eq!(drain(&mut budget, ip("10.0.0.1"), at(60_000)), 10);
    }

    #[test]
    fn a_token_that_is_given_back_can_be_taken_at_once_and_none_is_made() {
        let mut budget = budget();
        drain(&mut budget, ip("10.0.0.1"), at(5_000));
        budget.give_back(ip("10.0.0.1"));
        assert_eq!(drain(&mut budget, ip("10.0.0.1"), at(5_000)), 1);
        for _ in 0..50 {
            budget.give_back(ip("10.0.0.1"));
        }
        assert_eq!(drain(&mut budget, ip("10.0.0.1"), at(5_000)), 10);
    }

    #[test]
    fn addresses_of_one_site_share_a_bucket_and_other_sites_have_their_own() {
        let mut budget = budget();
        drain(&mut budget, ip("10.0.0.1"), at(0));
        drain(&mut budget, ip("2001:db8:0:100::1"), at(0));
        for same in ["10.0.0.255", "::ffff:10.0.0.9", "2001:db8:0:1ff:ffff::"] {
            assert!(!budget.has_left(ip(same), at(0)), "{same}");
        }
        for other in ["10.0.1.1", "::ffff:10.0.2.1", "2001:db8:0:200::1"] {
            assert!(budget.has_left(ip(other), at(0)), "{other}");
        }
    }

    #[test]
    fn the_key_decides_which_networks_share_a_bucket() {
        let network = |n: u32| IpAddr::from(core::net::Ipv4Addr::from(n << 8));
        let mates_of = |key: u8| -> Vec<u32> {
            let mut budget = PrefixBudget::new([key; 16], 1, Duration::from_secs(1));
            budget.take(network(0), at(0));
            (1..100_000).filter(|&n| !budget.has_left(network(n), at(0))).collect()
        };
        let (one, other) = (mates_of(1), mates_of(2));
        assert!(!one.is_empty() && one.len() < 100, "{}", one.len());
        assert!(one.iter().filter(|n| other.contains(n)).count() < 5);
    }
}
