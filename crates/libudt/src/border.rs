//! The functions that the C++ part calls, declared for it in `cpp/border.h`.
//!
//! Each answers with an [`Outcome`]. None of them unwinds. While a controller's callback runs on the calling thread, which holds
//! the lock of a port, those that may take such a lock are refused.
#![expect(unsafe_code, reason = "pointers of C programs, and exported names")]

mod controllers;
mod data;
mod options;
mod sockets;
mod waiting;

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::controller::callback;
use crate::failure::{Code, Failure, Result};

/// The code of failures without a known cause.
const UNKNOWN: i32 = -1;

/// The result of a call: its value, or a code of libudt other than zero with the system's error number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Outcome {
    /// Zero or more.
    value: i64,
    code: i32,
    errno: i32,
}

/// What a call gives as the value of its outcome.
trait Value {
    fn value(self) -> i64;
}

impl Value for i64 {
    fn value(self) -> i64 {
        self
    }
}

impl Value for usize {
    fn value(self) -> i64 {
        i64::try_from(self).unwrap_or(i64::MAX)
    }
}

/// A call without a value of its own.
impl Value for () {
    fn value(self) -> i64 {
        0
    }
}

/// Makes a call that may take the lock of a port.
fn answer<V: Value>(call: impl FnOnce() -> Result<V>) -> Outcome {
    answer_anywhere(|| if callback::is_running() { Err(Code::InvalidOperation.into()) } else { call() })
}

/// Makes a call that takes no such lock.
fn answer_anywhere<V: Value>(call: impl FnOnce() -> Result<V>) -> Outcome {
    // The state behind the border is behind locks, which a panic poisons or leaves consistent.
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(value)) => Outcome { value: value.value(), code: 0, errno: 0 },
        Ok(Err(Failure { code, errno })) => Outcome { value: 0, code: code as i32, errno },
        Err(_) => Outcome { value: 0, code: UNKNOWN, errno: 0 },
    }
}

/// The bytes of a C buffer.
///
/// # Safety
/// `pointer` is null or points to `length` readable bytes for the time of the result.
unsafe fn bytes<'a>(pointer: *const u8, length: i64) -> Result<&'a [u8]> {
    match usize::try_from(length) {
        Ok(length) if length > 0 && !pointer.is_null() => {
            // SAFETY: the caller promises so many bytes.
            Ok(unsafe { std::slice::from_raw_parts(pointer, length) })
        }
        Ok(length) if length > 0 => Err(Code::InvalidParameter.into()),
        _ => Ok(&[]),
    }
}

/// The bytes of a C buffer for a result. They count as initialized: the callee only writes.
///
/// # Safety
/// `pointer` is null or points to `length` writable bytes that nobody else uses for the time of the result.
unsafe fn bytes_mut<'a>(pointer: *mut u8, length: i64) -> Result<&'a mut [u8]> {
    match usize::try_from(length) {
        Ok(length) if length > 0 && !pointer.is_null() => {
            // SAFETY: the caller promises so many bytes.
            Ok(unsafe { std::slice::from_raw_parts_mut(pointer, length) })
        }
        Ok(length) if length > 0 => Err(Code::InvalidParameter.into()),
        _ => Ok(&mut []),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_code() {
        let outcome = answer::<()>(|| panic!("a defect"));
        assert_eq!(outcome, Outcome { value: 0, code: UNKNOWN, errno: 0 });
    }
}
