//! The files of another host, one by one.

use std::ffi::{CString, c_char, c_void};
use std::io::Cursor;
use std::mem::MaybeUninit;

use farhaul_session::{FileInfo, NodeKind};
use farhaul_transfer::{Environment, PutOptions, RemoteFiles, RemoteHost};

use crate::access::FarhaulAccess;
use crate::argument::{self, need};
use crate::border::{border, give, tell};
use crate::error::FarhaulError;
use crate::fault::Fault;
use crate::fork::leave;
use crate::result::FarhaulResult;
use crate::stream::duplicate;

/// Replace a file of that name.
pub const FARHAUL_PUT_REPLACE: u32 = 1;
/// Make missing directories on the way.
pub const FARHAUL_PUT_PARENTS: u32 = 2;

/// The files of one host, over one connection. Any number of threads may use it, and their requests overtake each other.
pub struct FarhaulFiles {
    inner: RemoteFiles,
}

/// The kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[non_exhaustive]
pub enum FarhaulNodeKind {
    /// A regular file.
    File = 0,
    /// A directory.
    Directory = 1,
    /// A symbolic link.
    Link = 2,
    /// A device, pipe or socket.
    Other = 3,
}

/// The properties of an entry.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct FarhaulFileInfo {
    /// Its kind.
    pub kind: FarhaulNodeKind,
    /// Permission bits, with set-user-id, set-group-id and sticky.
    pub mode: u32,
    /// Bytes of a file, and zero for everything else.
    pub size: u64,
    /// When its content last changed: seconds since 1970.
    pub mtime_seconds: i64,
    /// The nanoseconds of that.
    pub mtime_nanoseconds: u32,
}

impl FarhaulFileInfo {
    fn of(info: &FileInfo) -> Self {
        Self {
            kind: match info.kind {
                NodeKind::File => FarhaulNodeKind::File,
                NodeKind::Directory => FarhaulNodeKind::Directory,
                NodeKind::Link => FarhaulNodeKind::Link,
                NodeKind::Other => FarhaulNodeKind::Other,
            },
            mode: info.mode,
            size: info.size,
            mtime_seconds: info.mtime.seconds,
            mtime_nanoseconds: info.mtime.nanos,
        }
    }
}

/// Gets the entries of a directory in ascending order of their names, on the thread that lists them. The name lives as long as the
/// callback runs. It ends the list by returning false, and may make other requests.
pub type FarhaulEntryCallback =
    Option<unsafe extern "C" fn(context: *mut c_void, name: *const c_char, info: *const FarhaulFileInfo) -> bool>;

/// Connects to the file service of a host: `udt://host:port`, or `[user@]host:` over SSH. `access` may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn farhaul_files_connect(
    host: *const c_char,
    access: Option<&FarhaulAccess>,
    out: Option<&mut MaybeUninit<*mut FarhaulFiles>>,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    give(out, error, || {
        // SAFETY: the caller gives texts as documented.
        let host: RemoteHost = unsafe { argument::words(host, "host") }?.parse()?;
        let FarhaulAccess { settings, ssh } = access.cloned().unwrap_or_default();
        Ok(FarhaulFiles { inner: RemoteFiles::connect(host, settings, ssh, &Environment::default())? })
    })
}

/// The file service of this handle.
fn service(files: Option<&FarhaulFiles>) -> Result<&RemoteFiles, Fault> {
    Ok(&need(files, "files")?.inner)
}

/// Tells the properties of an entry. A symbolic link is not followed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn farhaul_files_stat(
    files: Option<&FarhaulFiles>,
    path: *const c_char,
    info: Option<&mut MaybeUninit<FarhaulFileInfo>>,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    tell(info, error, || {
        // SAFETY: the caller gives texts as documented.
        let path = unsafe { argument::bytes(path, "path") }?;
        Ok(FarhaulFileInfo::of(&service(files)?.stat(path)?))
    })
}

/// Lists a directory: calls `callback` for each entry.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn farhaul_files_list(
    files: Option<&FarhaulFiles>,
    path: *const c_char,
    callback: FarhaulEntryCallback,
    context: *mut c_void,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    border(error, || {
        // SAFETY: the caller gives texts as documented.
        let path = unsafe { argument::bytes(path, "path") }?;
        let callback = callback.ok_or_else(|| Fault::null("callback"))?;
        for entry in service(files)?.list(path) {
            let entry = entry?;
            let name = CString::new(entry.name.as_bytes()).unwrap_or_default();
            let info = FarhaulFileInfo::of(&entry.info);
            // SAFETY: the caller gave the callback for this context, and both arguments live until it returns.
            if !unsafe { callback(context, name.as_ptr(), &raw const info) } {
                break;
            }
        }
        Ok(())
    })
}

/// Reads `length` bytes of a file from `offset` on, or fewer at its end. `count` becomes their number. Their digest was compared.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn farhaul_files_read(
    files: Option<&FarhaulFiles>,
    path: *const c_char,
    offset: u64,
    buffer: *mut c_void,
    length: usize,
    count: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    tell(count, error, || {
        // SAFETY: the caller gives texts and the buffer as documented.
        let (path, room) = unsafe { (argument::bytes(path, "path")?, argument::room(buffer, length)?) };
        let range = service(files)?.read_range(path, offset, length as u64)?;
        // A server cannot give more than was asked for: the library refuses that.
        let taken = range.bytes.len().min(room.len());
        room[..taken].copy_from_slice(&range.bytes[..taken]);
        Ok(taken)
    })
}

/// Writes a file with these bytes. It has its name once it is whole, verified and safe on the disk there. `flags` are
/// `FARHAUL_PUT_…` together.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn farhaul_files_put(
    files: Option<&FarhaulFiles>,
    path: *const c_char,
    data: *const c_void,
    length: usize,
    flags: u32,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    border(error, || {
        // SAFETY: the caller gives texts and the bytes as documented.
        let (path, data) = unsafe { (argument::bytes(path, "path")?, argument::content(data, length)?) };
        let options = put_options(flags)?.size(length as u64);
        service(files)?.put(path, Cursor::new(data), options)?;
        Ok(())
    })
}

/// The same with what an open file has, from its position to its end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn farhaul_files_put_file(
    files: Option<&FarhaulFiles>,
    path: *const c_char,
    file: i32,
    flags: u32,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    border(error, || {
        // SAFETY: the caller gives texts as documented, and keeps the descriptor open.
        let (path, file) = unsafe { (argument::bytes(path, "path")?, duplicate(file)?) };
        service(files)?.put(path, file, put_options(flags)?)?;
        Ok(())
    })
}

fn put_options(flags: u32) -> Result<PutOptions, Fault> {
    if flags & !(FARHAUL_PUT_REPLACE | FARHAUL_PUT_PARENTS) != 0 {
        return Err(Fault::invalid("`flags` has more than FARHAUL_PUT_…"));
    }
    let (replace, parents) = (flags & FARHAUL_PUT_REPLACE != 0, flags & FARHAUL_PUT_PARENTS != 0);
    Ok(PutOptions::default().replace(replace).parents(parents))
}

/// Makes a directory. With `parents`, missing ones on the way as well, and one that exists is no failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn farhaul_files_make_directory(
    files: Option<&FarhaulFiles>,
    path: *const c_char,
    parents: bool,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    border(error, || {
        // SAFETY: the caller gives texts as documented.
        let path = unsafe { argument::bytes(path, "path") }?;
        service(files)?.create_dir(path, parents)?;
        Ok(())
    })
}

/// Removes a file, a link, or an empty directory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn farhaul_files_remove(
    files: Option<&FarhaulFiles>,
    path: *const c_char,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    border(error, || {
        // SAFETY: the caller gives texts as documented.
        let path = unsafe { argument::bytes(path, "path") }?;
        Ok(service(files)?.remove(path)?)
    })
}

/// Removes a directory with everything in it, or a file. If there are more than `most` entries, the rest stays. `count` becomes the
/// number of entries removed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn farhaul_files_remove_tree(
    files: Option<&FarhaulFiles>,
    path: *const c_char,
    most: u64,
    count: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    tell(count, error, || {
        // SAFETY: the caller gives texts as documented.
        let path = unsafe { argument::bytes(path, "path") }?;
        Ok(service(files)?.remove_tree(path, most)?)
    })
}

/// Gives an entry another name. With `replace`, it replaces a file, or an empty directory by a directory. Missing directories are
/// made.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn farhaul_files_rename(
    files: Option<&FarhaulFiles>,
    from: *const c_char,
    to: *const c_char,
    replace: bool,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    border(error, || {
        // SAFETY: the caller gives texts as documented.
        let (from, to) = unsafe { (argument::bytes(from, "from")?, argument::bytes(to, "to")?) };
        Ok(service(files)?.rename_as(from, to, replace)?)
    })
}

/// Copies a file at the server, whose bytes do not come here. Missing directories are made.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn farhaul_files_copy(
    files: Option<&FarhaulFiles>,
    from: *const c_char,
    to: *const c_char,
    replace: bool,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    border(error, || {
        // SAFETY: the caller gives texts as documented.
        let (from, to) = unsafe { (argument::bytes(from, "from")?, argument::bytes(to, "to")?) };
        service(files)?.copy(from, to, replace)?;
        Ok(())
    })
}

/// Ends the connection once every request has its answer. A later request makes a new one.
#[unsafe(no_mangle)]
pub extern "C" fn farhaul_files_close(
    files: Option<&FarhaulFiles>,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    border(error, || Ok(service(files)?.close()?))
}

/// Frees a file service.
#[unsafe(no_mangle)]
pub extern "C" fn farhaul_files_free(files: Option<Box<FarhaulFiles>>) {
    leave(files);
}
