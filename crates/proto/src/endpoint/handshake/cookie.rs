//! The handshake cookie: proof that a caller can receive at its address.
//!
//! libudt's cookie is a hash without a secret, so anybody can compute it for any address (attack A1). This one is
//! keyed. The wire format is the same, because callers only echo it.

use core::net::{IpAddr, SocketAddr};

use farhaul_units::{Duration, Instant};
use farhaul_wire::udt4::SocketId;
use siphasher::sip::SipHasher24;

/// Lifetime of the epoch in the hash. A cookie is valid in its epoch and the next (attack A3).
const EPOCH: Duration = Duration::from_secs(60);

/// Makes and checks cookies.
#[derive(Clone)]
pub(super) struct CookieJar {
    key: [u8; 16],
}

/// The request that a cookie answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Round {
    /// Every caller's first request.
    First,
    /// The request of a caller that returned a valid cookie while somebody was guessing cookies.
    Second,
}

impl CookieJar {
    pub(super) const fn new(key: [u8; 16]) -> Self {
        Self { key }
    }

    /// The cookie of a caller at this time.
    pub(super) fn bake(&self, round: Round, caller: SocketAddr, id: SocketId, now: Instant) -> u32 {
        self.hash(round, caller, id, epoch(now)) as u32
    }

    /// The round for which `cookie` was made for this caller in the present or previous epoch, if it was.
    pub(super) fn check(&self, cookie: u32, caller: SocketAddr, id: SocketId, now: Instant) -> Option<Round> {
        // Differences are combined without a branch, so that the time taken does not reveal the right value.
        let [first, second] = [Round::First, Round::Second].map(|round| {
            let [this, previous] = [epoch(now), epoch(now).wrapping_sub(1)]
                .map(|epoch| self.hash(round, caller, id, epoch) as u32 ^ cookie);
            (this == 0) | (previous == 0)
        });
        if first {
            Some(Round::First)
        } else if second {
            Some(Round::Second)
        } else {
            None
        }
    }

    /// A mark that identifies a caller that passed the first round. It is never sent.
    pub(super) fn mark(&self, caller: SocketAddr, id: SocketId) -> u64 {
        self.hash(Round::Second, caller, id, u64::MAX)
    }

    fn hash(&self, round: Round, caller: SocketAddr, id: SocketId, epoch: u64) -> u64 {
        let mut input = [0; 16 + 2 + 4 + 8 + 1];
        let ip = match caller.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        input[..16].copy_from_slice(&ip.octets());
        input[16..18].copy_from_slice(&caller.port().to_be_bytes());
        input[18..22].copy_from_slice(&id.value().to_be_bytes());
        input[22..30].copy_from_slice(&epoch.to_be_bytes());
        input[30] = round as u8;
        SipHasher24::new_with_key(&self.key).hash(&input)
    }
}

const fn epoch(now: Instant) -> u64 {
    now.as_nanos() / EPOCH.as_nanos() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    #[test]
    fn a_cookie_is_good_for_its_epoch_and_the_next() {
        let jar = CookieJar::new([7; 16]);
        let id = SocketId::new(5);
        let late_in_minute = Instant::ZERO + Duration::from_millis(59_999);
        for round in [Round::First, Round::Second] {
            let cookie = jar.bake(round, caller(9), id, late_in_minute);
            let check_after = |time| jar.check(cookie, caller(9), id, late_in_minute + time);
            assert_eq!(check_after(Duration::from_millis(2)), Some(round));
            assert_eq!(check_after(Duration::from_secs(60)), Some(round));
            assert_eq!(check_after(Duration::from_secs(61)), None);
        }
    }

    #[test]
    fn a_cookie_is_bound_to_address_port_id_and_key() {
        let jar = CookieJar::new([7; 16]);
        let cookie = jar.bake(Round::First, caller(9), SocketId::new(5), Instant::ZERO);
        assert_eq!(jar.check(cookie, caller(10), SocketId::new(5), Instant::ZERO), None);
        assert_eq!(jar.check(cookie, caller(9), SocketId::new(6), Instant::ZERO), None);
        assert_eq!(CookieJar::new([8; 16]).check(cookie, caller(9), SocketId::new(5), Instant::ZERO), None);
    }
}
