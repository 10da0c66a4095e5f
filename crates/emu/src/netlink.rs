//! Netlink requests that change an interface of the calling thread's network: rtnetlink(7), RFC 3549, section 2.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::IpAddr;

use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

/// Every part begins at a multiple of this (`NLMSG_ALIGNTO`, `RTA_ALIGNTO`).
const ALIGNMENT: usize = 4;
/// Length of a message header: length, type, flags, sequence number, port.
const HEADER: usize = 16;

/// Sets the MTU of an interface in bytes and the length of its transmit queue in packets. The older ioctl for the queue
/// needs rights over the whole machine.
pub(crate) fn set_sizes(name: &str, mtu: u32, queue: u32) -> io::Result<()> {
    let mtu = attribute(libc::IFLA_MTU, &mtu.to_ne_bytes());
    set_link(name, [0; 2], &[mtu, attribute(libc::IFLA_TXQLEN, &queue.to_ne_bytes())].concat())
}

/// Switches an interface on or off.
pub(crate) fn switch(name: &str, on: bool) -> io::Result<()> {
    let up = libc::IFF_UP as u32;
    set_link(name, [if on { up } else { 0 }, up], &[])
}

/// Gives an interface an address, and a route to the rest of its subnet.
pub(crate) fn add_address(name: &str, address: IpAddr, prefix: u8) -> io::Result<()> {
    let (family, bytes) = match address {
        IpAddr::V4(address) => (libc::AF_INET, address.octets().to_vec()),
        IpAddr::V6(address) => (libc::AF_INET6, address.octets().to_vec()),
    };
    // `ifaddrmsg`: neither flags nor a scope.
    let mut message = vec![family as u8, prefix, 0, 0];
    message.extend(name_to_index(socket(AddressFamily::INET)?, name)?.to_ne_bytes());
    message.extend(attribute(libc::IFA_LOCAL, &bytes));
    message.extend(attribute(libc::IFA_ADDRESS, &bytes));
    request(libc::RTM_NEWADDR, libc::NLM_F_CREATE | libc::NLM_F_EXCL, &message)
}

/// Sets flags of an interface, of which the second number says which change, and its attributes.
fn set_link(name: &str, flags: [u32; 2], attributes: &[u8]) -> io::Result<()> {
    // `ifinfomsg`: any family and type, and the interface by its name.
    let mut message = vec![0; 8];
    flags.iter().for_each(|flags| message.extend(flags.to_ne_bytes()));
    message.extend(attribute(libc::IFLA_IFNAME, CString::new(name)?.as_bytes_with_nul()));
    message.extend(attributes);
    request(libc::RTM_SETLINK, 0, &message)
}

/// An attribute: its length without padding, its type, its value.
fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = 4 + value.len();
    let mut bytes = Vec::with_capacity(length.next_multiple_of(ALIGNMENT));
    bytes.extend((length as u16).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(length.next_multiple_of(ALIGNMENT), 0);
    bytes
}

/// Makes a request.
fn request(kind: u16, flags: libc::c_int, body: &[u8]) -> io::Result<()> {
    // The default protocol of netlink is the one about links.
    let mut socket = File::from(socket(AddressFamily::NETLINK)?);
    let mut message = Vec::new();
    message.extend(((HEADER + body.len()) as u32).to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend(((libc::NLM_F_REQUEST | libc::NLM_F_ACK | flags) as u16).to_ne_bytes());
    message.resize(HEADER, 0);
    message.extend(body);
    socket.write_all(&message)?;
    let mut answer = [0; 1024];
    let length = socket.read(&mut answer)?;
    result_of(&answer[..length])
}

fn socket(family: AddressFamily) -> io::Result<std::os::fd::OwnedFd> {
    Ok(socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?)
}

/// The meaning of an answer: an error message whose first field is zero, or a negative error number.
fn result_of(answer: &[u8]) -> io::Result<()> {
    let field = |at: usize| answer.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
    let kind = answer.get(4..6).and_then(|bytes| bytes.try_into().ok()).map(u16::from_ne_bytes);
    match (kind.map(i32::from), field(HEADER).map(i32::from_ne_bytes)) {
        (Some(libc::NLMSG_ERROR), Some(0)) => Ok(()),
        (Some(libc::NLMSG_ERROR), Some(error)) => Err(io::Error::from_raw_os_error(error.saturating_neg())),
        _ => Err(io::Error::from(io::ErrorKind::InvalidData)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_padded_but_state_their_length_without_padding() {
        let bytes = attribute(libc::IFLA_IFNAME, b"tun0\0");
        assert_eq!(bytes.len(), 12);
        assert_eq!(u16::from_ne_bytes([bytes[0], bytes[1]]), 9);
        assert_eq!(bytes[4..], b"tun0\0\0\0\0"[..]);
    }

    #[test]
    fn answers_are_acknowledgements_or_errors() {
        let answer = |kind: i32, error: i32| {
            let mut bytes = vec![0; HEADER];
            bytes[4..6].copy_from_slice(&(kind as u16).to_ne_bytes());
            bytes.extend(error.to_ne_bytes());
            result_of(&bytes)
        };
        assert!(answer(libc::NLMSG_ERROR, 0).is_ok());
        assert_eq!(answer(libc::NLMSG_ERROR, -libc::EPERM).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        assert!(answer(libc::NLMSG_DONE, 0).is_err() && result_of(&[]).is_err());
    }
}
