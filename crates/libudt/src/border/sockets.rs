//! Births, addresses, states and ends of sockets.

use std::net::SocketAddr;

use super::{Outcome, answer};
use crate::descriptor::take_socket;
use crate::failure::Result;
use crate::sockaddr::{self, Family};
use crate::socket::{Kind, Socket, SocketState};
use crate::table;

/// `UDT::startup`. Counted.
#[unsafe(no_mangle)]
pub(super) extern "C" fn fh_udt_startup() -> Outcome {
    answer(done(table::start_up))
}

/// `UDT::cleanup`. The last one closes all sockets and waits until they have delivered their data.
#[unsafe(no_mangle)]
pub(super) extern "C" fn fh_udt_cleanup() -> Outcome {
    answer(done(table::clean_up))
}

/// Before the process ends: tells the peers of closed connections, at most three seconds long.
#[unsafe(no_mangle)]
pub(super) extern "C" fn fh_udt_leave() -> Outcome {
    answer(done(farhaul::wait_idle))
}

/// A call that always succeeds.
fn done(call: impl FnOnce()) -> impl FnOnce() -> Result<()> {
    || {
        call();
        Ok(())
    }
}

/// `UDT::socket`. The value is the id.
#[unsafe(no_mangle)]
pub(super) extern "C" fn fh_udt_socket(family: i32, kind: i32) -> Outcome {
    answer(|| {
        let (kind, family) = (Kind::from_number(kind)?, Family::from_number(family)?);
        Ok(i64::from(table::add(|id| Socket::new(id, family, kind)).id))
    })
}

/// `UDT::bind`.
///
/// # Safety
/// `name` is null or points to `length` bytes.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn fh_udt_bind(socket: i32, name: *const libc::sockaddr, length: i32) -> Outcome {
    answer(|| {
        let socket = table::find(socket)?;
        // SAFETY: as promised.
        socket.bind(unsafe { sockaddr::read(name, length, socket.family) }?)
    })
}

/// `UDT::bind2`. The socket owns the descriptor if the call succeeds.
///
/// # Safety
/// The program gives the descriptor away.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn fh_udt_bind2(socket: i32, descriptor: i32) -> Outcome {
    // SAFETY: as promised.
    answer(|| table::find(socket)?.adopt(descriptor, || unsafe { take_socket(descriptor) }))
}

/// `UDT::listen`.
#[unsafe(no_mangle)]
pub(super) extern "C" fn fh_udt_listen(socket: i32, backlog: i32) -> Outcome {
    answer(|| table::find(socket)?.listen(backlog))
}

/// `UDT::accept`. The value is the id of the new socket. Its peer is written to `name` unless that is null.
///
/// # Safety
/// `name` and `length` are null or writable, and an address of the socket's family fits at `name`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn fh_udt_accept(socket: i32, name: *mut libc::sockaddr, length: *mut i32) -> Outcome {
    answer(|| {
        if !name.is_null() && length.is_null() {
            return Err(crate::failure::Code::InvalidParameter.into());
        }
        let accepted = table::accept(socket)?;
        if !name.is_null() {
            let peer = accepted.link()?.connection().peer_addr();
            // SAFETY: as promised. A peer with an address of another family has its connection nevertheless.
            let _ = unsafe { sockaddr::write(peer, accepted.family, name, length) };
        }
        Ok(i64::from(accepted.id))
    })
}

/// `UDT::connect`.
///
/// # Safety
/// `name` is null or points to `length` bytes.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn fh_udt_connect(socket: i32, name: *const libc::sockaddr, length: i32) -> Outcome {
    answer(|| {
        let socket = table::find(socket)?;
        // SAFETY: as promised.
        socket.connect(unsafe { sockaddr::read(name, length, socket.family) }?)
    })
}

/// `UDT::close`.
#[unsafe(no_mangle)]
pub(super) extern "C" fn fh_udt_close(socket: i32) -> Outcome {
    answer(|| table::remove(socket).map(|socket| socket.close()))
}

/// `UDT::getpeername`.
///
/// # Safety
/// As for [`fh_udt_accept`].
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn fh_udt_getpeername(
    socket: i32,
    name: *mut libc::sockaddr,
    length: *mut i32,
) -> Outcome {
    // SAFETY: as promised.
    unsafe { tell_address(socket, name, length, Socket::peer_address) }
}

/// `UDT::getsockname`.
///
/// # Safety
/// As for [`fh_udt_accept`].
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn fh_udt_getsockname(
    socket: i32,
    name: *mut libc::sockaddr,
    length: *mut i32,
) -> Outcome {
    // SAFETY: as promised.
    unsafe { tell_address(socket, name, length, Socket::local_address) }
}

/// `UDT::getsockstate`. The value is the number of the state.
#[unsafe(no_mangle)]
pub(super) extern "C" fn fh_udt_getsockstate(socket: i32) -> Outcome {
    answer(|| {
        let state = match table::find(socket) {
            Ok(socket) => socket.state(),
            Err(_) if table::was_closed(socket) => SocketState::Closed,
            Err(_) => SocketState::NonExistent,
        };
        Ok(state as i64)
    })
}

/// # Safety
/// As for [`fh_udt_accept`].
unsafe fn tell_address(
    socket: i32,
    name: *mut libc::sockaddr,
    length: *mut i32,
    address: impl Fn(&Socket) -> Result<SocketAddr>,
) -> Outcome {
    answer(|| {
        let socket = table::find(socket)?;
        // SAFETY: as promised.
        unsafe { sockaddr::write(address(&socket)?, socket.family, name, length) }
    })
}
