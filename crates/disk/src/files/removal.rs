//! Removing an entry, or a directory with everything in it, in steps.

use farhaul_session::{Component, FailCode, Failure, Finished, Progressing, RelPath, Removing};
use rustix::fs::FileType;
use rustix::io::Errno;

use super::failed;
use crate::directory::{Directory, kind};
use crate::directory_handles::DirectoryHandles;

/// Entries that one step removes at most.
const PER_STEP: usize = 256;
/// Names of a directory that are known at a time. The directory is read again for those that follow.
const PER_LEVEL: usize = 128;

/// A removal in progress.
#[derive(Debug)]
pub(super) struct Removal {
    /// The walk below the directory of the entry.
    handles: DirectoryHandles,
    name: Component,
    is_directory: bool,
    /// The directories entered, outermost first.
    levels: Vec<Level>,
    removed: u64,
    /// More entries are not removed.
    most: u64,
}

#[derive(Debug)]
struct Level {
    name: Component,
    /// Names that are to be removed, of which it may have more.
    known: Vec<Component>,
}

/// A directory has more names than are to be known.
struct Enough;

impl From<Errno> for Enough {
    fn from(_: Errno) -> Self {
        Self
    }
}

impl Removal {
    pub(super) fn begin(directory: Directory, name: Component, removing: Removing) -> Result<Self, Failure> {
        let stat = directory.stat(&name).map_err(|error| failed("remove", error))?;
        let is_directory = kind(&stat) == FileType::Directory;
        if directory.keeps(&stat) {
            return Err(failed("remove", Errno::BUSY));
        }
        match removing {
            Removing::File if is_directory => return Err(FailCode::IsDirectory.into()),
            Removing::EmptyDirectory if !is_directory => return Err(FailCode::NotDirectory.into()),
            _ => {}
        }
        let (levels, most) = match removing {
            Removing::Tree(most) if is_directory => (vec![Level { name: name.clone(), known: Vec::new() }], most),
            _ => (Vec::new(), 1),
        };
        let mut handles = DirectoryHandles::new(directory);
        if !levels.is_empty() {
            enter(&mut handles, &name)?;
        }
        Ok(Self { handles, name, is_directory, levels, removed: 0, most })
    }

    pub(super) fn step(&mut self) -> Result<Progressing, Failure> {
        for _ in 0..PER_STEP {
            if self.removed >= self.most {
                let message = format!("more than {} entries; that many were removed", self.most);
                return Err(Failure::new(FailCode::Limit, message));
            }
            if self.remove_one().map_err(|failure| self.named(failure))? {
                let top = self.here()?;
                top.sync().map_err(|error| failed("synchronise the directory", error))?;
                return Ok(Progressing::Done(Finished::Removed(self.removed)));
            }
        }
        Ok(Progressing::More)
    }

    /// Removes the next entry. Returns whether it was the last one.
    fn remove_one(&mut self) -> Result<bool, Failure> {
        let directory = self.here()?;
        let Some(level) = self.levels.last_mut() else {
            let removed = match self.is_directory {
                true => directory.remove_directory(&self.name),
                false => directory.remove(&self.name),
            };
            removed.map_err(|error| failed("remove", error))?;
            self.removed += 1;
            return Ok(true);
        };
        if level.known.is_empty() {
            level.known = some_names(&directory)?;
        }
        let Some(name) = level.known.pop() else {
            self.leave()?;
            return Ok(false);
        };
        match directory.remove(&name) {
            Ok(()) => self.removed += 1,
            // It has gone meanwhile.
            Err(Errno::NOENT) => {}
            // EPERM is what POSIX has for directories.
            Err(Errno::ISDIR | Errno::PERM)
                if directory.stat(&name).is_ok_and(|stat| kind(&stat) == FileType::Directory) =>
            {
                enter(&mut self.handles, &name)?;
                self.levels.push(Level { name, known: Vec::new() });
            }
            Err(error) => return Err(failed("remove", error)),
        }
        Ok(false)
    }

    /// Leaves an empty directory. Removes it, unless it is the last one, which has its own turn.
    fn leave(&mut self) -> Result<(), Failure> {
        let Some(level) = self.levels.pop() else { return Ok(()) };
        self.handles.leave_to(self.levels.len());
        if self.levels.is_empty() {
            return Ok(());
        }
        match self.here()?.remove_directory(&level.name) {
            Ok(()) => self.removed += 1,
            // It has gone meanwhile, or got new entries: the next reading finds it.
            Err(Errno::NOENT | Errno::NOTEMPTY) => {}
            Err(error) => return Err(failed("remove", error)),
        }
        Ok(())
    }

    fn here(&mut self) -> Result<std::sync::Arc<Directory>, Failure> {
        self.handles.here().map_err(|lost| lost.failure(FailCode::NotFound))
    }

    /// The failure with the directory below the entry in which it happened.
    fn named(&self, failure: Failure) -> Failure {
        let mut path = RelPath::root();
        for level in self.levels.iter().skip(1) {
            let _ = path.push(level.name.clone());
        }
        let at = if path.is_root() { String::new() } else { format!("in {path}: ") };
        let done = match self.removed {
            0 => String::new(),
            removed => format!("; {removed} entries were removed before"),
        };
        Failure::new(failure.code, format!("{at}{}{done}", failure.message))
    }
}

fn enter(handles: &mut DirectoryHandles, name: &Component) -> Result<(), Failure> {
    let here = handles.here().map_err(|lost| lost.failure(FailCode::NotFound))?;
    let child = here.child(name).map_err(|error| failed("open", error))?;
    handles.enter(name.clone(), child);
    Ok(())
}

/// Some names in a directory; none if it is empty.
fn some_names(directory: &Directory) -> Result<Vec<Component>, Failure> {
    let mut names = Vec::new();
    let read = directory.each_name(|name, _| {
        names.extend(Component::new(name));
        if names.len() < PER_LEVEL { Ok(()) } else { Err(Enough) }
    });
    match read {
        Err(Enough) if names.is_empty() => Err(Failure::new(FailCode::Io, "cannot read the directory")),
        _ => Ok(names),
    }
}
