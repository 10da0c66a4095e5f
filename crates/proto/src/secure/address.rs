//! The addresses that a protocol inside sees: one for each connection around it.
//!
//! ```text
//! the peer's address when the tunnel began, as IPv6 | flow label: slot of the connection | scope: its generation
//! ```
//!
//! Datagrams to such an address go through its connection and no other, wherever its peer is now. Two peers behind one
//! address translator, one after the other, may have one address. They have two connections.
//!
//! The connection around a protocol is its tunnel.

use core::net::{IpAddr, SocketAddr, SocketAddrV6};

use crate::event::ConnectionId;

/// The address of the peer at `origin`, behind a tunnel.
pub(super) fn behind(tunnel: ConnectionId, origin: SocketAddr) -> SocketAddr {
    let ip = match origin.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    SocketAddrV6::new(ip, origin.port(), tunnel.slot, tunnel.generation).into()
}

/// The tunnel of an address.
pub(super) fn tunnel(address: SocketAddr) -> Option<ConnectionId> {
    match address {
        SocketAddr::V6(address) => Some(ConnectionId { slot: address.flowinfo(), generation: address.scope_id() }),
        SocketAddr::V4(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_peer_behind_two_tunnels_has_two_addresses_of_its_family() {
        let ids = [(1, 0), (1, 7)].map(|(slot, generation)| ConnectionId { slot, generation });
        for origin in ["10.0.0.1:9000", "[2001:db8::1]:9000"] {
            let origin: SocketAddr = origin.parse().unwrap();
            let both = ids.map(|id| behind(id, origin));
            assert_ne!(both[0], both[1]);
            assert_eq!(both.map(tunnel), ids.map(Some));
            assert_eq!((both[0].ip().to_canonical(), both[0].port()), (origin.ip(), 9000));
        }
        assert_eq!(tunnel("10.0.0.1:9000".parse().unwrap()), None);
    }
}
