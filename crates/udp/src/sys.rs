//! Socket options that no safe library offers. All `unsafe` code of this crate is in this file.
#![expect(unsafe_code, reason = "getsockopt and setsockopt with options that rustix and socket2 do not know")]

use std::io;
use std::mem::size_of_val;
use std::os::fd::{AsFd, AsRawFd};

/// Number of values that `SO_MEMINFO` gives (Linux, `linux/sock_diag.h`: `SK_MEMINFO_VARS`).
const MEMINFO_VALUES: usize = 9;
/// Which of them counts the datagrams that were dropped because the receive buffer was full (`SK_MEMINFO_DROPS`).
const MEMINFO_DROPS: usize = 8;

/// Datagrams that the kernel dropped at this socket since it exists, modulo 2^32.
pub(crate) fn socket_drops(socket: impl AsFd) -> io::Result<u32> {
    let mut values = [0_u32; MEMINFO_VALUES];
    let mut length = size_of_val(&values) as libc::socklen_t;
    // SAFETY: `values` is `length` writable bytes, for which any bit pattern is valid, and both outlive the call.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            values.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if result == 0 { Ok(values[MEMINFO_DROPS]) } else { Err(io::Error::last_os_error()) }
}

/// Whether the kernel may put received datagrams of one flow together (GRO).
pub(crate) fn set_receive_offload(socket: impl AsFd, on: bool) -> io::Result<()> {
    set_flag(socket, libc::SOL_UDP, libc::UDP_GRO, on)
}

/// Whether received datagrams carry the wall-clock time at which the kernel got them.
pub(crate) fn set_timestamps(socket: impl AsFd, on: bool) -> io::Result<()> {
    set_flag(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, on)
}

fn set_flag(socket: impl AsFd, level: libc::c_int, option: libc::c_int, on: bool) -> io::Result<()> {
    let value = libc::c_int::from(on);
    // SAFETY: the option takes a C int, and `value` is one that outlives the call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            option,
            (&raw const value).cast(),
            size_of_val(&value) as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
