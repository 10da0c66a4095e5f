//! The demo's temporary directory.

use std::fs::{self, DirBuilder, File};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use blake3::{Hash, Hasher};
use farhaul_units::{ByteSize, Rng};
use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::process::geteuid;

use crate::exit::{Code, Fault};
use crate::interrupt::Interrupt;

/// Bytes per write.
const BLOCK: usize = 1 << 20;
/// Space left for other programs, in bytes.
const RESERVE: u64 = 64 << 20;

/// Prefix of the directories' names. A random number follows.
const NAME: &str = "farhaul-demo-";

/// A private directory. Dropping it removes the directory.
pub(super) struct Scratch {
    path: PathBuf,
    /// The open directory, locked while this demo runs.
    _lock: File,
}

impl Scratch {
    /// Creates the directory. Checks for space for a file of `size` and its copy, if `size` is known.
    pub(super) fn make(size: Option<ByteSize>) -> Result<Self, Fault> {
        let parent = std::env::temp_dir();
        let cannot = |error: io::Error| {
            Fault::new(
                Code::LocalIo,
                format!("cannot use {}: {error}; set TMPDIR to another directory", parent.display()),
            )
        };
        remove_stale(&parent);
        let free = rustix::fs::statvfs(&parent).map_err(|error| cannot(error.into()))?;
        let free = free.f_bavail.saturating_mul(free.f_frsize);
        let needed = size.map_or(0, |ByteSize(size)| size.saturating_mul(2)) + RESERVE;
        if free < needed {
            let (needed, free) = (ByteSize(needed), ByteSize(free));
            let message =
                format!("{} has {free} free, and the demo needs {needed}: use --size, or set TMPDIR", parent.display());
            return Err(Fault::new(Code::DiskFull, message));
        }
        let scratch = Self::locked(&parent).map_err(cannot)?;
        DirBuilder::new().create(scratch.inbox()).map_err(cannot)?;
        Ok(scratch)
    }

    /// A directory with a unique name. Its lock marks it as in use.
    fn locked(parent: &Path) -> io::Result<Self> {
        loop {
            let path = parent.join(format!("{NAME}{:016x}", RandomState::new().hash_one(())));
            DirBuilder::new().mode(0o700).create(&path)?;
            let lock = match directory(&path) {
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                opened => opened?,
            };
            let scratch = Self { path, _lock: lock };
            // On a file system without locks, others cannot lock it either, so it is safe.
            let _ = flock(&scratch._lock, FlockOperation::LockExclusive);
            // Another demo may have removed it as stale before the lock.
            if scratch.path.is_dir() {
                return Ok(scratch);
            }
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The folder of the settings and keys of both sides.
    pub(super) fn settings(&self) -> PathBuf {
        self.path.join("settings")
    }

    /// The receiving side's directory.
    pub(super) fn inbox(&self) -> PathBuf {
        self.path.join("received")
    }

    /// Creates a file of random bytes. Returns its path and digest.
    pub(super) fn make_file(&self, ByteSize(size): ByteSize, interrupt: &Interrupt) -> Result<(PathBuf, Hash), Fault> {
        let path = self.path.join("demo.bin");
        let cannot = |error: io::Error| Fault::new(Code::LocalIo, format!("cannot write {}: {error}", path.display()));
        let mut file = BufWriter::with_capacity(BLOCK, File::create_new(&path).map_err(cannot)?);
        let (mut rng, mut hasher) = (Rng::new(size), Hasher::new());
        let mut block = vec![0; BLOCK];
        let mut left = size;
        while left > 0 {
            if let Some(fault) = interrupt.fault() {
                return Err(fault);
            }
            block.chunks_exact_mut(8).for_each(|word| word.copy_from_slice(&rng.next_u64().to_le_bytes()));
            let len = usize::try_from(left).unwrap_or(BLOCK).min(BLOCK);
            file.write_all(&block[..len]).map_err(cannot)?;
            hasher.update(&block[..len]);
            left -= len as u64;
        }
        file.flush().map_err(cannot)?;
        Ok((path, hasher.finalize()))
    }

    /// The digest of a file on the disk.
    pub(super) fn hash(&self, path: &Path) -> Result<Hash, Fault> {
        let cannot = |error: io::Error| super::unreadable(path, &error);
        let mut hasher = Hasher::new();
        hasher.update_reader(File::open(path).map_err(cannot)?).map_err(cannot)?;
        Ok(hasher.finalize())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Removes directories of killed demos: those of this user without a lock. Ignores failures.
fn remove_stale(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        if !entry.file_name().as_encoded_bytes().starts_with(NAME.as_bytes()) {
            continue;
        }
        let Ok(lock) = directory(&entry.path()) else { continue };
        let is_own = lock.metadata().is_ok_and(|it| it.uid() == geteuid().as_raw());
        if is_own && flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Opens a directory for its lock. Refuses links.
fn directory(path: &Path) -> io::Result<File> {
    Ok(open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unlocked_directories_of_demos_are_removed() {
        let parent = std::env::temp_dir().join(format!("farhaul-scratch-{:016x}", RandomState::new().hash_one(())));
        fs::create_dir(&parent).unwrap();
        let used = Scratch::locked(&parent).unwrap();
        let stale = parent.join("farhaul-demo-1");
        fs::create_dir_all(stale.join("received")).unwrap();
        fs::write(stale.join("received/demo.bin"), "x").unwrap();
        let others = [parent.join("another"), parent.join("farhaul-demo-file")];
        fs::create_dir(&others[0]).unwrap();
        fs::write(&others[1], "x").unwrap();
        let link = parent.join("farhaul-demo-link");
        std::os::unix::fs::symlink(&others[0], &link).unwrap();
        remove_stale(&parent);
        assert!(!stale.exists());
        assert!(used.path().is_dir() && others.iter().all(|other| other.exists()) && link.is_symlink());
        fs::remove_dir_all(&parent).unwrap();
    }
}
