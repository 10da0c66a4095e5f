//! CCC factories, and what their controllers call.

use std::ffi::c_void;

use farhaul::cc::CustomMessage;

use super::{Outcome, answer, answer_anywhere, bytes};
use crate::controller::{Calls, Factory, callback, swap_words};
use crate::failure::Code;
use crate::table;

/// Whether `UDT::setsockopt` of UDT_CC looks at its pointer, which may be anything for a socket that does not exist.
#[unsafe(no_mangle)]
pub(super) extern "C" fn fh_udt_takes_controller(socket: i32) -> Outcome {
    answer(|| table::find(socket)?.takes_factory())
}

/// `UDT::setsockopt` of UDT_CC. The library owns the factory from now on, whatever the outcome.
///
/// # Safety
/// The functions fit the factory, which nobody else destroys.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn fh_udt_set_controller(
    socket: i32,
    factory: *mut c_void,
    calls: *const Calls,
) -> Outcome {
    answer(|| {
        // SAFETY: as promised.
        let factory = unsafe { Factory::take(factory, *calls) }.ok_or(Code::InvalidParameter)?;
        table::find(socket)?.set_factory(factory)
    })
}

/// `CCC::sendCustomMsg`: sends a control packet with these words in the order of the host. A callback sends it to the peer
/// of its own connection, other code to that of `socket`.
///
/// # Safety
/// `body` points to `length` bytes.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn fh_udt_send_custom(socket: i32, kind: u16, body: *const u8, length: i64) -> Outcome {
    answer_anywhere(|| {
        // SAFETY: as promised.
        let mut body = unsafe { bytes(body, length) }?.to_vec();
        swap_words(&mut body);
        if callback::is_running() {
            // Too many are dropped, as the network drops them.
            callback::send(CustomMessage { kind, body });
        } else {
            table::find(socket)?.link()?.connection().send_custom(kind, &body)?;
        }
        Ok(())
    })
}
