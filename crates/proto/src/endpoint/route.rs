//! The addresses of a connection's datagrams.

use core::net::{IpAddr, SocketAddr};

use crate::transport::AddressPair;

/// The addresses between which a connection's datagrams travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    peer: Peer,
    source: Source,
}

/// The peer's address for datagrams.
///
/// A caller knows it. A side that was called on a channel learns it from the first datagram, because the datagrams come
/// from another port than the channel. They must come from the same host (attack C2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Peer {
    Known(SocketAddr),
    /// The first datagram comes from this host.
    From(IpAddr),
}

/// This side's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The system chooses by its routes. So the connection of a caller survives a change of them.
    OfRoutes,
    /// The address that the peer asked, because the peer takes answers from there alone. What comes to another one changes
    /// nothing: a peer that is heard at both would have its connection move without an end. `None` until the first datagram,
    /// and at a port with one address.
    Asked(Option<IpAddr>),
}

impl Route {
    /// The route to a peer at a known address.
    pub(crate) const fn to(peer: SocketAddr, source: Source) -> Self {
        Self { peer: Peer::Known(peer), source }
    }

    /// The route to a peer that called from this host.
    pub(crate) const fn from_host(host: IpAddr) -> Self {
        Self { peer: Peer::From(host), source: Source::Asked(None) }
    }

    /// The addresses of a datagram, without this side's if the system chooses it.
    #[inline]
    pub(crate) const fn seen(self, from: AddressPair) -> AddressPair {
        match self.source {
            Source::OfRoutes => AddressPair { peer: from.peer, local: None },
            Source::Asked(_) => from,
        }
    }

    /// Whether a datagram may be the peer's, by its address. The first one fixes the addresses of both sides.
    #[inline]
    pub(crate) fn takes(&mut self, from: AddressPair) -> bool {
        let is_of_peer = match self.peer {
            Peer::Known(peer) => peer == from.peer,
            Peer::From(host) => from.peer.ip() == host,
        };
        if is_of_peer && matches!((self.peer, self.source), (Peer::From(_), _) | (_, Source::Asked(None))) {
            self.move_to(from);
        }
        is_of_peer
    }

    /// The datagrams travel between these addresses from now on.
    pub(crate) fn move_to(&mut self, AddressPair { peer, local }: AddressPair) {
        self.peer = Peer::Known(peer);
        if let Source::Asked(asked) = &mut self.source {
            *asked = local;
        }
    }

    /// The addresses of this side's datagrams; `None` until the peer's first one.
    #[inline]
    pub(crate) const fn between(self) -> Option<AddressPair> {
        let local = match self.source {
            Source::OfRoutes => None,
            Source::Asked(local) => local,
        };
        match self.peer {
            Peer::Known(peer) => Some(AddressPair { peer, local }),
            Peer::From(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(host: u8, port: u16) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, host], port))
    }

    /// From a host to an address of this side.
    fn pair(host: u8, port: u16, local: u8) -> AddressPair {
        AddressPair { peer: address(host, port), local: Some([10, 1, 0, local].into()) }
    }

    #[test]
    fn c2_only_the_host_of_the_channel_may_send_datagrams() {
        let mut route = Route::from_host(address(1, 40_000).ip());
        assert!(!route.takes(pair(2, 9_000, 1)) && route.between().is_none());
        assert!(route.takes(pair(1, 9_000, 1)));
        assert_eq!(route.between(), Some(pair(1, 9_000, 1)), "another port than that of its channel");
        assert!(!route.takes(pair(1, 9_001, 1)), "one port for the whole connection");
    }

    #[test]
    fn a_caller_takes_datagrams_from_the_address_that_it_called() {
        let mut route = Route::to(address(1, 9_000), Source::OfRoutes);
        assert!(!route.takes(pair(1, 9_001, 1)) && route.takes(pair(1, 9_000, 1)));
    }

    #[test]
    fn the_source_of_a_caller_follows_the_routes_and_that_of_its_peer_stays() {
        let mut route = Route::to(address(1, 9_000), Source::OfRoutes);
        assert!(route.takes(pair(1, 9_000, 1)));
        assert_eq!(
            (route.between(), route.seen(pair(1, 9, 1))),
            (Some(address(1, 9_000).into()), address(1, 9).into())
        );
        for asked in [Some([10, 1, 0, 1].into()), None] {
            let mut route = Route::to(address(1, 9_000), Source::Asked(asked));
            assert!(route.takes(pair(1, 9_000, 1)) && route.takes(pair(1, 9_000, 2)));
            assert_eq!(route.between(), Some(pair(1, 9_000, 1)), "fixed by the first datagram at the latest");
            route.move_to(pair(3, 9_000, 2));
            assert_eq!(route.between(), Some(pair(3, 9_000, 2)));
        }
    }
}
