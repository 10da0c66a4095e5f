//! An incomplete file under its temporary name.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use farhaul_session::{Component, FailCode, Failure, Mtime};
use rustix::fs::FallocateFlags;
use rustix::io::Errno;

use super::claims::Claims;
use super::directory::{Directory, is_same, set_metadata};
use super::failure::{cannot_make, failure, io_failure};
use super::target::Target;

/// Suffix of incomplete files, by which people and clean-up jobs recognise them.
const PARTIAL_SUFFIX: &str = ".fhpart";
/// Hexadecimal digits of the 64 random bits in a temporary name.
const RANDOM_DIGITS: usize = 16;
/// Longest part of a file's own name within its temporary name: 255 bytes less two dots, the digits and the suffix.
const SHOWN_NAME: usize = 255 - 2 - RANDOM_DIGITS - PARTIAL_SUFFIX.len();
/// Space is reserved for files from this size on. That avoids fragmentation and reveals a full disk at once.
const RESERVE_FROM: u64 = 1 << 20;

/// An incomplete file.
#[derive(Debug)]
pub(super) struct Partial {
    pub(super) directory: Arc<Directory>,
    file: File,
    /// Its name until the commit.
    temporary: Component,
    /// Its final name.
    name: Component,
    /// What the same copy has made in the directory.
    claims: Arc<Claims>,
}

impl Partial {
    /// Creates the file for `name`, and reserves space for `size` bytes if the file system can.
    pub(super) fn begin(
        directory: Arc<Directory>,
        name: Component,
        size: u64,
        claims: Arc<Claims>,
    ) -> Result<Self, Failure> {
        let temporary = temporary_name(&name)?;
        let made = directory.make_file(&temporary);
        let file = made.map_err(|error| cannot_make("file", error))?;
        let partial = Self { directory, file, temporary, name, claims };
        if let Err(error) = partial.claim().and_then(|()| partial.reserve(size)) {
            partial.remove();
            return Err(error);
        }
        Ok(partial)
    }

    fn claim(&self) -> Result<(), Failure> {
        let stat = rustix::fs::fstat(&self.file).map_err(|error| failure("read", error))?;
        self.claims.claim_file(&self.directory, &self.temporary, &self.name, stat.st_ino);
        Ok(())
    }

    fn reserve(&self, size: u64) -> Result<(), Failure> {
        if size < RESERVE_FROM {
            return Ok(());
        }
        match rustix::fs::fallocate(&self.file, FallocateFlags::KEEP_SIZE, 0, size) {
            Err(error @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG | Errno::IO)) => {
                Err(failure("reserve space", error))
            }
            // File systems that cannot reserve space report that in several ways. If space is short, the writes fail.
            _ => Ok(()),
        }
    }

    /// Writes bytes. A failure names the file that keeps the bytes written before.
    pub(super) fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), Failure> {
        self.write_quietly(offset, bytes).map_err(|mut failure| {
            failure.message += &format!("; the bytes written before are in {}", self.temporary);
            failure
        })
    }

    /// Writes bytes of a file that does not outlive a failure.
    pub(super) fn write_quietly(&self, offset: u64, bytes: &[u8]) -> Result<(), Failure> {
        self.file.write_all_at(bytes, offset).map_err(|error| io_failure("write", &error))
    }

    /// Makes the content survive a crash and gives the file its final name. The directory is not yet synchronised. On
    /// failure the file is removed, because a repeated fsync may not report the error again.
    pub(super) fn commit(self, mode: u32, mtime: Mtime) -> Result<(), Failure> {
        let done = set_metadata(&self.file, mode, mtime)
            .map_err(|error| failure("set mode and time", error))
            .and_then(|()| rustix::fs::fsync(&self.file).map_err(|error| failure("write to the disk", error)))
            .and_then(|()| Target { directory: &self.directory, name: &self.name }.take(&self.temporary, &self.claims));
        done.inspect_err(|_| self.remove())
    }

    /// Removes the file, unless something else has its temporary name.
    pub(super) fn remove(&self) {
        let (named, file) = (self.directory.stat(&self.temporary), rustix::fs::fstat(&self.file));
        if named.is_ok_and(|named| file.is_ok_and(|file| is_same(&named, &file))) {
            // If removal fails, the temporary name shows that the file is incomplete.
            let _ = self.directory.remove(&self.temporary);
        }
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
        let failure = Partial { directory, file, temporary, name, claims: Arc::default() }.write(0, b"x").unwrap_err();
        assert_eq!(failure.code, FailCode::NoSpace);
        assert!(failure.message.contains(" .tape\\n1.") && failure.message.ends_with(".fhpart"), "{failure}");
    }
}
