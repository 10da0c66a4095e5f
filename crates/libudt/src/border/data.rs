//! Bytes, messages, files and figures.

use super::{Outcome, answer, bytes, bytes_mut};
use crate::controller::callback;
use crate::failure::Code;
use crate::table;
use crate::trace::Figures;
use crate::transfer::Patience;

/// `UDT::send`. The value is the number of bytes taken. With `endless`, it waits whatever the options say.
///
/// # Safety
/// `data` points to `length` bytes.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn fh_udt_send(socket: i32, data: *const u8, length: i64, endless: bool) -> Outcome {
    // SAFETY: as promised.
    answer(|| table::find(socket)?.send(unsafe { bytes(data, length) }?, patience(endless)))
}

/// `UDT::recv`. The value is the number of bytes received. With `endless`, it waits whatever the options say.
///
/// # Safety
/// `out` points to `length` bytes.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn fh_udt_recv(socket: i32, out: *mut u8, length: i64, endless: bool) -> Outcome {
    // SAFETY: as promised.
    answer(|| table::find(socket)?.recv(unsafe { bytes_mut(out, length) }?, patience(endless)))
}

/// `UDT::sendmsg`. The value is the length.
///
/// # Safety
/// `message` points to `length` bytes.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn fh_udt_sendmsg(
    socket: i32,
    message: *const u8,
    length: i64,
    ttl: i32,
    in_order: bool,
) -> Outcome {
    // SAFETY: as promised.
    answer(|| table::find(socket)?.send_message(unsafe { bytes(message, length) }?, ttl, in_order))
}

/// `UDT::recvmsg`. The value is the number of bytes written.
///
/// # Safety
/// `out` points to `length` bytes.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn fh_udt_recvmsg(socket: i32, out: *mut u8, length: i64) -> Outcome {
    // SAFETY: as promised.
    answer(|| table::find(socket)?.recv_message(unsafe { bytes_mut(out, length) }?))
}

/// Tells the peer of a file that cannot be written.
#[unsafe(no_mangle)]
pub(super) extern "C" fn fh_udt_signal_error(socket: i32, code: u32) -> Outcome {
    answer(|| table::find(socket)?.signal_error(code))
}

/// `UDT::perfmon`, and `CCC::getPerfInfo`, which a controller's callback may call for its own connection.
///
/// # Safety
/// `figures` is writable.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn fh_udt_perfmon(socket: i32, figures: *mut Figures, clear: bool) -> Outcome {
    let of_callback = if callback::is_running() { Figures::of_callback() } else { None };
    let find = || {
        let found = match of_callback {
            Some(found) => found,
            None => table::find(socket)?.figures(clear)?,
        };
        if figures.is_null() {
            return Err(Code::InvalidParameter.into());
        }
        // SAFETY: as promised.
        unsafe { figures.write_unaligned(found) };
        Ok(())
    };
    if of_callback.is_some() { super::answer_anywhere(find) } else { answer(find) }
}

const fn patience(endless: bool) -> Patience {
    if endless { Patience::Endless } else { Patience::Options }
}
