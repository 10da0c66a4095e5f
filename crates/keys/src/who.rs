//! Who calls, as far as a listener can tell its callers apart.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use farhaul::security::PublicKey;

/// Leading bits of an address that one subscriber has at least: a /24, and a /56 by RIPE-690 §4.2.
const PREFIX_V4: u32 = 24;
const PREFIX_V6: u32 = 56;

/// A caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Who {
    /// The owner of this key, whom the listener knows.
    Listed(PublicKey),
    /// Somebody in this network. A key that nobody knows tells no more, since everybody makes as many as they want.
    Unlisted(IpAddr),
}

impl Who {
    /// Somebody in the network of this address.
    pub fn unlisted(from: SocketAddr) -> Self {
        Self::Unlisted(match from.ip().to_canonical() {
            IpAddr::V4(ip) => Ipv4Addr::from_bits(ip.to_bits() & u32::MAX << (u32::BITS - PREFIX_V4)).into(),
            IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() & u128::MAX << (u128::BITS - PREFIX_V6)).into(),
        })
    }

    /// Whether no line of the listener names the caller.
    pub const fn is_unlisted(self) -> bool {
        matches!(self, Self::Unlisted(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unlisted_callers_of_one_network_are_one() {
        let at = |address: &str| Who::unlisted(address.parse().unwrap());
        assert_eq!(at("192.0.2.1:1"), at("192.0.2.200:2"));
        assert_eq!(at("192.0.2.1:1"), at("[::ffff:192.0.2.7]:1"));
        assert_ne!(at("192.0.2.1:1"), at("192.0.3.1:1"));
        assert_eq!(at("[2001:db8:0:1::1]:1"), at("[2001:db8:0:ff:1::1]:1"));
        assert_ne!(at("[2001:db8:0:1::1]:1"), at("[2001:db8:0:100::1]:1"));
    }
}
