//! Descriptors of the program by their numbers.
#![expect(unsafe_code, reason = "descriptors come from C as numbers")]

use std::net::UdpSocket;
use std::os::fd::{BorrowedFd, FromRawFd, RawFd};

use rustix::net::SocketType;
use rustix::net::sockopt::socket_type;

use crate::failure::{Code, Result};

/// A descriptor of the program for one system call. `None` if the number can be none.
pub(crate) fn borrow<'a>(number: RawFd) -> Option<BorrowedFd<'a>> {
    // SAFETY: the number is not -1. If the program has closed it, the system call says so and touches nothing of ours.
    (number >= 0).then(|| unsafe { BorrowedFd::borrow_raw(number) })
}

/// Takes a UDP socket of the program over. Any other descriptor stays the program's.
///
/// # Safety
/// Nobody else closes the descriptor.
pub(crate) unsafe fn take_socket(number: RawFd) -> Result<UdpSocket> {
    match borrow(number).map(socket_type) {
        // SAFETY: the caller gives it away.
        Some(Ok(SocketType::DGRAM)) => Ok(unsafe { UdpSocket::from_raw_fd(number) }),
        _ => Err(Code::InvalidParameter.into()),
    }
}
