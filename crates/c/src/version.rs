//! The version of the library.

use std::ffi::{CStr, c_char};

const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
    Ok(version) => version,
    Err(_) => panic!("a version has no NUL"),
};

/// The version of the library that the program runs with: `0.1.0`. The text lives for ever.
#[unsafe(no_mangle)]
pub extern "C" fn farhaul_version() -> *const c_char {
    VERSION.as_ptr()
}
