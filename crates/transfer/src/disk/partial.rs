//! An incomplete file under its temporary name.

use std::cell::Cell;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use farhaul_session::{Component, FailCode, Failure, Mtime};
use rustix::fs::{Gid, Stat};
use rustix::process::{Resource, getrlimit};

use super::claims::Claims;
use super::directory::{Directory, is_same, permissions, set_metadata};
use super::failure::{cannot_make, failure, io_failure};
use super::reservation::Reservation;
use super::target::Target;

/// Suffix of incomplete files, by which people and clean-up jobs recognise them.
const PARTIAL_SUFFIX: &str = ".fhpart";
/// Hexadecimal digits of the 64 random bits in a temporary name.
const RANDOM_DIGITS: usize = 16;
/// Longest part of a file's own name within its temporary name: 255 bytes less two dots, the digits and the suffix.
const SHOWN_NAME: usize = 255 - 2 - RANDOM_DIGITS - PARTIAL_SUFFIX.len();
/// Permission bits of the group, and of all others.
const OF_GROUP: u32 = 0o070;
const OF_OTHERS: u32 = 0o007;

/// An incomplete file. If it is dropped before its commit or removal, the bytes that arrived stay under the temporary name,
/// without the space that was reserved for others. Without any bytes, it is removed.
#[derive(Debug)]
pub(super) struct Partial {
    pub(super) directory: Arc<Directory>,
    file: File,
    /// Its name until the commit.
    temporary: Component,
    /// Its final name.
    name: Component,
    space: Reservation,
    /// The end of the bytes that were written.
    end: Cell<u64>,
    /// It has its final name, or none.
    is_over: bool,
    /// What the same copy has made in the directory.
    claims: Arc<Claims>,
}

impl Partial {
    /// Creates the file for `name`, and reserves the first part of the space for `size` bytes if the file system can.
    pub(super) fn begin(
        directory: Arc<Directory>,
        name: Component,
        size: u64,
        claims: Arc<Claims>,
    ) -> Result<Self, Failure> {
        check_limit(size)?;
        let temporary = temporary_name(&name)?;
        let made = directory.make_file(&temporary);
        let file = made.map_err(|error| cannot_make("file", error))?;
        let inode = rustix::fs::fstat(&file).map(|stat| stat.st_ino).map_err(|error| failure("read", error));
        match inode.and_then(|inode| Ok((inode, Reservation::begin(&file, size)?))) {
            Ok((inode, space)) => {
                claims.claim_file(&directory, &temporary, &name, inode);
                Ok(Self { directory, file, temporary, name, space, end: Cell::new(0), is_over: false, claims })
            }
            Err(error) => {
                remove(&directory, &temporary, &file);
                Err(error)
            }
        }
    }

    /// Writes bytes. A failure names the file that keeps the bytes written before.
    pub(super) fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), Failure> {
        self.write_quietly(offset, bytes).map_err(|mut failure| {
            if self.end.get() > 0 {
                failure.message += &format!("; the bytes written before are in {}", self.temporary);
            }
            failure
        })
    }

    /// Writes bytes of a file that does not outlive a failure.
    pub(super) fn write_quietly(&self, offset: u64, bytes: &[u8]) -> Result<(), Failure> {
        let end = offset.saturating_add(bytes.len() as u64);
        check_limit(end)?;
        self.space.extend(&self.file, bytes.len() as u64)?;
        self.file.write_all_at(bytes, offset).map_err(|error| io_failure("write", &error))?;
        self.end.set(self.end.get().max(end));
        Ok(())
    }

    /// Makes the content survive a crash and gives the file its final name. The directory is not yet synchronised. On
    /// failure the file is removed, because a repeated fsync may not report the error again.
    ///
    /// A file that has the name already gives its permissions to the new one. Otherwise the new one gets `mode`.
    pub(super) fn commit(mut self, mode: u32, mtime: Mtime) -> Result<(), Failure> {
        let target = Target { directory: &self.directory, name: &self.name };
        let mode = target.replaced().map_or(mode, |old| self.mode_after(&old));
        let done = set_metadata(&self.file, Some(mode), mtime)
            .map_err(|error| failure("set mode and time", error))
            .and_then(|()| rustix::fs::fsync(&self.file).map_err(|error| failure("write to the disk", error)))
            .and_then(|()| target.take(&self.temporary, &self.claims));
        match done {
            Ok(()) => self.is_over = true,
            Err(_) => self.remove(),
        }
        done
    }

    /// The mode of the file once it has replaced `old`: the same permissions for the same people. The group comes with them
    /// if the system permits that. Otherwise the file's own group gets no more than everybody.
    fn mode_after(&self, old: &Stat) -> u32 {
        let mode = permissions(old);
        let is_of_group = rustix::fs::fstat(&self.file).is_ok_and(|file| file.st_gid == old.st_gid)
            || rustix::fs::fchown(&self.file, None, Some(Gid::from_raw(old.st_gid))).is_ok();
        let of_everybody = (mode & OF_OTHERS) << 3;
        if is_of_group { mode } else { mode & !OF_GROUP | (mode & OF_GROUP & of_everybody) }
    }

    /// Removes the file, unless something else has its temporary name.
    pub(super) fn remove(&mut self) {
        self.is_over = true;
        remove(&self.directory, &self.temporary, &self.file);
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        match self.end.get() {
            _ if self.is_over => {}
            0 => self.remove(),
            // The system gives reserved space back even if the size stays. If it refuses, the file is larger than its bytes.
            end => drop(self.file.set_len(end)),
        }
    }
}

/// Refuses a file that ends beyond the largest size that this process may write.
fn check_limit(end: u64) -> Result<(), Failure> {
    match getrlimit(Resource::Fsize).current {
        Some(limit) if end > limit => {
            let message = format!("this process may write no file beyond {limit} bytes (ulimit -f)");
            Err(Failure::new(FailCode::TooLarge, message))
        }
        _ => Ok(()),
    }
}

/// Removes the file with this temporary name, unless something else has the name.
fn remove(directory: &Directory, temporary: &Component, file: &File) {
    let (named, file) = (directory.stat(temporary), rustix::fs::fstat(file));
    if named.is_ok_and(|named| file.is_ok_and(|file| is_same(&named, &file))) {
        // If removal fails, the temporary name shows that the file is incomplete.
        let _ = directory.remove(temporary);
    }
}

/// `.NAME.RANDOM.fhpart`: hidden, beside the target, and impossible to guess.
fn temporary_name(name: &Component) -> Result<Component, Failure> {
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(|error| Failure::new(FailCode::Io, error.to_string()))?;
    let shown = &name.as_bytes()[..name.as_bytes().len().min(SHOWN_NAME)];
    let end = format!(".{:016x}{PARTIAL_SUFFIX}", u64::from_ne_bytes(random));
    Component::new(&[b".", shown, end.as_bytes()].concat()).map_err(|_| FailCode::NameRefused.into())
}

/// Whether [`temporary_name`] gives such names. A file with such a name is incomplete and no part of a tree.
pub(super) fn is_temporary(name: &Component) -> bool {
    let Some(start) = name.as_bytes().strip_suffix(PARTIAL_SUFFIX.as_bytes()) else { return false };
    let Some((shown, random)) = start.len().checked_sub(RANDOM_DIGITS).map(|at| start.split_at(at)) else {
        return false;
    };
    let is_digit = |byte: &u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte);
    matches!(shown, [b'.', _, .., b'.']) && random.iter().all(is_digit)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn temporary_names_are_told_from_others() {
        for name in [&b"a"[..], b".a", b"a.fhpart", &[b'x'; 255], b"\xff"] {
            let temporary = temporary_name(&Component::new(name).unwrap()).unwrap();
            assert!(is_temporary(&temporary), "{temporary}");
        }
        for name in [
            ".fhpart",
            "a.fhpart",
            ".a.0123456789abcde.fhpart",
            "a.0123456789abcdef.fhpart",
            "..0123456789abcdef.fhpart",
            ".a.0123456789abcdeg.fhpart",
            ".a.0123456789abcdef.fhpart2",
        ] {
            assert!(!is_temporary(&Component::new(name.as_bytes()).unwrap()), "{name}");
        }
    }

    #[test]
    fn a_full_disk_is_reported_with_the_name_of_the_incomplete_file() {
        let directory = Arc::new(Directory::open(Path::new("/dev")).unwrap());
        let file = File::options().write(true).open("/dev/full").unwrap();
        let name = Component::new(b"tape\n1").unwrap();
        let temporary = temporary_name(&name).unwrap();
        let space = Reservation::begin(&file, 0).unwrap();
        let (end, claims) = (Cell::new(1), Arc::default());
        let partial = Partial { directory, file, temporary, name, space, end, is_over: false, claims };
        let failure = partial.write(1, b"x").unwrap_err();
        assert_eq!(failure.code, FailCode::NoSpace);
        assert!(failure.message.contains(" .tape\\n1.") && failure.message.ends_with(".fhpart"), "{failure}");
    }
}
