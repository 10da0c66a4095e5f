//! The bytes of a stream.

use std::ffi::c_void;
use std::fs::File;
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;

use crate::argument::{self, put};
use crate::border::{border, tell};
use crate::connection::{FarhaulConnection, stream};
use crate::error::FarhaulError;
use crate::fault::Fault;
use crate::result::FarhaulResult;

/// Waits for bytes and moves as many as have arrived, at most `length`. `count` becomes their number. Zero is the end of the
/// stream, unless `length` is zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn farhaul_read(
    connection: Option<&FarhaulConnection>,
    buffer: *mut c_void,
    length: usize,
    count: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    tell(count, error, || {
        // SAFETY: the caller gives the buffer as documented.
        let room = unsafe { argument::room(buffer, length) }?;
        Ok(stream(connection)?.recv(room)?)
    })
}

/// The same without waiting: `FARHAUL_RESULT_WOULD_BLOCK` if there are no bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn farhaul_try_read(
    connection: Option<&FarhaulConnection>,
    buffer: *mut c_void,
    length: usize,
    count: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    border(error, || {
        // SAFETY: the caller gives the buffer as documented.
        let room = unsafe { argument::room(buffer, length) }?;
        Ok(moved(count, stream(connection)?.try_read(room)?))
    })
}

/// Waits for room and takes as many bytes as fit, at least one. `count` becomes their number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn farhaul_write(
    connection: Option<&FarhaulConnection>,
    data: *const c_void,
    length: usize,
    count: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    tell(count, error, || {
        // SAFETY: the caller gives the buffer as documented.
        let data = unsafe { argument::content(data, length) }?;
        Ok(stream(connection)?.send(data)?)
    })
}

/// The same without waiting: `FARHAUL_RESULT_WOULD_BLOCK` if there is no room.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn farhaul_try_write(
    connection: Option<&FarhaulConnection>,
    data: *const c_void,
    length: usize,
    count: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    border(error, || {
        // SAFETY: the caller gives the buffer as documented.
        let data = unsafe { argument::content(data, length) }?;
        Ok(moved(count, stream(connection)?.try_write(data)?))
    })
}

/// Takes all bytes, and waits for room as often as it must. After a failure, some of them may have been taken.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn farhaul_write_all(
    connection: Option<&FarhaulConnection>,
    data: *const c_void,
    length: usize,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    border(error, || {
        // SAFETY: the caller gives the buffer as documented.
        let data = unsafe { argument::content(data, length) }?;
        Ok(stream(connection)?.send_all(data)?)
    })
}

/// Sends `length` bytes of an open file from `offset` on. The position of the file does not change.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn farhaul_send_file(
    connection: Option<&FarhaulConnection>,
    file: i32,
    offset: u64,
    length: u64,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    border(error, || {
        // SAFETY: the caller keeps the descriptor open.
        let file = unsafe { duplicate(file) }?;
        Ok(stream(connection)?.send_file(&file, offset, length)?)
    })
}

/// Receives `length` bytes into an open file, from its position on. If they cannot be written, the peer is told.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn farhaul_recv_file(
    connection: Option<&FarhaulConnection>,
    file: i32,
    length: u64,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    border(error, || {
        // SAFETY: the caller keeps the descriptor open.
        let file = unsafe { duplicate(file) }?;
        Ok(stream(connection)?.recv_file(&file, length)?)
    })
}

/// What an attempt has moved, if it did.
fn moved(count: Option<&mut MaybeUninit<usize>>, moved: Option<usize>) -> FarhaulResult {
    put(count, moved.unwrap_or(0));
    if moved.is_some() { FarhaulResult::Ok } else { FarhaulResult::WouldBlock }
}

/// The file behind a descriptor of the caller, as a descriptor of its own. Both have one position.
///
/// # Safety
/// The descriptor stays open while this function runs.
pub(crate) unsafe fn duplicate(descriptor: i32) -> Result<File, Fault> {
    if descriptor < 0 {
        return Err(Fault::invalid("the descriptor of the file is negative"));
    }
    // SAFETY: it is not negative, and stays open as this function demands.
    let borrowed = unsafe { BorrowedFd::borrow_raw(descriptor) };
    let owned = borrowed.try_clone_to_owned();
    owned.map(File::from).map_err(|error| Fault::invalid(format!("the descriptor of the file: {error}")))
}
