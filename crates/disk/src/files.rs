//! Files on the real disk for a server of the file service.
//!
//! Each entry is reached by a directory handle and a single name. A [`Guard`] decides what the client may do, and counts what it moves.
//!
//! | part | owns |
//! | --- | --- |
//! | `reach` | what a path of a client means: below a root, or as the user of this host would write it |
//! | `listing` | pages of directories of any size |
//! | `open_file` | a file that is read: its version, and whether it changes meanwhile |
//! | `new_file` | a file under its temporary name, until it gets its own |
//! | `rename` | another name for an entry |
//! | `removal`, `duplicate` | work in steps: removing a tree, copying a file |

mod change;
mod duplicate;
mod listing;
mod new_file;
mod open_file;
mod reach;
mod removal;
mod rename;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use farhaul_session::{
    Component, Digest, FailCode, Failure, FileInfo, FileVersion, Files, Finished, ListPage, MakeDirectory, Move, Mtime,
    NodeKind, Progressing, Put, RelPath, Remove, ServicePath,
};
use rustix::fs::{FileType, Stat};
use rustix::io::Errno;

pub use self::change::FileChange;
use self::duplicate::Duplicate;
use self::listing::Listing;
pub use self::new_file::NewFile;
pub use self::open_file::OpenFile;
use self::open_file::state;
pub use self::reach::{Guard, Reach, Right, Unguarded};
use self::removal::Removal;
use super::directory::{Directory, is_same, kind, mtime};
use super::failure::failure;
use super::owners::OwnerNames;
use super::target::words;
use super::temporary::refuse_reserved;

/// Files that count once, however many ranges of them are read: as many as a client reads at a time. And files that were written here
/// and are read right away.
const REMEMBERED: usize = 64;
/// Permission bits of an entry.
const MODE: u32 = 0o7777;

/// The files of a server, as far as its guard permits.
#[derive(Debug)]
pub struct DiskFiles<'a, G> {
    reach: Reach<'a>,
    guard: G,
    listing: Option<Listing>,
    owners: OwnerNames,
    /// Devices and inodes of files that were read lately.
    read: VecDeque<(u64, u64)>,
    /// Files that were whole before they got their names here, until somebody changes them. Nobody need wait for the end of a write.
    whole: VecDeque<Stat>,
}

/// Work in steps: a removal, or a copy on this host.
#[derive(Debug)]
pub struct Work<C>(Steps<C>);

#[derive(Debug)]
enum Steps<C> {
    Removal(Removal, ServicePath),
    Duplicate(Box<Duplicate<C>>),
}

impl<'a, G: Guard> DiskFiles<'a, G> {
    /// Serves what these paths reach, as far as this guard permits.
    pub fn new(reach: Reach<'a>, guard: G) -> Self {
        Self {
            reach,
            guard,
            listing: None,
            owners: OwnerNames::default(),
            read: VecDeque::new(),
            whole: VecDeque::new(),
        }
    }

    /// The directory of an entry, and its name there.
    fn parent(&self, place: &ServicePath, right: Right) -> Result<(Directory, Component), Failure> {
        self.reach.parent(place, (&self.guard, right))?.ok_or_else(|| {
            Failure::new(
                FailCode::NameRefused,
                "the root, the directory of a key, . and .. have no name that could change; name the entry itself",
            )
        })
    }

    /// The same for an entry that gets this place. Missing directories are made, if wanted.
    fn new_place(&mut self, place: &ServicePath, parents: bool) -> Result<(Directory, Component), Failure> {
        let found = match self.parent(place, Right::Write) {
            Err(missing) if parents && missing.code == FailCode::NotFound => {
                self.reach.make_parent(place, &mut self.guard)?
            }
            found => found?,
        };
        refuse_reserved(&found.1)?;
        Ok(found)
    }
}

impl<G: Guard> Files for DiskFiles<'_, G> {
    type Reading = OpenFile;
    type Writing = NewFile<G::Claim>;
    type Work = Work<G::Claim>;

    fn stat(&mut self, place: &ServicePath) -> Result<FileInfo, Failure> {
        match self.reach.parent(place, (&self.guard, Right::Read))? {
            Some((directory, name)) => {
                info_of(&directory, &name, &mut self.owners).map_err(|error| failed("read its properties", error))
            }
            None => {
                let directory = self.reach.directory(place, &RelPath::root(), (&self.guard, Right::Read))?;
                let stat = rustix::fs::fstat(&directory).map_err(|error| failed("read its properties", error))?;
                Ok(info(&stat, None, &mut self.owners))
            }
        }
    }

    fn list(&mut self, place: &ServicePath, below: &RelPath, cursor: &[u8], most: usize) -> Result<ListPage, Failure> {
        let directory = self.reach.directory(place, below, (&self.guard, Right::Read))?;
        Listing::page(&mut self.listing, &directory, (cursor, most), &mut self.owners)
            .map_err(|error| failed("read the directory", error))
    }

    fn open(&mut self, place: &ServicePath) -> Result<OpenFile, Failure> {
        let file = self.reach.open(place, &self.guard)?;
        let before = rustix::fs::fstat(&file).map_err(|error| failed("read", error))?;
        match kind(&before) {
            FileType::RegularFile => {}
            FileType::Directory => return Err(FailCode::IsDirectory.into()),
            kind => return Err(Failure::new(FailCode::SpecialFile, words(kind))),
        }
        let identity = (before.st_dev, before.st_ino);
        if !self.read.contains(&identity) {
            self.guard.charge_file()?;
            remember(&mut self.read, Some(identity));
        }
        let is_whole = self.whole.iter().any(|whole| is_same(whole, &before) && state(whole) == state(&before));
        OpenFile::new(file, before, is_whole)
    }

    fn version(&mut self, open: &mut OpenFile) -> Result<(FileVersion, bool), Failure> {
        open.version()
    }

    fn read(&mut self, open: &mut OpenFile, offset: u64, out: &mut [u8]) -> Result<usize, Failure> {
        // No file goes on there, and the system refuses to look.
        if i64::try_from(offset.saturating_add(out.len() as u64)).is_err() {
            return Ok(0);
        }
        let portion = self.guard.portion().min(out.len());
        let read = rustix::io::retry_on_intr(|| rustix::io::pread(open.file(), &mut out[..portion], offset));
        let count = read.map_err(|error| failed("read", error))?;
        self.guard.charge(count)?;
        Ok(count)
    }

    fn create(&mut self, put: &Put) -> Result<NewFile<G::Claim>, Failure> {
        let (directory, name) = self.new_place(&put.place, put.parents)?;
        let claim = self.guard.claim(put.size.unwrap_or(0))?;
        self.guard.charge_file()?;
        NewFile::begin((directory, name), put, claim)
    }

    fn write(&mut self, file: &mut NewFile<G::Claim>, bytes: &[u8]) -> Result<(), Failure> {
        self.guard.charge_claimed(bytes.len(), file.claim())?;
        file.write(bytes)
    }

    fn commit(&mut self, file: NewFile<G::Claim>, digest: &Digest) -> Result<(), Failure> {
        let (place, size, whole) = file.commit()?;
        remember(&mut self.whole, whole);
        self.guard.changed(&place, FileChange::Written(size, Some(digest)));
        Ok(())
    }

    fn make_directory(&mut self, request: &MakeDirectory) -> Result<bool, Failure> {
        if request.parents
            && self.reach.parent(&request.place, (&self.guard, Right::Write)).is_ok_and(|at| at.is_none())
        {
            // It has no name of its own, so it exists.
            return self.reach.directory(&request.place, &RelPath::root(), (&self.guard, Right::Write)).map(|_| false);
        }
        let (directory, name) = self.new_place(&request.place, request.parents)?;
        match directory.stat(&name).map(|stat| kind(&stat)) {
            Ok(FileType::Directory) if request.parents => return Ok(false),
            Ok(kind) => return Err(Failure::new(FailCode::Exists, format!("{name} is {}", words(kind)))),
            Err(_) => {}
        }
        self.guard.charge_file()?;
        let is_new = reach::make_directory(&directory, &name)?;
        if is_new {
            self.guard.changed(&request.place, FileChange::Made);
        }
        Ok(is_new)
    }

    fn rename(&mut self, places: &Move) -> Result<(), Failure> {
        let (from, name) = self.parent(&places.from, Right::Delete)?;
        // Nothing is made for an entry that does not exist.
        from.stat(&name).map_err(|error| failed("rename", error))?;
        let (to, new_name) = self.new_place(&places.to, places.parents)?;
        rename::rename((&from, &name), (&to, &new_name), places.existing)?;
        self.guard.changed(&places.to, FileChange::Renamed);
        Ok(())
    }

    fn remove(&mut self, request: &Remove) -> Result<Work<G::Claim>, Failure> {
        let (directory, name) = self.parent(&request.place, Right::Delete)?;
        let removal = Removal::begin(directory, name, request.removing)?;
        Ok(Work(Steps::Removal(removal, request.place.clone())))
    }

    fn copy(&mut self, places: &Move) -> Result<Work<G::Claim>, Failure> {
        let source = self.open(&places.from)?;
        let (directory, name) = self.new_place(&places.to, places.parents)?;
        let size = size(source.before());
        let claim = self.guard.claim(size)?;
        self.guard.charge_file()?;
        let put = Put {
            place: places.to.clone(),
            size: Some(size),
            existing: places.existing,
            parents: false,
            mode: source.before().st_mode & 0o777,
            mtime: None,
        };
        let target = NewFile::begin((directory, name), &put, claim)?;
        Ok(Work(Steps::Duplicate(Box::new(Duplicate::new(source, target)))))
    }

    fn step(&mut self, work: &mut Work<G::Claim>) -> Result<Progressing, Failure> {
        match &mut work.0 {
            Steps::Removal(removal, place) => {
                let stepped = removal.step()?;
                if stepped != Progressing::More {
                    self.guard.changed(place, FileChange::Removed);
                }
                Ok(stepped)
            }
            Steps::Duplicate(duplicate) => {
                let copied = duplicate.some(self.guard.portion())?;
                if let Some(target) = duplicate.target().filter(|_| copied > 0) {
                    self.guard.charge_claimed(copied, target.claim())?;
                    return Ok(Progressing::More);
                }
                let changed = duplicate.source().version()?.1;
                let (place, written, whole) = duplicate.finish(changed)?;
                remember(&mut self.whole, whole);
                self.guard.changed(&place, FileChange::Written(written.size, None));
                Ok(Progressing::Done(Finished::Copied(written)))
            }
        }
    }
}

/// The properties of the entry with this name.
fn info_of(directory: &Directory, name: &Component, owners: &mut OwnerNames) -> Result<FileInfo, Errno> {
    let stat = directory.stat(name)?;
    let is_link = kind(&stat) == FileType::Symlink;
    let target = is_link.then(|| rustix::fs::readlinkat(directory, name.as_bytes(), Vec::new())).transpose()?;
    Ok(info(&stat, target.map(std::ffi::CString::into_bytes), owners))
}

fn info(stat: &Stat, target: Option<Vec<u8>>, owners: &mut OwnerNames) -> FileInfo {
    let (kind, size) = match kind(stat) {
        FileType::RegularFile => (NodeKind::File, size(stat)),
        FileType::Directory => (NodeKind::Directory, 0),
        FileType::Symlink => (NodeKind::Link, 0),
        _ => (NodeKind::Other, 0),
    };
    let owner = Some(owners.of(stat, false));
    FileInfo { kind, size, mode: stat.st_mode & MODE, mtime: mtime(stat), ctime: Some(ctime(stat)), target, owner }
}

/// Adds to what is remembered of files, and forgets the oldest.
fn remember<T>(known: &mut VecDeque<T>, new: Option<T>) {
    known.extend(new);
    if known.len() > REMEMBERED {
        known.pop_front();
    }
}

/// The time of the last change of content or properties.
fn ctime(stat: &Stat) -> Mtime {
    Mtime { seconds: stat.st_ctime, nanos: u32::try_from(stat.st_ctime_nsec).unwrap_or(0) }
}

fn size(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}

/// The failure of an attempt to `action`. What is in the way of a copy has several reasons here.
fn failed(action: &str, errno: Errno) -> Failure {
    match errno {
        Errno::NOTDIR => FailCode::NotDirectory.into(),
        Errno::NOTEMPTY => FailCode::NotEmpty.into(),
        Errno::ISDIR => FailCode::IsDirectory.into(),
        Errno::LOOP => Failure::new(FailCode::SpecialFile, "a symbolic link is on the way, and none is followed"),
        Errno::XDEV => Failure::new(FailCode::Unsupported, "it is on another file system: copy it, then remove it"),
        errno => failure(action, errno),
    }
}

/// The time of a new file that has none.
fn now() -> Mtime {
    super::directory::now()
}
