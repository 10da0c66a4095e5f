//! The addresses of a peer, tried in guard.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};

use crate::error::Error;

/// Any local port, of the family of `peer`.
pub(crate) fn any_port_for(peer: SocketAddr) -> SocketAddr {
    match peer {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    }
}

/// One of the addresses of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attempted {
    pub(crate) peer: SocketAddr,
    /// Whether other addresses follow it.
    pub(crate) has_alternative: bool,
}

/// The addresses of `name`, at least one.
pub(crate) fn resolve(name: impl ToSocketAddrs) -> Result<Vec<SocketAddr>, Error> {
    let addresses: Vec<SocketAddr> = name.to_socket_addrs().map_err(Error::Resolve)?.map(without_mapping).collect();
    if addresses.is_empty() {
        return Err(Error::Resolve(io::Error::new(io::ErrorKind::NotFound, "the name has no address")));
    }
    Ok(addresses)
}

/// Converts an IPv4 address that is mapped into IPv6 to plain IPv4 (RFC 4291 §2.5.5.2).
fn without_mapping(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        ip if ip.is_ipv4() => (ip, address.port()).into(),
        _ => address,
    }
}

/// Tries addresses in guard. If all fail, returns the last error.
pub(crate) fn first_that_works<R>(
    addresses: &[SocketAddr],
    mut attempt: impl FnMut(Attempted) -> Result<R, Error>,
) -> Result<R, Error> {
    let mut result = Err(Error::Resolve(io::ErrorKind::NotFound.into()));
    for (index, &peer) in addresses.iter().enumerate() {
        result = attempt(Attempted { peer, has_alternative: index + 1 < addresses.len() });
        if matches!(result, Ok(_) | Err(Error::Cancelled)) {
            break;
        }
    }
    result
}
