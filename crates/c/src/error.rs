//! The error object of a call: what failed, and why, in one line.

use std::ffi::{CString, c_char};

use crate::fault::Fault;
use crate::fork::leave;
use crate::result::FarhaulResult;

/// Why a call failed. Each call that takes a `farhaul_error **` makes a new one if it fails. Free it.
#[derive(Debug)]
pub struct FarhaulError {
    result: FarhaulResult,
    message: CString,
}

impl FarhaulError {
    pub(crate) fn of(fault: Fault) -> Self {
        Self { result: fault.result, message: text(&fault.message) }
    }
}

/// A text for C. What follows a NUL, which no message of ours has, is cut off.
pub(crate) fn text(message: &str) -> CString {
    let end = message.find('\0').unwrap_or(message.len());
    CString::new(&message[..end]).unwrap_or_default()
}

/// The code of an error. That of no error is `FARHAUL_RESULT_OK`.
#[unsafe(no_mangle)]
pub extern "C" fn farhaul_error_result(error: Option<&FarhaulError>) -> FarhaulResult {
    error.map_or(FarhaulResult::Ok, |error| error.result)
}

/// What failed, on which file or address, why, and what to do next: one line, without its end. The text lives as long as the
/// error. That of no error is empty.
#[unsafe(no_mangle)]
pub extern "C" fn farhaul_error_message(error: Option<&FarhaulError>) -> *const c_char {
    error.map_or(c"".as_ptr(), |error| error.message.as_ptr())
}

/// Frees an error. A null pointer is no error, and is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn farhaul_error_free(error: Option<Box<FarhaulError>>) {
    leave(error);
}
