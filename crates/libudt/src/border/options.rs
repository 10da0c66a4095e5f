//! getsockopt and setsockopt.

use std::ffi::c_void;

use super::{Outcome, answer};
use crate::failure::{Code, Result};
use crate::options::{Form, Name, Value};
use crate::table;

/// `UDT::setsockopt`, for all but UDT_CC.
///
/// # Safety
/// `value` is null or points to a value of the option's type. libudt does not look at the length, and programs give wrong ones.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn fh_udt_setsockopt(socket: i32, option: i32, value: *const c_void) -> Outcome {
    answer(|| {
        let socket = table::find(socket)?;
        let (name, form) = Name::from_number(option)?;
        // SAFETY: as promised.
        socket.set_option(name, unsafe { read(form, value) }?)
    })
}

/// `UDT::getsockopt`. UDT_CC gives a pointer to the controller of the connection.
///
/// # Safety
/// `value` is null or points to room for a value of the option's type. `length` is null or writable.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn fh_udt_getsockopt(
    socket: i32,
    option: i32,
    value: *mut c_void,
    length: *mut i32,
) -> Outcome {
    answer(|| {
        let socket = table::find(socket)?;
        let (name, _) = Name::from_number(option)?;
        if value.is_null() || length.is_null() {
            return Err(Code::InvalidParameter.into());
        }
        if name == Name::Controller {
            let object = socket.controller()?.map_or(0, |object| object.0);
            // SAFETY: as promised.
            unsafe {
                value.cast::<usize>().write_unaligned(object);
                length.write_unaligned(size_of::<usize>() as i32);
            }
            return Ok(());
        }
        // SAFETY: as promised.
        unsafe { write(socket.option(name)?, value, length) }
    })
}

/// # Safety
/// `value` is null or points to a value of this form.
unsafe fn read(form: Form, value: *const c_void) -> Result<Value> {
    if value.is_null() {
        return Err(Code::InvalidParameter.into());
    }
    // SAFETY: as promised.
    Ok(unsafe {
        match form {
            Form::Bool => Value::Bool(value.cast::<u8>().read() != 0),
            Form::Int => Value::Int(value.cast::<i32>().read_unaligned()),
            Form::Long => Value::Long(value.cast::<i64>().read_unaligned()),
            Form::Linger => {
                let linger = value.cast::<libc::linger>().read_unaligned();
                Value::Linger { on: linger.l_onoff != 0, seconds: linger.l_linger }
            }
            Form::Pointer => return Err(Code::InvalidOperation.into()),
        }
    })
}

/// # Safety
/// `value` points to room for it, and `length` is writable.
unsafe fn write(value: Value, out: *mut c_void, length: *mut i32) -> Result<()> {
    // SAFETY: as promised. The length is that of the form, as libudt tells it.
    unsafe {
        let size = match value {
            Value::Bool(on) => {
                out.cast::<u8>().write(u8::from(on));
                1
            }
            Value::Int(number) => {
                out.cast::<i32>().write_unaligned(number);
                size_of::<i32>()
            }
            Value::Long(number) => {
                out.cast::<i64>().write_unaligned(number);
                size_of::<i64>()
            }
            Value::Linger { on, seconds } => {
                let size = size_of::<libc::linger>();
                if usize::try_from(length.read_unaligned()).is_ok_and(|room| room < size) {
                    return Err(Code::InvalidParameter.into());
                }
                let linger = libc::linger { l_onoff: i32::from(on), l_linger: seconds };
                out.cast::<libc::linger>().write_unaligned(linger);
                size
            }
        };
        length.write_unaligned(size as i32);
    }
    Ok(())
}
