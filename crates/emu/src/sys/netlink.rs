//! A netlink request to change an interface: rtnetlink(7), RFC 3549, section 2.

use std::fs::File;
use std::io::{self, Read, Write};

use rustix::net::AddressFamily;

/// Every part begins at a multiple of this (`NLMSG_ALIGNTO`, `RTA_ALIGNTO`).
const ALIGNMENT: usize = 4;
/// Length of a message header: length, type, flags, sequence number, port.
const HEADER: usize = 16;

/// An attribute: its length without padding, its type, its value.
pub(super) fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = 4 + value.len();
    let mut bytes = Vec::with_capacity(length.next_multiple_of(ALIGNMENT));
    bytes.extend((length as u16).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(length.next_multiple_of(ALIGNMENT), 0);
    bytes
}

/// Changes the interface of the calling thread's network that `attributes` name.
pub(super) fn set_link(attributes: &[u8]) -> io::Result<()> {
    let mut socket = File::from(super::control(AddressFamily::NETLINK)?);
    let mut message = Vec::new();
    // All of `ifinfomsg` is zero: any family, the interface by its name, no flags to change.
    let body = size_of::<libc::ifinfomsg>();
    message.extend(((HEADER + body + attributes.len()) as u32).to_ne_bytes());
    message.extend(libc::RTM_SETLINK.to_ne_bytes());
    message.extend(((libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16).to_ne_bytes());
    message.resize(HEADER + body, 0);
    message.extend(attributes);
    socket.write_all(&message)?;
    let mut answer = [0; 1024];
    let length = socket.read(&mut answer)?;
    result_of(&answer[..length])
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
