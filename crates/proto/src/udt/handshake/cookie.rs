//! The handshake cookie: proof that a caller can receive at its address.
//!
//! libudt's cookie is a hash without a secret, so anybody can compute it for any address (attack A1). This one is keyed.
//! The wire is the same: callers only echo it.

use std::net::{IpAddr, SocketAddr};

use farhaul_units::{Duration, Instant};
use farhaul_wire::udt4::SocketId;
use siphasher::sip::SipHasher24;

/// How long the key of the hash stays the same; a cookie is good for this time and the next (attack A3).
const EPOCH: Duration = Duration::from_secs(60);

/// Makes and checks cookies.
#[derive(Clone)]
pub(super) struct CookieJar {
    key: [u8; 16],
}

impl CookieJar {
    pub(super) const fn new(key: [u8; 16]) -> Self {
        Self { key }
    }

    /// The cookie of a caller at this time.
    pub(super) fn bake(&self, caller: SocketAddr, id: SocketId, now: Instant) -> u32 {
        self.cookie(caller, id, epoch(now))
    }

    /// Whether `cookie` was baked for this caller in this or the previous epoch.
    pub(super) fn is_good(&self, cookie: u32, caller: SocketAddr, id: SocketId, now: Instant) -> bool {
        let epoch = epoch(now);
        // Differences are combined without a branch, so that the time taken says nothing about the right value.
        let wrong = [epoch, epoch.wrapping_sub(1)].map(|epoch| self.cookie(caller, id, epoch) ^ cookie);
        (wrong[0] == 0) | (wrong[1] == 0)
    }

    fn cookie(&self, caller: SocketAddr, id: SocketId, epoch: u64) -> u32 {
        let mut input = [0; 16 + 2 + 4 + 8];
        let ip = match caller.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        input[..16].copy_from_slice(&ip.octets());
        input[16..18].copy_from_slice(&caller.port().to_be_bytes());
        input[18..22].copy_from_slice(&id.value().to_be_bytes());
        input[22..].copy_from_slice(&epoch.to_be_bytes());
        SipHasher24::new_with_key(&self.key).hash(&input) as u32
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
        let cookie = jar.bake(caller(9), id, late_in_minute);
        assert!(jar.is_good(cookie, caller(9), id, late_in_minute + Duration::from_millis(2)));
        assert!(jar.is_good(cookie, caller(9), id, late_in_minute + Duration::from_secs(60)));
        assert!(!jar.is_good(cookie, caller(9), id, late_in_minute + Duration::from_secs(61)));
    }

    #[test]
    fn a_cookie_is_bound_to_address_port_id_and_key() {
        let jar = CookieJar::new([7; 16]);
        let cookie = jar.bake(caller(9), SocketId::new(5), Instant::ZERO);
        assert!(!jar.is_good(cookie, caller(10), SocketId::new(5), Instant::ZERO));
        assert!(!jar.is_good(cookie, caller(9), SocketId::new(6), Instant::ZERO));
        assert!(!CookieJar::new([8; 16]).is_good(cookie, caller(9), SocketId::new(5), Instant::ZERO));
    }
}
