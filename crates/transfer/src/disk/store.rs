//! A store that builds a received tree on the disk.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use farhaul_session::{Commit, Component, Digest, Ending, Entry, EntryId, FailCode, Failure, Leftover, RelPath, Store};

use super::claims::Claims;
use super::commits::{Commits, DirectoryCommit, FileCommit};
use super::directory::Directory;
use super::directory_handles::DirectoryHandles;
use super::failure::failure;
use super::partial::Partial;
use super::target::Target;
use super::umask::umask;

/// Rights of the owner. The owner's next copy must enter an incomplete directory.
const OWNER: u32 = 0o700;

/// Builds received trees: each file under a temporary name until it is complete, verified and safe from a crash.
///
/// The last steps of each file wait for the disk, so threads of the store perform them. Dropping the store waits for
/// running commits.
///
/// A store holds at most five descriptors besides those of its commits, regardless of the depth of the tree. The limit
/// of open files bounds the commits of all stores of the process together.
#[derive(Debug)]
pub struct DiskStore {
    /// The handles of the root and of the innermost directory.
    handles: DirectoryHandles,
    /// The name for the single entry at the root, in place of its own.
    rename: Option<Rename>,
    /// The root, if the store made it and the copy is not complete.
    made: Option<Made>,
    /// What the copy has made at the root.
    claims: Arc<Claims>,
    umask: u32,
    /// The directories entered, outermost first.
    directories: Vec<OpenDirectory>,
    files: BTreeMap<EntryId, Partial>,
    commits: Commits,
}

/// A directory whose content is incomplete.
#[derive(Debug)]
struct OpenDirectory {
    id: EntryId,
    /// Its name in the session.
    name: Component,
    /// Its mode if the copy breaks off. `None` for directories that existed before, which keep their mode in any case.
    mode_after_break: Option<u32>,
    /// What the copy has made in it.
    claims: Arc<Claims>,
}

/// A target directory that did not exist before.
#[derive(Debug)]
struct Made {
    parent: Directory,
    name: Component,
}

/// Where an entry goes.
struct StoredPlace {
    directory: Arc<Directory>,
    /// Its name there.
    name: Component,
    claims: Arc<Claims>,
}

#[derive(Debug)]
struct Rename {
    to: Component,
    /// The entry that got the name. Only one can.
    from: Option<Component>,
}

impl DiskStore {
    /// Stores all entries in a directory.
    pub fn into_directory(directory: Directory) -> Self {
        Self::new(directory, None)
    }

    /// Stores entries at a user's path: in it, if it is a directory. Otherwise one file or tree gets that name, or a
    /// new directory with `is_directory`.
    ///
    /// # Errors
    /// The parent directory does not exist or may not be entered.
    pub fn at(path: &Path, is_directory: bool) -> io::Result<Self> {
        match Directory::open_parent(path)? {
            Some((parent, name)) if !path.is_dir() => Self::under(parent, name, is_directory),
            _ => Ok(Self::into_directory(Directory::open(path)?)),
        }
    }

    /// The same for a path that a peer requests below `root`. No link is followed.
    ///
    /// # Errors
    /// As [`at`](DiskStore::at).
    pub fn beneath(root: &Directory, target: &RelPath, is_directory: bool) -> io::Result<Self> {
        match root.descend_to_parent(target)? {
            Some((parent, name)) => Self::under(parent, name, is_directory),
            None => Ok(Self::into_directory(root.descend(target)?)),
        }
    }

    fn under(parent: Directory, name: Component, is_directory: bool) -> io::Result<Self> {
        match parent.child(&name) {
            Ok(directory) => Ok(Self::into_directory(directory)),
            Err(_) if is_directory => {
                let (directory, is_new) = parent.make_child(&name)?;
                if is_new {
                    directory.set_mode(0o777 & !umask())?;
                }
                let made = is_new.then_some(Made { parent, name });
                let mut store = Self::into_directory(directory);
                store.made = made;
                Ok(store)
            }
            Err(_) => Ok(Self::new(parent, Some(Rename { to: name, from: None }))),
        }
    }

    fn new(root: Directory, rename: Option<Rename>) -> Self {
        let (directories, files) = (Vec::new(), BTreeMap::new());
        let (made, claims, commits) = (None, Arc::default(), Commits::default());
        Self { handles: DirectoryHandles::new(root), rename, made, claims, umask: umask(), directories, files, commits }
    }

    /// The innermost directory after closing those deeper than `depth`.
    fn directory_at(&mut self, depth: usize) -> Result<Arc<Directory>, Failure> {
        self.directories.truncate(depth);
        self.handles.leave_to(depth);
        self.handles.here().map_err(|lost| lost.failure(FailCode::NotFound))
    }

    /// Gives the open directories the modes that they keep if nothing more arrives.
    fn leave_directories(&self) {
        for (depth, open) in (1..).zip(&self.directories) {
            if let (Some(mode), Ok(directory)) = (open.mode_after_break, self.handles.at(depth)) {
                // If that fails, the directory stays private. The next copy gives it its mode.
                let _ = directory.set_mode(mode);
                directory.mark_unfinished(mode);
            }
        }
    }

    /// Removes a target directory that the store made and that is still empty.
    fn remove_made(&mut self) {
        if let Some(Made { parent, name }) = self.made.take() {
            // The system removes no directory with an entry.
            let _ = parent.remove_directory(&name);
        }
    }

    /// The open directory of an entry, and the entry's name there.
    fn place(&mut self, entry: &Entry) -> Result<StoredPlace, Failure> {
        let no_name = || Failure::from(FailCode::NameRefused);
        let (name, parents) = entry.path.split_last().ok_or_else(no_name)?;
        let open = self.directories.iter().map(|directory| &directory.name).take(parents.len());
        if !open.eq(parents) {
            return Err(FailCode::ParentFailed.into());
        }
        let directory = self.directory_at(parents.len())?;
        let claims = Arc::clone(self.directories.last().map_or(&self.claims, |open| &open.claims));
        let name = match &mut self.rename {
            Some(rename) if parents.is_empty() => {
                if rename.from.get_or_insert_with(|| name.clone()) != name {
                    let message = "several files cannot have one name; the target must be a directory";
                    return Err(Failure::new(FailCode::Exists, message));
                }
                rename.to.clone()
            }
            _ => name.clone(),
        };
        Ok(StoredPlace { directory, name, claims })
    }
}

impl Store for DiskStore {
    fn make_dir(&mut self, id: EntryId, entry: &Entry) -> Result<(), Failure> {
        let StoredPlace { directory: parent, name, claims } = self.place(entry)?;
        let (directory, is_new) =
            parent.make_child(&name).map_err(|error| Target { directory: &parent, name: &name }.no_directory(error))?;
        claims.claim_directory(&parent, &name, (directory.inode(), is_new))?;
        if is_new {
            directory.mark_unfinished(OWNER);
        }
        let mode_after_break = (is_new || directory.is_unfinished()).then_some(entry.mode & !self.umask | OWNER);
        self.handles.enter(name, directory);
        let name = entry.name().clone();
        self.directories.push(OpenDirectory { id, name, mode_after_break, claims: Arc::default() });
        Ok(())
    }

    fn begin(&mut self, id: EntryId, entry: &Entry) -> Result<(), Failure> {
        let StoredPlace { directory, name, claims } = self.place(entry)?;
        Target { directory: &directory, name: &name }.check(&claims)?;
        let free = directory.free_space().map_err(|error| failure("ask for the free space", error))?;
        if entry.size > free {
            let message = format!("{} bytes are needed and {free} are free", entry.size);
            return Err(Failure::new(FailCode::NoSpace, message));
        }
        self.files.insert(id, Partial::begin(directory, name, entry.size, claims)?);
        Ok(())
    }

    fn write(&mut self, id: EntryId, offset: u64, bytes: &[u8]) -> Result<(), Failure> {
        self.files.get(&id).ok_or_else(not_open)?.write(offset, bytes)
    }

    fn commit(&mut self, id: EntryId, entry: &Entry, _: &Digest) -> Result<Commit, Failure> {
        let partial = self.files.remove(&id).ok_or_else(not_open)?;
        self.commits.file(FileCommit { id, partial, mode: entry.mode & !self.umask, mtime: entry.mtime });
        Ok(Commit::Pending)
    }

    fn finish_dir(&mut self, id: EntryId, entry: &Entry) -> Result<Commit, Failure> {
        let position = self.directories.iter().position(|open| open.id == id).ok_or_else(not_open)?;
        let is_ours = self.directories[position].mode_after_break.is_some();
        let directory = self.directory_at(position + 1);
        let parent = self.directory_at(position)?;
        let directory = directory?;
        let (mode, mtime) = (is_ours.then_some(entry.mode & !self.umask), entry.mtime);
        self.commits.directory(DirectoryCommit { id, directory, parent, mode, mtime });
        Ok(Commit::Pending)
    }

    fn settle(&mut self) {
        self.commits.settle();
        self.leave_directories();
    }

    fn conclude(&mut self, ending: Ending) {
        match ending {
            Ending::Whole => self.made = None,
            Ending::Lacking => self.remove_made(),
        }
    }

    fn poll_committed(&mut self) -> Option<(EntryId, Result<(), Failure>)> {
        self.commits.poll()
    }

    fn abort(&mut self, id: EntryId, leftover: Leftover) {
        if let Some(mut partial) = self.files.remove(&id)
            && leftover == Leftover::Remove
        {
            partial.remove();
        }
    }
}

impl Drop for DiskStore {
    /// Covers a copy whose connection was lost, where nothing called [`settle`](Store::settle).
    fn drop(&mut self) {
        self.settle();
        self.remove_made();
    }
}

fn not_open() -> Failure {
    Failure::new(FailCode::Io, "it is not open")
}
