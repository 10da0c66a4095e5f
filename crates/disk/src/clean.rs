//! Removes what broken copies left.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use farhaul_session::{Component, FailCode, Failure, MAX_DEPTH};
use rustix::fs::FileType;

use super::directory::{Directory, kind};
use super::failure::failure;
use super::remains::remove_all;

/// What was removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cleaned {
    /// Incomplete files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Directories that could not be looked at, and why.
    pub failures: Vec<(PathBuf, Failure)>,
}

/// Removes the incomplete files and journals of broken copies in the directory at `path`, and below it if `recursive`. What a
/// running copy holds stays, and so does what another user left. No link below `path` is followed.
///
/// # Errors
/// There is no such directory, or it may not be read.
pub fn clean(path: &Path, recursive: bool) -> io::Result<Cleaned> {
    let mut cleaned = Cleaned::default();
    clean_directory(&Directory::open(path)?, path, recursive.then_some(0), &mut cleaned);
    Ok(cleaned)
}

/// Cleans a directory, and those in it at this `depth`.
fn clean_directory(directory: &Directory, path: &Path, depth: Option<usize>, cleaned: &mut Cleaned) {
    match remove_all(directory) {
        Ok((files, bytes)) => {
            cleaned.files += files;
            cleaned.bytes += bytes;
        }
        Err(error) => cleaned.failures.push((path.to_owned(), failure("read", error))),
    }
    let Some(depth) = depth else { return };
    let names = match directory.names() {
        Ok(names) => names,
        Err(error) => return cleaned.failures.push((path.to_owned(), failure("read", error))),
    };
    let is_directory = |name: &Component| directory.stat(name).is_ok_and(|stat| kind(&stat) == FileType::Directory);
    for name in names.iter().filter(|name| is_directory(name)) {
        let path = path.join(OsStr::from_bytes(name.as_bytes()));
        match directory.child(name) {
            // Each level holds a descriptor.
            Ok(child) if depth < MAX_DEPTH / 4 => clean_directory(&child, &path, Some(depth + 1), cleaned),
            Ok(_) => cleaned.failures.push((path, Failure::new(FailCode::NameRefused, "too deep; clean it by itself"))),
            Err(error) => cleaned.failures.push((path, failure("open", error))),
        }
    }
}
