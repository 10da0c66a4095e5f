//! The addresses of a connection's datagrams.

use core::net::{IpAddr, SocketAddr};

/// The peer's address for datagrams.
///
/// A caller knows it. A side that was called on a channel learns it from the first datagram, because the datagrams come
/// from another port than the channel. They must come from the same host (attack C2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    Known(SocketAddr),
    /// The first datagram comes from this host.
    From(IpAddr),
}

impl Route {
    /// Whether a datagram from this address may be the peer's. The first one fixes the address.
    #[inline]
    pub(crate) fn takes(&mut self, from: SocketAddr) -> bool {
        match *self {
            Self::Known(peer) => peer == from,
            Self::From(host) => {
                let expected = from.ip() == host;
                if expected {
                    *self = Self::Known(from);
                }
                expected
            }
        }
    }

    /// Where this side's datagrams go; `None` until the peer's first datagram.
    #[inline]
    pub(crate) const fn destination(self) -> Option<SocketAddr> {
        match self {
            Self::Known(peer) => Some(peer),
            Self::From(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(host: u8, port: u16) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, host], port))
    }

    #[test]
    fn c2_only_the_host_of_the_channel_may_send_datagrams() {
        let mut route = Route::From(address(1, 40_000).ip());
        assert!(!route.takes(address(2, 9_000)) && route.destination().is_none());
        assert!(route.takes(address(1, 9_000)));
        assert_eq!(route.destination(), Some(address(1, 9_000)), "another port than that of its channel");
        assert!(!route.takes(address(1, 9_001)), "one port for the whole connection");
    }

    #[test]
    fn a_caller_takes_datagrams_from_the_address_that_it_called() {
        let mut route = Route::Known(address(1, 9_000));
        assert!(!route.takes(address(1, 9_001)) && route.takes(address(1, 9_000)));
    }
}
