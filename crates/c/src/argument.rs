//! Pointers, texts and buffers of C as values of Rust.

use std::ffi::{CStr, OsStr, c_char, c_void};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use crate::fault::Fault;

/// A handle that must be there.
pub(crate) fn need<'a, T>(handle: Option<&'a T>, argument: &str) -> Result<&'a T, Fault> {
    handle.ok_or_else(|| Fault::null(argument))
}

/// Writes a result of a call, if C wants it.
pub(crate) fn put<T>(out: Option<&mut MaybeUninit<T>>, value: T) {
    if let Some(out) = out {
        out.write(value);
    }
}

/// The bytes of a text.
///
/// # Safety
/// `text` is null or points to a text that ends with NUL and stays unchanged for `'a`.
pub(crate) unsafe fn bytes<'a>(text: *const c_char, argument: &str) -> Result<&'a [u8], Fault> {
    if text.is_null() {
        return Err(Fault::null(argument));
    }
    // SAFETY: as this function demands.
    Ok(unsafe { CStr::from_ptr(text) }.to_bytes())
}

/// A text in UTF-8.
///
/// # Safety
/// As [`bytes`].
pub(crate) unsafe fn words<'a>(text: *const c_char, argument: &str) -> Result<&'a str, Fault> {
    // SAFETY: as this function demands.
    let bytes = unsafe { bytes(text, argument) }?;
    std::str::from_utf8(bytes).map_err(|_| Fault::invalid(format!("`{argument}` is not UTF-8")))
}

/// A path of this host.
///
/// # Safety
/// As [`bytes`].
pub(crate) unsafe fn path<'a>(text: *const c_char, argument: &str) -> Result<&'a OsStr, Fault> {
    // SAFETY: as this function demands.
    Ok(OsStr::from_bytes(unsafe { bytes(text, argument) }?))
}

/// The content of a buffer. One without bytes may be null.
///
/// # Safety
/// `data` is null or points to `length` initialised bytes that stay unchanged for `'a`.
pub(crate) unsafe fn content<'a>(data: *const c_void, length: usize) -> Result<&'a [u8], Fault> {
    check(data, length)?;
    if length == 0 {
        return Ok(&[]);
    }
    // SAFETY: as this function demands, and it is not null.
    Ok(unsafe { std::slice::from_raw_parts(data.cast(), length) })
}

/// Room for bytes, whose present values do not matter.
///
/// # Safety
/// `buffer` is null or points to `length` bytes that nobody else uses for `'a`.
pub(crate) unsafe fn room<'a>(buffer: *mut c_void, length: usize) -> Result<&'a mut [u8], Fault> {
    check(buffer, length)?;
    if length == 0 {
        return Ok(&mut []);
    }
    // SAFETY: as this function demands, and it is not null. Bytes of C that were never written are not read: the library only
    // stores into this slice.
    Ok(unsafe { std::slice::from_raw_parts_mut(buffer.cast(), length) })
}

fn check(data: *const c_void, length: usize) -> Result<(), Fault> {
    if data.is_null() && length > 0 {
        return Err(Fault::null("buffer"));
    }
    // No object of C is larger.
    if isize::try_from(length).is_err() {
        return Err(Fault::invalid("the length is larger than any object"));
    }
    Ok(())
}

/// Writes a value as text and a NUL into a buffer of C.
///
/// # Errors
/// It does not fit.
///
/// # Safety
/// As [`room`].
pub(crate) unsafe fn put_text(value: &impl ToString, buffer: *mut c_char, size: usize) -> Result<(), Fault> {
    let text = value.to_string();
    // SAFETY: as this function demands.
    let room = unsafe { room(buffer.cast(), size) }?;
    let needed = text.len() + 1;
    let place = room.get_mut(..needed).ok_or_else(|| Fault::invalid(format!("the buffer needs {needed} bytes")))?;
    place[..text.len()].copy_from_slice(text.as_bytes());
    place[text.len()] = 0;
    Ok(())
}

/// A time in milliseconds.
pub(crate) const fn millis(time: u64) -> Duration {
    Duration::from_millis(time)
}

/// A time-out in milliseconds; zero for none.
pub(crate) const fn timeout(time: u64) -> Option<Duration> {
    if time == 0 { None } else { Some(Duration::from_millis(time)) }
}

/// The bytes of `count` texts.
///
/// # Safety
/// `texts` is null or points to `count` pointers, each as for [`bytes`], all unchanged for `'a`.
pub(crate) unsafe fn list<'a>(
    texts: *const *const c_char,
    count: usize,
    argument: &str,
) -> Result<Vec<&'a [u8]>, Fault> {
    if count == 0 {
        return Ok(Vec::new());
    }
    if texts.is_null() {
        return Err(Fault::null(argument));
    }
    // SAFETY: as this function demands, and it is not null.
    let texts = unsafe { std::slice::from_raw_parts(texts, count) };
    // SAFETY: as this function demands of each.
    texts.iter().map(|&text| unsafe { bytes(text, argument) }).collect()
}
