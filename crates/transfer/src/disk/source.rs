//! A source that reads a tree from the disk.

use std::io;
use std::path::Path;
use std::sync::Arc;

use farhaul_session::{
    Chunk, Component, Entry, EntryId, EntryKind, FailCode, Failure, Mtime, Next, PathError, RelPath, ShownPath, Source,
    Stamp,
};
use rustix::fs::FileType;

use super::asked::{Asked, names_to_send};
use super::directory::{Directory, kind, mtime, now, permissions, stamp_now};
use super::directory_handles::DirectoryHandles;
use super::failure::{failure, io_failure};
use super::selection::{Selection, Wording};
use super::source_file::SourceFile;
use super::target::words;

/// Files and directories to send, walked depth first in ascending order of names.
///
/// Symbolic links, devices, pipes and sockets are skipped and reported. Directories are sent without incomplete files,
/// which [`DiskStore`](super::DiskStore) names with a suffix. An incomplete file requested by its own name is sent.
///
/// At most five descriptors are open, regardless of the depth of the tree and the number of paths.
#[derive(Debug)]
pub struct DiskSource {
    recursive: bool,
    /// When the source was created, and whether it skips younger directories.
    began: Mtime,
    leaves_out_younger: bool,
    /// Sources that cannot be sent, the next one last. They are reported first.
    refused: Vec<(ShownPath, Failure)>,
    /// The requested entries still to come, in descending order: the next one is last.
    asked: Vec<Asked>,
    /// The requested directory being walked.
    tree: Option<Tree>,
    open: Option<OpenFile>,
}

/// A requested directory with its content.
#[derive(Debug)]
struct Tree {
    handles: DirectoryHandles,
    /// The directories entered, outermost first. The first one is its root.
    levels: Vec<Level>,
}

#[derive(Debug)]
struct Level {
    path: RelPath,
    /// Names still to come, in descending order.
    rest: Vec<Component>,
}

/// The next entry, and its path in the copy.
#[derive(Debug)]
struct Step {
    parent: Result<Arc<Directory>, Failure>,
    name: Component,
    path: Result<RelPath, (ShownPath, PathError)>,
}

#[derive(Debug)]
struct OpenFile {
    id: EntryId,
    parent: Arc<Directory>,
    name: Component,
    file: SourceFile,
}

impl DiskSource {
    /// The given files and directories, each under its own name. Of a path without a name (`.`, `/`, `dir/.`), the
    /// content. Directories are sent only if `recursive`.
    ///
    /// # Errors
    /// The directory of one of them cannot be opened, or two have the same name.
    pub fn new<P: AsRef<Path>>(paths: &[P], recursive: bool) -> io::Result<Self> {
        Selection::named(paths, Wording::Literal, recursive).map(Self::of)
    }

    /// The paths that a peer requests below `root`, each under its last name. Of the root itself, the content. No link
    /// is followed. Directories are sent only if `recursive`.
    ///
    /// # Errors
    /// One of them does not exist or may not be read.
    pub fn beneath(root: &Directory, paths: &[RelPath], recursive: bool) -> io::Result<Self> {
        Selection::beneath(root, paths, Wording::Literal, recursive).map(Self::of)
    }

    /// The entries of a selection.
    pub fn of(selection: Selection) -> Self {
        let Selection { recursive, mut refused, asked } = selection;
        refused.reverse();
        Self { recursive, began: now(), leaves_out_younger: false, refused, asked, tree: None, open: None }
    }

    /// Skips and reports directories that are created from now on.
    ///
    /// Use it for copies whose target is on this machine too. With a target inside the source, the copy would meet its
    /// own output again and again. If the file system does not record the creation time, nothing is skipped. Call it
    /// before the other side starts to write. It waits for the kernel's next tick, ten milliseconds at most. A
    /// directory created within this tick looks as old as the existing ones.
    pub fn leave_out_younger_directories(&mut self) {
        self.leaves_out_younger = self.recursive;
        while self.recursive && stamp_now() <= self.began {
            std::thread::yield_now();
        }
    }

    fn next_step(&mut self) -> Option<Step> {
        if let Some(step) = self.tree.as_mut().and_then(Tree::next_step) {
            return Some(step);
        }
        self.tree = None;
        let asked = self.asked.pop()?;
        let parent = asked.parent().map(Arc::new).map_err(|error| io_failure("open its directory", &error));
        let path = RelPath::root().join(asked.sent_as).map_err(|error| (ShownPath::default(), error));
        Some(Step { parent, name: asked.name, path })
    }

    fn enter(
        &mut self,
        id: EntryId,
        parent: Arc<Directory>,
        name: Component,
        path: &RelPath,
    ) -> Result<Entry, Failure> {
        let stat = parent.stat(&name).map_err(|error| failure("read", error))?;
        match kind(&stat) {
            FileType::RegularFile => {
                let file = SourceFile::open(&parent, &name)?;
                let entry = file.entry(path.clone());
                self.open = Some(OpenFile { id, parent, name, file });
                Ok(entry)
            }
            FileType::Directory if self.recursive => self.enter_directory(&parent, name, path),
            FileType::Directory => Err(FailCode::IsDirectory.into()),
            kind => Err(Failure::new(FailCode::SpecialFile, words(kind))),
        }
    }

    fn enter_directory(&mut self, parent: &Directory, name: Component, path: &RelPath) -> Result<Entry, Failure> {
        let opened = parent.child(&name).and_then(|directory| Ok((rustix::fs::fstat(&directory)?, directory)));
        let (stat, directory) = opened.map_err(|error| failure("open", error))?;
        let mut rest = names_to_send(&directory).map_err(|error| io_failure("open", &error))?;
        if self.leaves_out_younger && directory.made().is_some_and(|made| made > self.began) {
            let message = "it was made after the copy began; does the target lie in the source?";
            return Err(Failure::new(FailCode::SourceChanged, message));
        }
        rest.reverse();
        let level = Level { path: path.clone(), rest };
        match &mut self.tree {
            Some(tree) => {
                tree.handles.enter(name, directory);
                tree.levels.push(level);
            }
            None => self.tree = Some(Tree { handles: DirectoryHandles::new(directory), levels: vec![level] }),
        }
        Ok(Entry {
            path: path.clone(),
            kind: EntryKind::Directory,
            size: 0,
            mode: permissions(&stat),
            mtime: mtime(&stat),
        })
    }

    fn opened(&mut self, id: EntryId) -> Result<&mut OpenFile, Failure> {
        self.open.as_mut().filter(|open| open.id == id).ok_or_else(|| Failure::new(FailCode::Io, "it is not open"))
    }
}

impl Tree {
    /// The next name in the innermost directory that has one.
    fn next_step(&mut self) -> Option<Step> {
        let (path, name) = loop {
            let level = self.levels.last_mut()?;
            if let Some(name) = level.rest.pop() {
                break (&level.path, name);
            }
            self.levels.pop();
        };
        let path = path.join(name.clone()).map_err(|error| {
            let shown = [&path.to_bytes(), b"/".as_slice(), name.as_bytes()].concat();
            (ShownPath::new(&shown), error)
        });
        self.handles.leave_to(self.levels.len() - 1);
        let parent = self.handles.here().map_err(|lost| lost.failure(FailCode::SourceChanged));
        Some(Step { parent, name, path })
    }
}

impl Source for DiskSource {
    fn next_entry(&mut self, id: EntryId) -> Next {
        if let Some((path, failure)) = self.refused.pop() {
            return Next::Skipped(path, failure);
        }
        let Some(Step { parent, name, path }) = self.next_step() else { return Next::End };
        let path = match path {
            Ok(path) => path,
            Err((shown, error)) => return Next::Skipped(shown, Failure::new(FailCode::NameRefused, error.to_string())),
        };
        match parent.and_then(|parent| self.enter(id, parent, name, &path)) {
            Ok(entry) => Next::Entry(entry),
            Err(failure) => Next::Skipped(ShownPath::from(&path), failure),
        }
    }

    fn read(&mut self, id: EntryId, offset: u64, out: &mut [u8]) -> Result<Chunk, Failure> {
        self.opened(id)?.file.read(offset, out)
    }

    fn recheck(&mut self, id: EntryId) -> Result<Stamp, Failure> {
        let OpenFile { parent, name, file, .. } = self.opened(id)?;
        file.recheck(parent, name)
    }

    fn close(&mut self, id: EntryId) {
        if self.open.as_ref().is_some_and(|open| open.id == id) {
            self.open = None;
        }
    }
}
