//! A tree on the disk to send.

use std::io;
use std::path::Path;
use std::sync::Arc;

use farhaul_session::{
    Chunk, Component, Entry, EntryId, EntryKind, FailCode, Failure, Mtime, Next, RelPath, ShownPath, Source, Stamp,
};
use rustix::fs::FileType;

use super::directory::{Directory, kind, mtime, now, permissions, stamp_now};
use super::failure::failure;
use super::partial::is_temporary;
use super::source_file::SourceFile;
use super::target::words;

/// Files and directories to send, walked depth first in ascending order of names.
///
/// Symbolic links, devices, pipes and sockets are skipped and reported. Incomplete files under the temporary names that
/// [`DiskStore`](super::DiskStore) gives are no part of a directory; one that is asked for by its name comes.
#[derive(Debug)]
pub struct DiskSource {
    recursive: bool,
    /// When it was made, and whether directories that are younger are left out.
    began: Mtime,
    leaves_out_younger: bool,
    /// What is still to come: the directories that are open, outermost first.
    levels: Vec<Level>,
    open: Option<OpenFile>,
}

/// A directory on the way, or the list of what was asked for.
#[derive(Debug)]
struct Level {
    path: RelPath,
    /// Descending, so that the next one is at the end.
    rest: Vec<Place>,
}

/// Something by its name in an open directory.
#[derive(Debug)]
struct Place {
    parent: Arc<Directory>,
    name: Component,
    /// Another name under which it is sent.
    sent_as: Option<Component>,
}

#[derive(Debug)]
struct OpenFile {
    id: EntryId,
    place: Place,
    file: SourceFile,
}

impl DiskSource {
    /// The given files and directories, each under its own name; of a path without one (`.`, `/`) the content.
    ///
    /// # Errors
    /// A directory on the way to one of them cannot be opened, or two have the same name.
    pub fn new<P: AsRef<Path>>(paths: &[P], recursive: bool) -> io::Result<Self> {
        let mut places = Vec::new();
        for path in paths.iter().map(AsRef::as_ref) {
            let Some((parent, name)) = Directory::open_parent(path)? else {
                places.extend(content(Directory::open(path)?)?);
                continue;
            };
            // A link that the caller names is followed, but what it leads to arrives under the link's name.
            match path.is_symlink().then(|| path.canonicalize()).transpose()? {
                Some(target) => {
                    let (parent, target) = Directory::open_parent(&target)?.ok_or(io::ErrorKind::IsADirectory)?;
                    places.push(Place { parent: Arc::new(parent), name: target, sent_as: Some(name) });
                }
                None => places.push(Place::new(parent, name)?),
            }
        }
        Self::from_places(places, recursive)
    }

    /// What a peer asks for below `root`: each path under its last name, of the root itself the content. No link is
    /// followed.
    ///
    /// # Errors
    /// One of them does not exist or may not be read.
    pub fn beneath(root: &Directory, paths: &[RelPath], recursive: bool) -> io::Result<Self> {
        let mut places = Vec::new();
        for path in paths {
            match root.descend_to_parent(path)? {
                Some((parent, name)) => places.push(Place::new(parent, name)?),
                None => places.extend(content(root.descend(path)?)?),
            }
        }
        Self::from_places(places, recursive)
    }

    fn from_places(mut places: Vec<Place>, recursive: bool) -> io::Result<Self> {
        places.sort_by(|a, b| b.sent_as().cmp(a.sent_as()));
        if let Some(pair) = places.windows(2).find(|pair| pair[0].sent_as() == pair[1].sent_as()) {
            let message = format!("two sources have the name {}", pair[0].sent_as());
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
        }
        let levels = vec![Level { path: RelPath::root(), rest: places }];
        Ok(Self { recursive, began: now(), leaves_out_younger: false, levels, open: None })
    }

    /// Skips and reports directories that are made from now on.
    ///
    /// For copies whose target is on this machine too: if it lies in what is copied, the copy would meet its own output
    /// again and again. Where the file system does not tell when a directory was made, nothing is skipped. Call it before
    /// the other side begins to write: it waits for the kernel's next tick, ten milliseconds at most, since what is made
    /// before that cannot be told from what was there.
    pub fn leave_out_younger_directories(&mut self) {
        self.leaves_out_younger = self.recursive;
        while self.recursive && stamp_now() <= self.began {
            std::thread::yield_now();
        }
    }

    fn enter(&mut self, id: EntryId, place: Place, path: &RelPath) -> Result<Entry, Failure> {
        let stat = place.parent.stat(&place.name).map_err(|error| failure("read", error))?;
        match kind(&stat) {
            FileType::RegularFile => self.enter_file(id, place, path),
            FileType::Directory if self.recursive => self.enter_directory(&place, path),
            FileType::Directory => Err(FailCode::IsDirectory.into()),
            kind => Err(Failure::new(FailCode::SpecialFile, words(kind))),
        }
    }

    fn enter_file(&mut self, id: EntryId, place: Place, path: &RelPath) -> Result<Entry, Failure> {
        let file = SourceFile::open(&place.parent, &place.name)?;
        let entry = file.entry(path.clone());
        self.open = Some(OpenFile { id, place, file });
        Ok(entry)
    }

    fn enter_directory(&mut self, place: &Place, path: &RelPath) -> Result<Entry, Failure> {
        let opened = place.parent.child(&place.name).and_then(|directory| {
            let (stat, names) = (rustix::fs::fstat(&directory)?, directory.names()?);
            Ok((directory, stat, names))
        });
        let (directory, stat, names) = opened.map_err(|error| failure("open", error))?;
        if self.leaves_out_younger && directory.made().is_some_and(|made| made > self.began) {
            let message = "it was made after the copy began; does the target lie in the source?";
            return Err(Failure::new(FailCode::SourceChanged, message));
        }
        self.levels.push(Level { path: path.clone(), rest: Place::all_in(names, directory) });
        let (mode, mtime) = (permissions(&stat), mtime(&stat));
        Ok(Entry { path: path.clone(), kind: EntryKind::Directory, size: 0, mode, mtime })
    }

    fn opened(&mut self, id: EntryId) -> Result<&mut OpenFile, Failure> {
        self.open.as_mut().filter(|open| open.id == id).ok_or_else(|| Failure::new(FailCode::Io, "it is not open"))
    }
}

impl Source for DiskSource {
    fn next_entry(&mut self, id: EntryId) -> Next {
        loop {
            let Some(level) = self.levels.last_mut() else { return Next::End };
            let Some(place) = level.rest.pop() else {
                self.levels.pop();
                continue;
            };
            let path = match level.path.join(place.sent_as().clone()) {
                Ok(path) => path,
                Err(error) => {
                    let mut shown = level.path.to_bytes();
                    shown.push(b'/');
                    shown.extend_from_slice(place.name.as_bytes());
                    let failure = Failure::new(FailCode::NameRefused, error.to_string());
                    return Next::Skipped(ShownPath::new(&shown), failure);
                }
            };
            return match self.enter(id, place, &path) {
                Ok(entry) => Next::Entry(entry),
                Err(failure) => Next::Skipped(ShownPath::from(&path), failure),
            };
        }
    }

    fn read(&mut self, id: EntryId, offset: u64, out: &mut [u8]) -> Result<Chunk, Failure> {
        self.opened(id)?.file.read(offset, out)
    }

    fn recheck(&mut self, id: EntryId) -> Result<Stamp, Failure> {
        let OpenFile { place, file, .. } = self.opened(id)?;
        file.recheck(&place.parent, &place.name)
    }

    fn close(&mut self, id: EntryId) {
        if self.open.as_ref().is_some_and(|open| open.id == id) {
            self.open = None;
        }
    }
}

/// Everything in a directory.
fn content(directory: Directory) -> io::Result<Vec<Place>> {
    Ok(Place::all_in(directory.names()?, directory))
}

impl Place {
    /// Something that exists.
    fn new(parent: Directory, name: Component) -> io::Result<Self> {
        parent.stat(&name)?;
        Ok(Self { parent: Arc::new(parent), name, sent_as: None })
    }

    /// What is in a directory, but for what copies left behind or are at work on.
    fn all_in(names: Vec<Component>, parent: Directory) -> Vec<Self> {
        let parent = Arc::new(parent);
        let names = names.into_iter().rev().filter(|name| !is_temporary(name));
        names.map(|name| Self { parent: Arc::clone(&parent), name, sent_as: None }).collect()
    }

    fn sent_as(&self) -> &Component {
        self.sent_as.as_ref().unwrap_or(&self.name)
    }
}
