//! Addresses in the form of the system: sockaddr_in and sockaddr_in6.
#![expect(unsafe_code, reason = "addresses come from C and go there by pointer")]

use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

use crate::failure::{Code, Result};

/// The family of a socket's addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    V4,
    V6,
}

impl Family {
    /// # Errors
    /// It is neither AF_INET nor AF_INET6.
    pub(crate) fn from_number(number: i32) -> Result<Self> {
        match number {
            libc::AF_INET => Ok(Self::V4),
            libc::AF_INET6 => Ok(Self::V6),
            _ => Err(Code::InvalidParameter.into()),
        }
    }

    /// The address of all interfaces, with a port of the system's choice.
    pub(crate) fn any(self) -> SocketAddr {
        match self {
            Self::V4 => SocketAddr::from(([0, 0, 0, 0], 0)),
            Self::V6 => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
        }
    }

    pub(crate) const fn of(address: SocketAddr) -> Self {
        if address.is_ipv4() { Self::V4 } else { Self::V6 }
    }

    /// The size of an address of this family in bytes.
    const fn size(self) -> usize {
        match self {
            Self::V4 => size_of::<libc::sockaddr_in>(),
            Self::V6 => size_of::<libc::sockaddr_in6>(),
        }
    }
}

/// Reads an address of this family.
///
/// # Safety
/// `name` is null or points to `length` readable bytes.
pub(crate) unsafe fn read(name: *const libc::sockaddr, length: i32, family: Family) -> Result<SocketAddr> {
    if name.is_null() || usize::try_from(length).is_ok_and(|length| length < family.size()) || length < 0 {
        return Err(Code::InvalidParameter.into());
    }
    // SAFETY: there are at least as many bytes as an address of this family has, and both structures permit any bytes.
    let address = unsafe {
        match family {
            Family::V4 => {
                let raw = name.cast::<libc::sockaddr_in>().read_unaligned();
                let ip = raw.sin_addr.s_addr.to_ne_bytes();
                (raw.sin_family, SocketAddr::V4(SocketAddrV4::new(ip.into(), u16::from_be(raw.sin_port))))
            }
            Family::V6 => {
                let raw = name.cast::<libc::sockaddr_in6>().read_unaligned();
                let (ip, port) = (Ipv6Addr::from(raw.sin6_addr.s6_addr), u16::from_be(raw.sin6_port));
                let whole = SocketAddrV6::new(ip, port, raw.sin6_flowinfo, raw.sin6_scope_id);
                (raw.sin6_family, SocketAddr::V6(whole))
            }
        }
    };
    let number = match family {
        Family::V4 => libc::AF_INET,
        Family::V6 => libc::AF_INET6,
    };
    // Programs leave the family out, which the system permits.
    let fits = [number, libc::AF_UNSPEC].contains(&i32::from(address.0));
    if fits { Ok(address.1) } else { Err(Code::InvalidParameter.into()) }
}

/// Writes an address in the form of this family, and its length. libudt never reads the length, and programs leave it unset.
///
/// # Safety
/// `name` and `length` are null or writable, and an address of this family fits at `name`.
pub(crate) unsafe fn write(
    address: SocketAddr,
    family: Family,
    name: *mut libc::sockaddr,
    length: *mut i32,
) -> Result<()> {
    if name.is_null() || length.is_null() {
        return Err(Code::InvalidParameter.into());
    }
    // SAFETY: the caller promises room.
    unsafe {
        match family {
            Family::V4 => name.cast::<libc::sockaddr_in>().write_unaligned(to_v4(address)?),
            Family::V6 => name.cast::<libc::sockaddr_in6>().write_unaligned(to_v6(address)),
        }
        length.write_unaligned(family.size() as i32);
    }
    Ok(())
}

fn to_v4(address: SocketAddr) -> Result<libc::sockaddr_in> {
    let IpAddr::V4(ip) = address.ip().to_canonical() else { return Err(Code::InvalidParameter.into()) };
    Ok(libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: address.port().to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(ip.octets()) },
        sin_zero: [0; 8],
    })
}

fn to_v6(address: SocketAddr) -> libc::sockaddr_in6 {
    let (ip, flow, scope) = match address {
        SocketAddr::V4(address) => (address.ip().to_ipv6_mapped(), 0, 0),
        SocketAddr::V6(address) => (*address.ip(), address.flowinfo(), address.scope_id()),
    };
    libc::sockaddr_in6 {
        sin6_family: libc::AF_INET6 as libc::sa_family_t,
        sin6_port: address.port().to_be(),
        sin6_flowinfo: flow,
        sin6_addr: libc::in6_addr { s6_addr: ip.octets() },
        sin6_scope_id: scope,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(address: SocketAddr, family: Family) -> SocketAddr {
        // SAFETY: zeroes are an address without a family.
        let mut storage: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
        let mut length = 0;
        let name = (&raw mut storage).cast();
        // SAFETY: both pointers are to live variables of the told size.
        unsafe {
            write(address, family, name, &raw mut length).unwrap();
            read(name, length, family).unwrap()
        }
    }

    #[test]
    fn an_address_comes_back_as_it_went() {
        for text in ["127.0.0.1:9000", "[fe80::1]:65535"] {
            let address: SocketAddr = text.parse().unwrap();
            assert_eq!(round_trip(address, Family::of(address)), address);
        }
    }

    #[test]
    fn a_socket_of_ipv6_names_peers_of_ipv4_by_mapped_addresses() {
        let address = round_trip("127.0.0.1:9000".parse().unwrap(), Family::V6);
        assert_eq!(address, "[::ffff:127.0.0.1]:9000".parse().unwrap());
    }

    #[test]
    fn too_few_bytes_are_refused() {
        // SAFETY: zeroes are an address without a family.
        let mut storage: libc::sockaddr_in = unsafe { std::mem::zeroed() };
        let name = (&raw mut storage).cast::<libc::sockaddr>();
        // SAFETY: the pointer is to a live variable.
        let results = unsafe { [15, -1].map(|length| read(name, length, Family::V4).is_err()) };
        assert_eq!(results, [true; 2]);
    }
}
