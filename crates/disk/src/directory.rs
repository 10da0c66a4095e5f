//! An open directory. Its entries are reached by one name at a time, and never through a symbolic link.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use farhaul_session::{Component, Mtime, own_name};
use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, RenameFlags, Stat, StatxAttributes, StatxFlags, Timestamps,
};
use rustix::io::{Errno, retry_on_intr};
use rustix::time::{ClockId, clock_gettime};

#[cfg(test)]
pub(super) mod folding;

/// New entries are accessible to their owner alone until the copy is complete.
const PRIVATE_DIR: Mode = Mode::RWXU;
const PRIVATE_FILE: Mode = Mode::RUSR.union(Mode::WUSR);

/// Set-user-id, set-group-id and sticky bits.
const SPECIAL: u32 = 0o7000;

pub(super) const OPEN_DIR: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// A directory that is held open.
///
/// Somebody may swap a component of its path for a symbolic link, before or during a copy. The handle still refers to
/// the same directory, and steps below it refuse links.
#[derive(Debug)]
pub struct Directory {
    handle: OwnedFd,
    identity: Identity,
    kept: Kept,
    #[cfg(test)]
    folding: folding::Folding,
}

/// Device and inode. No other directory has them while this one exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Identity(u64, u64);

/// Directories that nobody may remove or rename, as if something were mounted there. Clones share everything.
#[derive(Clone, Debug, Default)]
pub(super) struct Kept(Option<Arc<RwLock<BTreeSet<Identity>>>>);

impl Kept {
    /// None yet.
    pub(super) fn none_yet() -> Self {
        Self(Some(Arc::default()))
    }

    /// Keeps these alone.
    pub(super) fn set(&self, kept: BTreeSet<Identity>) {
        if let Some(all) = &self.0 {
            *all.write().unwrap_or_else(PoisonError::into_inner) = kept;
        }
    }
}

impl Identity {
    const fn of(stat: &Stat) -> Self {
        Self(stat.st_dev, stat.st_ino)
    }

    pub(super) const fn device(self) -> u64 {
        self.0
    }
}

impl Directory {
    /// Opens the directory at `path`. Links in the path are followed, since the caller named it.
    ///
    /// # Errors
    /// There is no such directory, or it is not readable.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self::opened(rustix::fs::openat(CWD, path, OPEN_DIR, Mode::empty())?)?)
    }

    /// Wraps the handle of a directory just opened.
    pub(super) fn opened(handle: OwnedFd) -> Result<Self, Errno> {
        let stat = rustix::fs::fstat(&handle)?;
        Ok(Self {
            handle,
            identity: Identity::of(&stat),
            kept: Kept::default(),
            #[cfg(test)]
            folding: folding::Folding::default(),
        })
    }

    /// Wraps the handle of a directory just opened below this one.
    pub(super) fn opened_below(&self, handle: OwnedFd) -> Result<Self, Errno> {
        let opened = Self { kept: self.kept.clone(), ..Self::opened(handle)? };
        #[cfg(test)]
        let opened = Self { folding: self.folding, ..opened };
        Ok(opened)
    }

    /// The same, where these directories stay below it.
    pub(super) fn keeping(self, kept: Kept) -> Self {
        Self { kept, ..self }
    }

    /// Whether the directory that a stat describes stays.
    pub(super) fn keeps(&self, stat: &Stat) -> bool {
        self.kept
            .0
            .as_ref()
            .is_some_and(|kept| kept.read().unwrap_or_else(PoisonError::into_inner).contains(&Identity::of(stat)))
    }

    /// The bytes of a name as the file system gets them.
    #[cfg(not(test))]
    pub(super) fn spelled<'a>(&self, name: &'a Component) -> std::borrow::Cow<'a, [u8]> {
        name.as_bytes().into()
    }

    /// The same directory, opened to be read. The handle may have been opened only to name it.
    ///
    /// # Errors
    /// It may not be read.
    pub fn reopened(&self) -> Result<Self, Errno> {
        self.opened_below(rustix::fs::openat(&self.handle, ".", OPEN_DIR, Mode::empty())?)
    }

    /// Another handle of the same directory.
    pub(super) fn duplicate(&self) -> Result<Self, Errno> {
        self.opened_below(rustix::io::fcntl_dupfd_cloexec(&self.handle, 0)?)
    }

    pub(super) const fn identity(&self) -> Identity {
        self.identity
    }

    pub(super) const fn inode(&self) -> u64 {
        self.identity.1
    }

    /// Whether both are handles of one directory.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.identity == other.identity
    }

    /// Opens the parent of `path`, and returns it with the last name. `None` if the path has none (`.`, `/`, `dir/.`).
    pub(super) fn open_parent(path: &Path) -> io::Result<Option<(Self, Component)>> {
        let Some((parent, name)) = split_last(path)? else { return Ok(None) };
        Ok(Some((Self::open(parent)?, name)))
    }

    pub(super) fn child(&self, name: &Component) -> Result<Self, Errno> {
        let flags = OPEN_DIR.union(OFlags::NOFOLLOW);
        self.opened_below(rustix::fs::openat(&self.handle, &*self.spelled(name), flags, Mode::empty())?)
    }

    /// Creates a directory that only its owner may enter, or opens the existing one. Returns whether it is new.
    ///
    /// Somebody who may write here may give the name to another directory in between, and that one would get the properties of the
    /// new one. An older directory that has entries is none that was just made.
    pub(super) fn make_child(&self, name: &Component) -> Result<(Self, bool), Errno> {
        let before = stamp_now();
        let is_new = match rustix::fs::mkdirat(&self.handle, &*self.spelled(name), PRIVATE_DIR) {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(error) => return Err(error),
        };
        let child = self.child(name)?;
        if is_new && child.made().is_some_and(|made| made < before) && !child.names()?.is_empty() {
            return Err(Errno::EXIST);
        }
        Ok((child, is_new))
    }

    /// Sets the permission bits. It keeps the set-group-id bit, which a new directory inherits, and a sticky bit.
    pub(super) fn set_mode(&self, mode: u32) -> Result<(), Errno> {
        let special = if mode & SPECIAL == 0 { rustix::fs::fstat(&self.handle)?.st_mode & SPECIAL } else { 0 };
        rustix::fs::fchmod(&self.handle, Mode::from_raw_mode(special | mode))
    }

    /// Creates a file that only its owner may access. Fails if the name exists.
    pub(super) fn make_file(&self, name: &Component) -> Result<File, Errno> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(File::from(rustix::fs::openat(&self.handle, &*self.spelled(name), flags, PRIVATE_FILE)?))
    }

    /// Creates a file without a name that only its owner may access. Not all file systems have such files.
    pub(super) fn make_unnamed_file(&self) -> Result<File, Errno> {
        let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
        Ok(File::from(rustix::fs::openat(&self.handle, c".", flags, PRIVATE_FILE)?))
    }

    /// Gives a file without a name its name here. Fails if the name exists.
    pub(super) fn name_file(&self, file: &File, name: &Component) -> Result<(), Errno> {
        // By a handle alone, only root may do so.
        let there = format!("/proc/self/fd/{}", file.as_raw_fd());
        rustix::fs::linkat(CWD, there, &self.handle, &*self.spelled(name), AtFlags::SYMLINK_FOLLOW)
    }

    /// Opens a file for reading. Neither a pipe nor a device makes it wait.
    pub(super) fn open_file(&self, name: &Component) -> Result<File, Errno> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        Ok(File::from(rustix::fs::openat(&self.handle, &*self.spelled(name), flags, Mode::empty())?))
    }

    /// The stat of the entry with this name. A link is not followed.
    pub(super) fn stat(&self, name: &Component) -> Result<Stat, Errno> {
        rustix::fs::statat(&self.handle, &*self.spelled(name), AtFlags::SYMLINK_NOFOLLOW)
    }

    /// The target of the symbolic link with this name.
    pub(super) fn link_target(&self, name: &Component) -> Result<Vec<u8>, Errno> {
        Ok(rustix::fs::readlinkat(&self.handle, &*self.spelled(name), Vec::new())?.into_bytes())
    }

    /// A handle of the entry with this name, which is neither followed nor opened to be read.
    pub(super) fn hold(&self, name: &Component) -> Result<OwnedFd, Errno> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(&self.handle, &*self.spelled(name), flags, Mode::empty())
    }

    /// Makes a symbolic link. Fails if the name exists.
    pub(super) fn make_link(&self, name: &Component, target: &[u8]) -> Result<(), Errno> {
        rustix::fs::symlinkat(target, &self.handle, &*self.spelled(name))
    }

    /// Sets the times of the entry with this name. A link is not followed.
    pub(super) fn set_times(&self, name: &Component, times: &Timestamps) -> Result<(), Errno> {
        rustix::fs::utimensat(&self.handle, &*self.spelled(name), times, AtFlags::SYMLINK_NOFOLLOW)
    }

    /// Makes `name` here a further name of the file `its_name` in `there`. Fails if the name exists.
    pub(super) fn make_hard_link(&self, name: &Component, there: &Self, its_name: &Component) -> Result<(), Errno> {
        let (from, to) = (there.spelled(its_name), self.spelled(name));
        rustix::fs::linkat(&there.handle, &*from, &self.handle, &*to, AtFlags::empty())
    }

    /// Gives the file `name` a name in `there` that no entry has, where the system has no step for that.
    pub(super) fn move_to_free_name(&self, name: &Component, there: &Self, free: &Component) -> Result<(), Errno> {
        match there.make_hard_link(free, self, name) {
            Ok(()) => return self.remove(name),
            // There are no hard links either. What is made first takes a free name as well.
            Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS) => drop(there.make_file(free)?),
            Err(error) => return Err(error),
        }
        let (from, to) = (self.spelled(name), there.spelled(free));
        rustix::fs::renameat(&self.handle, &*from, &there.handle, &*to).inspect_err(|_| {
            let _ = there.remove(free);
        })
    }

    /// Opens an existing file for reading and writing, and no link.
    pub(super) fn open_to_write(&self, name: &Component) -> Result<File, Errno> {
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        Ok(File::from(rustix::fs::openat(&self.handle, &*self.spelled(name), flags, Mode::empty())?))
    }

    /// The size of the regular file with this name; `None` for anything else.
    pub(super) fn regular_size(&self, name: &Component) -> Option<u64> {
        let stat = self.stat(name).ok().filter(|stat| kind(stat) == FileType::RegularFile)?;
        u64::try_from(stat.st_size).ok()
    }

    /// The creation time, if the file system records it.
    pub(super) fn made(&self) -> Option<Mtime> {
        let stat = rustix::fs::statx(&self.handle, "", AtFlags::EMPTY_PATH, StatxFlags::BTIME).ok()?;
        let known = stat.stx_mask & StatxFlags::BTIME.bits() != 0;
        known.then_some(Mtime { seconds: stat.stx_btime.tv_sec, nanos: stat.stx_btime.tv_nsec })
    }

    /// Renames the file `from` to `to`. Without flags, that replaces any file, link or device of that name.
    pub(super) fn rename(&self, from: &Component, to: &Component, flags: RenameFlags) -> Result<(), Errno> {
        let (from, to) = (self.spelled(from), self.spelled(to));
        match flags.is_empty() {
            true => rustix::fs::renameat(&self.handle, &*from, &self.handle, &*to),
            false => rustix::fs::renameat_with(&self.handle, &*from, &self.handle, &*to, flags),
        }
    }

    pub(super) fn remove(&self, name: &Component) -> Result<(), Errno> {
        rustix::fs::unlinkat(&self.handle, &*self.spelled(name), AtFlags::empty())
    }

    /// Removes the directory of that name, if it is empty. One that stays is busy.
    pub(super) fn remove_directory(&self, name: &Component) -> Result<(), Errno> {
        if self.kept.0.is_some() && self.keeps(&self.stat(name)?) {
            return Err(Errno::BUSY);
        }
        rustix::fs::unlinkat(&self.handle, &*self.spelled(name), AtFlags::REMOVEDIR)
    }

    /// Makes the names in the directory survive a crash.
    pub(super) fn sync(&self) -> Result<(), Errno> {
        match retry_on_intr(|| rustix::fs::fsync(&self.handle)) {
            // Some file systems cannot synchronise directories, so there is nothing more to do.
            Err(Errno::INVAL | Errno::BADF) => Ok(()),
            result => result,
        }
    }

    /// Bytes still writable on its file system without privileges. `u64::MAX` if that has no size, as /proc: then only a
    /// write tells.
    pub(super) fn free_space(&self) -> Result<u64, Errno> {
        let system = rustix::fs::fstatvfs(&self.handle)?;
        if system.f_blocks == 0 {
            return Ok(u64::MAX);
        }
        Ok(system.f_bavail.saturating_mul(system.f_frsize))
    }

    /// Whether its file system has room for bytes and none for entries.
    pub(super) fn has_no_inodes(&self) -> bool {
        rustix::fs::fstatvfs(&self.handle).is_ok_and(|system| system.f_files > 0 && system.f_favail == 0)
    }

    /// Whether the entry `name`, or the directory itself, is immutable or append-only, so that no permission helps.
    pub(super) fn is_fixed(&self, name: Option<&Component>) -> bool {
        let name = name.map(|name| self.spelled(name)).unwrap_or_default();
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::EMPTY_PATH;
        let fixed = StatxAttributes::IMMUTABLE | StatxAttributes::APPEND;
        rustix::fs::statx(&self.handle, &*name, flags, StatxFlags::TYPE)
            .is_ok_and(|stat| stat.stx_attributes.intersects(fixed))
    }

    /// The names in the directory, in ascending order of their bytes. Names that no file may have are left out.
    pub(super) fn names(&self) -> Result<Vec<Component>, Errno> {
        let mut names = Vec::new();
        self.each_name(|name, _| {
            names.extend(Component::new(name));
            Ok::<_, Errno>(())
        })?;
        names.sort_unstable();
        Ok(names)
    }

    /// Passes each name in the directory, and its kind, which may be unknown. `.` and `..` are among them.
    pub(super) fn each_name<E: From<Errno>>(
        &self,
        mut pass: impl FnMut(&[u8], FileType) -> Result<(), E>,
    ) -> Result<(), E> {
        for entry in Dir::read_from(&self.handle)? {
            let entry = entry?;
            pass(entry.file_name().to_bytes(), entry.file_type())?;
        }
        Ok(())
    }
}

impl AsFd for Directory {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

/// The parent of `path`, and its last name. `None` if the path has none (`.`, `/`, `dir/.`).
pub(super) fn split_last(path: &Path) -> io::Result<Option<(&Path, Component)>> {
    let Some(name) = own_name(path.as_os_str().as_bytes()) else { return Ok(None) };
    let name = Component::new(name).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Ok(Some((parent, name)))
}

/// The present time. No file has a later stamp.
pub(super) fn now() -> Mtime {
    time_of(ClockId::Realtime)
}

/// The earliest stamp that a file created now can get: the time of the kernel's last tick.
pub(super) fn stamp_now() -> Mtime {
    time_of(ClockId::RealtimeCoarse)
}

fn time_of(clock: ClockId) -> Mtime {
    let now = clock_gettime(clock);
    Mtime { seconds: now.tv_sec, nanos: u32::try_from(now.tv_nsec).unwrap_or(0) }
}

/// The kind of entry that a stat describes.
pub(super) fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// Whether two stats describe the same file, or the same directory.
pub(super) fn is_same(one: &Stat, other: &Stat) -> bool {
    (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
}

/// The result of an attempt to set the mode of an entry that was just made. A file system without modes refuses each.
pub(super) fn no_modes_here(set: Result<(), Errno>) -> Result<(), Errno> {
    match set {
        Err(Errno::PERM | Errno::OPNOTSUPP) => Ok(()),
        set => set,
    }
}

/// Permission bits, without set-user-id, set-group-id and sticky.
pub(super) fn permissions(stat: &Stat) -> u32 {
    stat.st_mode & 0o777
}

/// The time of the last change of the content.
pub(super) fn mtime(stat: &Stat) -> Mtime {
    // The kernel keeps nanoseconds below a second.
    Mtime { seconds: stat.st_mtime, nanos: u32::try_from(stat.st_mtime_nsec).unwrap_or(0) }
}
