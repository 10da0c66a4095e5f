//! Files that say what to do or whom to trust: settings, keys, lists of keys.
//!
//! Such a file is opened only if nobody but this user and root can have written or replaced it, which is the rule of OpenSSH for
//! its own files. The path to it is walked by handles, one name at a time, and through links by their own targets. So the file
//! that was checked is the file that is read.
//!
//! | checked | rule |
//! | --- | --- |
//! | each folder of the path, those of links included | belongs to this user or root, and nobody else may write to it; others may in a sticky one, such as /tmp, where they cannot touch the entries of this user |
//! | each link in the path | belongs to this user or root |
//! | the open file | belongs to this user or root, and nobody else may write it |

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

use farhaul::Code;
use rustix::fs::{CWD, FileType, Mode, OFlags, PROC_SUPER_MAGIC, Stat, fstat, fstatfs, openat, readlinkat};
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::error::Error;

/// Bits with which others than the owner may write.
const WRITABLE: u32 = 0o022;
/// The bit of folders whose entries belong to their owners alone.
const STICKY: u32 = 0o1000;
/// Most links in a path: as many as the kernel follows, path_resolution(7).
const MOST_LINKS: usize = 40;
/// The map of a user namespace in which all users have their own numbers.
const WHOLE_MAP: [&str; 3] = ["0", "0", "4294967295"];
/// The number of users without one in this user namespace, unless the system says otherwise.
const USUAL_OVERFLOW: u32 = 65_534;

/// Opens a handle that only names its entry.
const NAME_ONLY: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);
/// Opens a file for reading. Neither a pipe nor a device makes it wait.
const TO_READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// Why a file was not opened.
#[derive(Debug)]
pub enum Distrust {
    /// The system does not open it.
    System(io::Error),
    /// Others may have written or replaced it. The sentence names the next step.
    Others(String),
}

impl Distrust {
    /// The error of a program that cannot read the file at `path`.
    pub fn error(&self, path: &Path) -> Error {
        match self {
            Self::System(error) => Error::new(Code::LocalIo, format!("cannot read {}: {error}", path.display())),
            Self::Others(why) => Error::new(Code::NotPermitted, why.clone()),
        }
    }
}

impl From<Errno> for Distrust {
    fn from(errno: Errno) -> Self {
        Self::System(errno.into())
    }
}

/// Opens the file at `path`, which `says` what to do, as in "says whom to trust". `None` if there is no such file.
///
/// # Errors
/// It cannot be read, or others may have written it.
pub fn open(path: &Path, says: &str) -> Result<Option<File>, Distrust> {
    let opened = std::path::absolute(path).map_err(Distrust::System).and_then(|at| Walk::begin(&at, says)?.reach());
    match opened {
        Err(Distrust::System(error)) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(None)
        }
        opened => opened.map(Some),
    }
}

/// The walk along a path, from the root to a file.
struct Walk<'a> {
    /// The folder that was reached.
    here: OwnedFd,
    /// Its path in messages.
    path: PathBuf,
    /// The names still to come.
    rest: VecDeque<OsString>,
    links: usize,
    /// The first reason not to trust what is at its end. It counts only if something is there.
    distrust: Option<Distrust>,
    wanted: &'a Path,
    says: &'a str,
}

impl<'a> Walk<'a> {
    fn begin(wanted: &'a Path, says: &'a str) -> Result<Self, Distrust> {
        let here = openat(CWD, "/", NAME_ONLY, Mode::empty())?;
        let mut walk = Self { here, path: "/".into(), rest: VecDeque::new(), links: 0, distrust: None, wanted, says };
        walk.check_folder()?;
        walk.go_before(wanted);
        Ok(walk)
    }

    fn reach(mut self) -> Result<File, Distrust> {
        loop {
            let name = self.rest.pop_front().ok_or(Errno::ISDIR)?;
            let entry = openat(&self.here, &name, NAME_ONLY | OFlags::NOFOLLOW, Mode::empty())?;
            let stat = fstat(&entry)?;
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Symlink if self.is_in_proc() => {
                    if self.rest.is_empty() {
                        return self.open(&name, OFlags::empty());
                    }
                    // The system knows where such a link leads. Its text need not be a path.
                    let behind = openat(&self.here, &name, NAME_ONLY, Mode::empty())?;
                    self.enter(behind, &name)?;
                }
                FileType::Symlink => self.follow(&entry, &stat, &name)?,
                _ if self.rest.is_empty() => return self.open(&name, OFlags::NOFOLLOW),
                FileType::Directory => self.enter(entry, &name)?,
                _ => return Err(Errno::NOTDIR.into()),
            }
        }
    }

    /// Puts the names of a path before those still to come, and returns to the root if it is absolute.
    fn go_before(&mut self, path: &Path) {
        for part in path.components().rev() {
            match part {
                Component::Normal(name) => self.rest.push_front(name.to_owned()),
                Component::ParentDir => self.rest.push_front("..".into()),
                Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
            }
        }
    }

    fn follow(&mut self, link: &OwnedFd, stat: &Stat, name: &OsStr) -> Result<(), Distrust> {
        self.links += 1;
        if self.links > MOST_LINKS {
            return Err(Errno::LOOP.into());
        }
        if !is_trusted(stat.st_uid) {
            self.distrust(self.foreign(&self.path.join(name), stat));
        }
        let target = PathBuf::from(OsString::from_vec(readlinkat(link, "", Vec::new())?.into_bytes()));
        if target.is_absolute() {
            self.here = openat(CWD, "/", NAME_ONLY, Mode::empty())?;
            self.path = "/".into();
        }
        self.go_before(&target);
        Ok(())
    }

    fn enter(&mut self, folder: OwnedFd, name: &OsStr) -> Result<(), Distrust> {
        self.here = folder;
        if name.as_bytes() == b".." {
            self.path.pop();
        } else {
            self.path.push(name);
        }
        self.check_folder()
    }

    fn check_folder(&mut self) -> Result<(), Distrust> {
        let stat = fstat(&self.here)?;
        if !is_trusted(stat.st_uid) {
            self.distrust(self.foreign(&self.path, &stat));
        } else if stat.st_mode & WRITABLE != 0 && stat.st_mode & STICKY == 0 {
            let (folder, wanted) = (self.path.display(), self.wanted.display());
            self.distrust(Distrust::Others(format!(
                "others may write to the folder {folder}, and so replace {wanted}, which {}; run: chmod go-w {folder}",
                self.says
            )));
        }
        Ok(())
    }

    fn distrust(&mut self, why: Distrust) {
        self.distrust.get_or_insert(why);
    }

    fn open(&mut self, name: &OsStr, flags: OFlags) -> Result<File, Distrust> {
        if let Some(why) = self.distrust.take() {
            return Err(why);
        }
        let file = openat(&self.here, name, TO_READ | flags, Mode::empty())?;
        let stat = fstat(&file)?;
        let path = self.path.join(name);
        if !is_trusted(stat.st_uid) {
            return Err(self.foreign(&path, &stat));
        }
        let kind = FileType::from_raw_mode(stat.st_mode);
        // Only root makes devices. Everybody may write to /dev/null.
        if stat.st_mode & WRITABLE != 0 && !matches!(kind, FileType::CharacterDevice | FileType::BlockDevice) {
            let path = path.display();
            return Err(Distrust::Others(format!(
                "others may write {path}, which {}; run: chmod go-w {path}",
                self.says
            )));
        }
        Ok(File::from(file))
    }

    /// Whether the links of this folder are made by the kernel, as in /proc/self/fd.
    fn is_in_proc(&self) -> bool {
        fstatfs(&self.here).is_ok_and(|system| system.f_type == PROC_SUPER_MAGIC)
    }

    fn foreign(&self, path: &Path, stat: &Stat) -> Distrust {
        let (path, wanted, owner) = (path.display(), self.wanted.display(), stat.st_uid);
        Distrust::Others(format!(
            "{path} belongs to the user with the number {owner}, who so decides about {wanted}, which {}; it must belong to \
             this user or root",
            self.says
        ))
    }
}

/// Whether this user is the owner, or root, who may do everything anyway.
fn is_trusted(owner: u32) -> bool {
    owner == 0 || owner == geteuid().as_raw() || Some(owner) == unmapped()
}

/// The number of root's files in a user namespace that has no number for root, as that of `emulate` for ordinary users. All users
/// without a number share it there.
fn unmapped() -> Option<u32> {
    static UNMAPPED: OnceLock<Option<u32>> = OnceLock::new();
    *UNMAPPED.get_or_init(|| {
        let map = std::fs::read_to_string("/proc/self/uid_map").ok()?;
        if map.split_ascii_whitespace().eq(WHOLE_MAP) {
            return None;
        }
        let overflow = std::fs::read_to_string("/proc/sys/kernel/overflowuid").ok();
        Some(overflow.and_then(|text| text.trim().parse().ok()).unwrap_or(USUAL_OVERFLOW))
    })
}

#[cfg(test)]
mod tests;
