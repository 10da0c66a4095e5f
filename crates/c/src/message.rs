//! Messages with boundaries.

use std::ffi::c_void;
use std::mem::MaybeUninit;

use farhaul::{Received, SendOptions};

use crate::argument::{self, put, timeout};
use crate::border::{border, tell};
use crate::connection::{FarhaulConnection, messages};
use crate::error::FarhaulError;
use crate::result::FarhaulResult;

/// A received message.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct FarhaulReceived {
    /// Bytes written to the buffer.
    pub length: usize,
    /// The buffer was shorter than the message. The rest of the message is lost.
    pub truncated: bool,
    /// There is no message: the peer has closed the connection, and none is known to be missing.
    pub ended: bool,
}

impl FarhaulReceived {
    fn of(received: Option<Received>) -> Self {
        match received {
            Some(Received { len, truncated }) => Self { length: len, truncated, ended: false },
            None => Self { length: 0, truncated: false, ended: true },
        }
    }
}

/// Sends a message whole, and waits for room.
///
/// A message that was not delivered within `time_to_live` milliseconds is dropped; zero: never. With `in_order`, it is delivered
/// after all earlier ones.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn farhaul_send_message(
    connection: Option<&FarhaulConnection>,
    data: *const c_void,
    length: usize,
    time_to_live: u64,
    in_order: bool,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    border(error, || {
        // SAFETY: the caller gives the buffer as documented.
        let message = unsafe { argument::content(data, length) }?;
        Ok(messages(connection)?.send_with(message, options(time_to_live, in_order))?)
    })
}

/// The same without waiting: `FARHAUL_RESULT_WOULD_BLOCK` if there is no room.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn farhaul_try_send_message(
    connection: Option<&FarhaulConnection>,
    data: *const c_void,
    length: usize,
    time_to_live: u64,
    in_order: bool,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    border(error, || {
        // SAFETY: the caller gives the buffer as documented.
        let message = unsafe { argument::content(data, length) }?;
        let is_taken = messages(connection)?.try_send(message, options(time_to_live, in_order))?;
        Ok(if is_taken { FarhaulResult::Ok } else { FarhaulResult::WouldBlock })
    })
}

/// Waits for a message and moves it into the buffer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn farhaul_recv_message(
    connection: Option<&FarhaulConnection>,
    buffer: *mut c_void,
    length: usize,
    received: Option<&mut MaybeUninit<FarhaulReceived>>,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    tell(received, error, || {
        // SAFETY: the caller gives the buffer as documented.
        let room = unsafe { argument::room(buffer, length) }?;
        Ok(FarhaulReceived::of(messages(connection)?.recv(room)?))
    })
}

/// The same without waiting: `FARHAUL_RESULT_WOULD_BLOCK` if no message is complete.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn farhaul_try_recv_message(
    connection: Option<&FarhaulConnection>,
    buffer: *mut c_void,
    length: usize,
    received: Option<&mut MaybeUninit<FarhaulReceived>>,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    border(error, || {
        // SAFETY: the caller gives the buffer as documented.
        let room = unsafe { argument::room(buffer, length) }?;
        let Some(message) = messages(connection)?.try_recv(room)? else {
            return Ok(FarhaulResult::WouldBlock);
        };
        put(received, FarhaulReceived::of(message));
        Ok(FarhaulResult::Ok)
    })
}

fn options(time_to_live: u64, in_order: bool) -> SendOptions {
    let mut options = SendOptions::default();
    (options.time_to_live, options.in_order) = (timeout(time_to_live), in_order);
    options
}
