//! IP addresses with a common prefix.

use core::fmt;
use core::net::{IpAddr, Ipv6Addr};
use core::str::FromStr;

/// Bits in front of an IPv4 address in its mapped form (RFC 4291, section 2.5.5.2).
const BEFORE_IPV4: u32 = 96;

/// Addresses with a common prefix: `10.0.0.0/8`, `2001:db8::/32`, or one address.
///
/// A mapped address, such as `::ffff:10.0.0.1`, is that IPv4 address.
///
/// ```
/// let network: farhaul_units::Network = "10.0.0.0/8".parse()?;
/// assert!(network.contains("10.1.2.3".parse()?) && network.contains("::ffff:10.1.2.3".parse()?));
/// assert!(!network.contains("11.0.0.1".parse()?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// The prefix. IPv4 addresses stand in their mapped form.
    prefix: u128,
    /// Bits of the prefix.
    bits: u32,
}

/// Why a text is no network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseNetworkError {
    /// It has no IP address. Names are not looked up.
    Address,
    /// The length of the prefix is no number, or longer than the address.
    Length,
    /// The address has bits behind its prefix, which is a mistake in one of them.
    Behind,
}

impl fmt::Display for ParseNetworkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Address => "it must begin with an IP address, as in 10.0.0.0/8 or 2001:db8::/32",
            Self::Length => "the length behind / must be at most 32 for IPv4 and 128 for IPv6",
            Self::Behind => "the address has bits behind its prefix",
        })
    }
}

impl core::error::Error for ParseNetworkError {}

impl Network {
    /// Whether an address belongs to it.
    pub fn contains(&self, address: IpAddr) -> bool {
        number(address) & self.mask() == self.prefix
    }

    fn mask(self) -> u128 {
        u128::MAX.checked_shl(128 - self.bits).unwrap_or(0)
    }
}

impl FromStr for Network {
    type Err = ParseNetworkError;

    fn from_str(text: &str) -> Result<Self, ParseNetworkError> {
        let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().map_err(|_| ParseNetworkError::Address)?;
        let (all, before) = match address {
            IpAddr::V4(_) => (32, BEFORE_IPV4),
            IpAddr::V6(_) => (128, 0),
        };
        let bits = match bits {
            None => all,
            Some(bits) => bits.parse().ok().filter(|&bits| bits <= all).ok_or(ParseNetworkError::Length)?,
        };
        let network = Self { prefix: number(address), bits: bits + before };
        if network.prefix & !network.mask() == 0 { Ok(network) } else { Err(ParseNetworkError::Behind) }
    }
}

impl fmt::Display for Network {
    /// In the format that [`FromStr`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = IpAddr::V6(Ipv6Addr::from(self.prefix)).to_canonical();
        match address {
            IpAddr::V4(address) if self.bits >= BEFORE_IPV4 => write!(f, "{address}/{}", self.bits - BEFORE_IPV4),
            _ => write!(f, "{}/{}", Ipv6Addr::from(self.prefix), self.bits),
        }
    }
}

fn number(address: IpAddr) -> u128 {
    let six: Ipv6Addr = match address.to_canonical() {
        IpAddr::V4(four) => four.to_ipv6_mapped(),
        IpAddr::V6(six) => six,
    };
    six.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contains(network: &str, address: &str) -> bool {
        network.parse::<Network>().unwrap().contains(address.parse().unwrap())
    }

    #[test]
    fn a_network_has_the_addresses_of_its_prefix_in_both_forms() {
        for (network, inside, outside) in [
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.1"),
            ("10.0.0.0/8", "::ffff:10.1.2.3", "::ffff:11.1.2.3"),
            ("::ffff:10.0.0.0/104", "10.1.2.3", "11.1.2.3"),
            ("2001:db8::/32", "2001:db8:9::1", "2001:db9::1"),
            ("192.0.2.7", "192.0.2.7", "192.0.2.8"),
            ("0.0.0.0/0", "203.0.113.1", "2001:db8::1"),
        ] {
            assert!(contains(network, inside) && !contains(network, outside), "{network}");
        }
        assert!(contains("::/0", "10.0.0.1") && contains("::/0", "2001:db8::1"));
    }

    #[test]
    fn a_text_that_is_no_network_is_refused_with_the_reason() {
        for (text, reason) in [
            ("10.0.0.0/33", ParseNetworkError::Length),
            ("10.0.0.0/-1", ParseNetworkError::Length),
            ("2001:db8::/129", ParseNetworkError::Length),
            ("10.0.0.1/8", ParseNetworkError::Behind),
            ("host.example", ParseNetworkError::Address),
            ("10.0.0/8", ParseNetworkError::Address),
            ("", ParseNetworkError::Address),
        ] {
            assert_eq!(text.parse::<Network>(), Err(reason), "{text}");
        }
    }

    #[test]
    fn a_network_is_printed_as_it_is_read() {
        for text in ["10.0.0.0/8", "0.0.0.0/0", "192.0.2.7/32", "2001:db8::/32", "::/0"] {
            assert_eq!(text.parse::<Network>().unwrap().to_string(), text);
        }
    }
}
