//! A tree on the disk that is being received.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use farhaul_session::{Commit, Component, Digest, Entry, EntryId, FailCode, Failure, Leftover, RelPath, Store};
use rustix::fs::FallocateFlags;
use rustix::io::Errno;

use super::directory::{Directory, set_metadata};
use super::failure::{failure, io_failure};

/// End of the names of incomplete files, so that people and clean-up jobs know them.
const PARTIAL_SUFFIX: &str = ".fhpart";
/// Longest part of a file's own name in its temporary name: 255 bytes less two dots, 16 digits and the suffix.
const SHOWN_NAME: usize = 255 - 2 - 16 - PARTIAL_SUFFIX.len();
/// Files from this size on get their space reserved: fewer pieces on the disk, and a full disk shows at once.
const RESERVE_FROM: u64 = 1 << 20;
/// Permission bits that are taken away if the system does not tell the process's own mask.
const USUAL_UMASK: u32 = 0o022;

/// Builds received trees: each file under a temporary name until it is complete, verified and safe from a crash.
#[derive(Debug)]
pub struct DiskStore {
    root: Arc<Directory>,
    /// What comes gets this name in the root in place of its own.
    rename: Option<Rename>,
    umask: u32,
    /// The directories that are open at this point of the tree, outermost first.
    directories: Vec<(Component, EntryId, Arc<Directory>)>,
    files: BTreeMap<EntryId, Partial>,
}

#[derive(Debug)]
struct Rename {
    to: Component,
    /// The entry that was given the name; there can be one only.
    from: Option<Component>,
}

/// A file that is not complete.
#[derive(Debug)]
struct Partial {
    directory: Arc<Directory>,
    file: File,
    /// The name that it has until the commit.
    temporary: Vec<u8>,
    /// The name that it gets.
    name: Component,
}

impl DiskStore {
    /// Puts everything that comes into a directory.
    pub fn into_directory(directory: Directory) -> Self {
        Self::new(directory, None)
    }

    /// Puts what comes where a user's path says: into it, if it is a directory; otherwise one file or tree comes under
    /// that name, unless `is_directory` says that the directory is to be made.
    ///
    /// # Errors
    /// The directory on the way does not exist or may not be entered.
    pub fn at(path: &Path, is_directory: bool) -> io::Result<Self> {
        match Directory::open_parent(path)? {
            Some((parent, name)) if !path.is_dir() => Self::under(parent, name, is_directory),
            _ => Ok(Self::into_directory(Directory::open(path)?)),
        }
    }

    /// The same for a path that a peer asks for below `root`; no link is followed.
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
                let directory = parent.make_child(&name)?;
                let mode = 0o777 & !umask();
                rustix::fs::fchmod(&directory, rustix::fs::Mode::from_raw_mode(mode))?;
                Ok(Self::into_directory(directory))
            }
            Err(_) => Ok(Self::new(parent, Some(Rename { to: name, from: None }))),
        }
    }

    fn new(root: Directory, rename: Option<Rename>) -> Self {
        let (directories, files) = (Vec::new(), BTreeMap::new());
        Self { root: Arc::new(root), rename, umask: umask(), directories, files }
    }

    /// The open directory in which an entry belongs, and the name that it gets there.
    fn place(&mut self, entry: &Entry) -> Result<(Arc<Directory>, Component), Failure> {
        let no_name = || Failure::from(FailCode::NameRefused);
        let (name, parents) = entry.path.split_last().ok_or_else(no_name)?;
        self.directories.truncate(parents.len());
        let open = self.directories.iter().map(|(name, ..)| name);
        if self.directories.len() < parents.len() || !open.eq(parents) {
            return Err(FailCode::ParentFailed.into());
        }
        let directory = self.directories.last().map_or(&self.root, |(.., directory)| directory);
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
        Ok((Arc::clone(directory), name))
    }

    fn taken(&mut self, id: EntryId) -> Result<Partial, Failure> {
        self.files.remove(&id).ok_or_else(not_open)
    }
}

impl Store for DiskStore {
    fn make_dir(&mut self, id: EntryId, entry: &Entry) -> Result<(), Failure> {
        let (parent, name) = self.place(entry)?;
        let directory = parent.make_child(&name).map_err(|error| failure("make the directory", error))?;
        self.directories.push((entry.name().clone(), id, Arc::new(directory)));
        Ok(())
    }

    fn begin(&mut self, id: EntryId, entry: &Entry) -> Result<(), Failure> {
        let (directory, name) = self.place(entry)?;
        refuse_directory(&directory, &name)?;
        let free = directory.free_space().map_err(|error| failure("ask for the free space", error))?;
        if entry.size > free {
            let message = format!("{} bytes are needed and {free} are free", entry.size);
            return Err(Failure::new(FailCode::NoSpace, message));
        }
        let temporary = temporary_name(&name)?;
        let file = directory.make_file(&temporary).map_err(|error| failure("make the file", error))?;
        let partial = Partial { directory, file, temporary, name };
        if let Err(error) = partial.reserve(entry.size) {
            partial.remove();
            return Err(error);
        }
        self.files.insert(id, partial);
        Ok(())
    }

    fn write(&mut self, id: EntryId, offset: u64, bytes: &[u8]) -> Result<(), Failure> {
        let file = &self.files.get(&id).ok_or_else(not_open)?.file;
        file.write_all_at(bytes, offset).map_err(|error| io_failure("write", &error))
    }

    fn commit(&mut self, id: EntryId, entry: &Entry, _: &Digest) -> Result<Commit, Failure> {
        let partial = self.taken(id)?;
        match partial.commit(entry, entry.mode & !self.umask) {
            Ok(()) => Ok(Commit::Done),
            Err((action, error)) => {
                // Complete, but not safe: an error of fsync is final for a file, since a repetition may not report it.
                partial.remove();
                Err(failure(action, error))
            }
        }
    }

    fn finish_dir(&mut self, id: EntryId, entry: &Entry) -> Result<Commit, Failure> {
        let position = self.directories.iter().position(|(_, its, _)| *its == id).ok_or_else(not_open)?;
        let (.., directory) = &self.directories[position];
        let done = set_metadata(directory, entry.mode & !self.umask, entry.mtime).and_then(|()| directory.sync());
        self.directories.truncate(position);
        done.map_err(|error| failure("set mode and time of the directory", error))?;
        Ok(Commit::Done)
    }

    fn abort(&mut self, id: EntryId, leftover: Leftover) {
        if let Some(partial) = self.files.remove(&id)
            && leftover == Leftover::Remove
        {
            partial.remove();
        }
    }
}

impl Partial {
    fn reserve(&self, size: u64) -> Result<(), Failure> {
        if size < RESERVE_FROM {
            return Ok(());
        }
        match rustix::fs::fallocate(&self.file, FallocateFlags::KEEP_SIZE, 0, size) {
            Err(error @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG | Errno::IO)) => {
                Err(failure("reserve space", error))
            }
            // File systems that cannot reserve say so in several ways; the writes will tell.
            _ => Ok(()),
        }
    }

    /// Everything that makes the file survive a crash under its final name, in this order.
    fn commit(&self, entry: &Entry, mode: u32) -> Result<(), (&'static str, Errno)> {
        set_metadata(&self.file, mode, entry.mtime).map_err(|error| ("set mode and time", error))?;
        rustix::fs::fsync(&self.file).map_err(|error| ("write to the disk", error))?;
        self.directory.rename(&self.temporary, &self.name).map_err(|error| ("give the file its name", error))?;
        self.directory.sync().map_err(|error| ("write the directory to the disk", error))
    }

    fn remove(&self) {
        // If even that fails, the temporary name tells what it is.
        let _ = self.directory.remove(&self.temporary);
    }
}

fn not_open() -> Failure {
    Failure::new(FailCode::Io, "it is not open")
}

/// A rename would fail at the very end; better now.
fn refuse_directory(directory: &Directory, name: &Component) -> Result<(), Failure> {
    match directory.child(name) {
        Ok(_) => Err(Failure::new(FailCode::Exists, "a directory has that name")),
        Err(_) => Ok(()),
    }
}

/// `.NAME.RANDOM.fhpart`: hidden, beside the file, and nobody can guess it.
fn temporary_name(name: &Component) -> Result<Vec<u8>, Failure> {
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(|error| Failure::new(FailCode::Io, error.to_string()))?;
    let shown = &name.as_bytes()[..name.as_bytes().len().min(SHOWN_NAME)];
    let end = format!(".{:016x}{PARTIAL_SUFFIX}", u64::from_ne_bytes(random));
    Ok([b".", shown, end.as_bytes()].concat())
}

/// The permission bits that this process takes away from what it makes. Asked of the system without changing it, which
/// other threads would notice.
fn umask() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    line.and_then(|octal| u32::from_str_radix(octal.trim(), 8).ok()).unwrap_or(USUAL_UMASK)
}
