//! A source that reads a tree from the disk.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use farhaul_session::{
    Chunk, Component, Entry, EntryId, EntryKind, FailCode, Failure, Kept, Listed, Mtime, NameList, Next, PathError,
    PendingEntries, Properties, RelPath, Rules, Shard, ShownPath, Source, Stamp,
};
use rustix::fs::{FileType, Stat};

use super::by_names::{ByNames, why_impassable};
use super::directory::{Directory, kind, mtime, now, stamp_now};
use super::directory_handles::DirectoryHandles;
use super::failure::{failure, io_failure};
use super::filters::Filters;
use super::properties::{Reader, mode_of};
use super::requested_entry::{RequestedEntry, names_to_send};
use super::selection::{Selection, Wording};
use super::source_file::{FileState, SourceFile, is_sparse, size};
use super::target::words;

/// Pause between looks at the kernel's clock.
const LOOK: Duration = Duration::from_micros(500);

/// Files and directories to send, walked depth first in ascending order of names.
///
/// Devices, pipes and sockets are skipped and reported, and so are symbolic links unless the copy keeps them. Directories are
/// sent without incomplete files, which [`DiskStore`](super::DiskStore) names with a suffix. An incomplete file requested by its
/// own name is sent.
///
/// The walk runs ahead of the content of files, and each file is opened when its content is sent. At most seven descriptors are
/// open, regardless of the depth of the tree and the number of paths.
#[derive(Debug)]
pub struct DiskSource {
    recursive: bool,
    /// The names that the copy is restricted to.
    by_names: Option<ByNames>,
    keep: Kept,
    filters: Filters,
    /// The part of the files that is sent. Directories are in every part.
    shard: Option<Shard>,
    reader: Reader,
    /// When the source was created, and whether it skips younger directories.
    began: Mtime,
    leaves_out_younger: bool,
    /// Sources that cannot be sent, the next one last. They are reported first.
    refused: Vec<(ShownPath, Failure)>,
    /// The requested entries still to come, in descending order: the next one is last.
    requested: Vec<RequestedEntry>,
    /// The requested directory being walked.
    tree: Option<Tree>,
    /// Files announced whose last answer is missing.
    places: PendingEntries<FilePlace>,
    /// The directory of the file opened last.
    parent: Option<(ParentPlace, Arc<Directory>)>,
    /// Files with several names, by device and inode, as far as the walk met them. `None` for those of other parts.
    first_names: BTreeMap<(u64, u64), Option<EntryId>>,
    open: Option<OpenFile>,
}

/// The place of a file.
#[derive(Debug)]
struct FilePlace {
    parent: ParentPlace,
    name: Component,
    /// The state in which the walk met it, if it is [small](SourceFile::is_small). The first attempt to read it goes without a look.
    listed: Option<FileState>,
}

/// The place of a directory with files: that of a requested entry, or one below it.
#[derive(Clone, Debug)]
struct ParentPlace {
    requested: Arc<RequestedEntry>,
    /// The path below the requested directory; `None` for the directory with the requested entry itself.
    below: Option<Arc<RelPath>>,
}

/// A requested directory with its content.
#[derive(Debug)]
struct Tree {
    requested: Arc<RequestedEntry>,
    handles: DirectoryHandles,
    /// The directories entered, outermost first. The first one is its root.
    levels: Vec<Level>,
}

#[derive(Debug)]
struct Level {
    path: RelPath,
    /// The same below the requested directory.
    below: Arc<RelPath>,
    /// Names still to come, in descending order.
    rest: Vec<Component>,
}

/// The next entry, and its path in the copy.
#[derive(Debug)]
struct Step {
    parent: Result<Arc<Directory>, Failure>,
    place: ParentPlace,
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

    /// These names in the directory `base`, and their parent directories. With `recursive`, also the content of
    /// directories among them. A name that does not exist is reported.
    ///
    /// # Errors
    /// `base` is no directory that can be opened, or its content is named and cannot be read.
    pub fn by_names(base: &Path, names: Arc<NameList>, recursive: bool) -> io::Result<Self> {
        let by_names = ByNames::named(base, names, recursive)?;
        let mut requested = by_names.top()?;
        requested.reverse();
        Ok(Self { by_names: Some(by_names), ..Self::of(Selection { recursive, refused: Vec::new(), requested }) })
    }

    /// The same for names that a peer sends, to [`restrict`](Source::restrict). It has nothing to send before.
    ///
    /// # Errors
    /// `base` is no directory that can be opened.
    pub fn by_names_later(base: &Path, recursive: bool) -> io::Result<Self> {
        Ok(Self::awaiting(ByNames::named_later(base, recursive)?, recursive))
    }

    /// The same for a directory below `root`. No link is followed.
    ///
    /// # Errors
    /// `base` is no directory that can be opened.
    pub fn by_names_beneath(root: &Directory, base: &RelPath, recursive: bool) -> io::Result<Self> {
        Ok(Self::awaiting(ByNames::beneath_later(root, base, recursive)?, recursive))
    }

    fn awaiting(by_names: ByNames, recursive: bool) -> Self {
        let selection = Selection { recursive, refused: Vec::new(), requested: Vec::new() };
        Self { by_names: Some(by_names), ..Self::of(selection) }
    }

    /// The entries of a selection.
    pub fn of(selection: Selection) -> Self {
        let Selection { recursive, mut refused, requested } = selection;
        refused.reverse();
        Self {
            recursive,
            by_names: None,
            keep: Kept::default(),
            filters: Filters::default(),
            shard: None,
            reader: Reader::default(),
            began: now(),
            leaves_out_younger: false,
            refused,
            requested,
            tree: None,
            places: PendingEntries::default(),
            parent: None,
            first_names: BTreeMap::new(),
            open: None,
        }
    }

    /// The same under these rules.
    ///
    /// # Errors
    /// A filter is no pattern. The message names it.
    pub fn under_rules(mut self, rules: &Rules) -> Result<Self, String> {
        self.filters = Filters::of(&rules.filters)?;
        self.shard = rules.shard;
        self.keep = rules.keep;
        self.reader = Reader::of(rules.keep);
        Ok(self)
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
            std::thread::park_timeout(LOOK);
        }
    }

    fn next_step(&mut self) -> Option<Step> {
        if let Some(step) = self.tree.as_mut().and_then(Tree::next_step) {
            return Some(step);
        }
        self.tree = None;
        let entry = Arc::new(self.requested.pop()?);
        let parent = entry.parent().map(Arc::new).map_err(|error| io_failure("open its directory", &error));
        let path = RelPath::root().join(entry.sent_as.clone()).map_err(|error| (ShownPath::default(), error));
        let name = entry.name.clone();
        Some(Step { parent, place: ParentPlace { requested: entry, below: None }, name, path })
    }

    /// The entry at a path, which it takes. `None` if it takes no part in the copy.
    fn enter(
        &mut self,
        id: EntryId,
        parent: Arc<Directory>,
        (place, name): (ParentPlace, Component),
        path: &mut RelPath,
    ) -> Result<Option<Entry>, Failure> {
        let stat = parent.stat(&name).map_err(|error| failure("read", error))?;
        if self.filters.leave_out(path, kind(&stat) == FileType::Directory) {
            return Ok(None);
        }
        if let Some(by_names) = self.by_names.as_mut().filter(|_| kind(&stat) != FileType::Directory) {
            let failure = Failure::new(FailCode::NotFound, why_impassable(path, kind(&stat)));
            by_names.cannot_pass(path, failure);
            if by_names.place_of(path) == Listed::Above {
                return Ok(None);
            }
        }
        let mut is_sent = self.is_in_part(path);
        let mut has_links = false;
        if kind(&stat) == FileType::RegularFile && self.keep.hard_links && stat.st_nlink > 1 {
            // All names of a file are in the part of the first one. Every run meets them in the same order.
            let first = *self.first_names.entry((stat.st_dev, stat.st_ino)).or_insert(is_sent.then_some(id));
            if let Some(first) = first.filter(|first| *first != id) {
                let properties = Properties { first_name: Some(first), ..Properties::default() };
                return Ok(Some(self.entry(path, EntryKind::HardLink, 0, &stat, Some(properties))));
            }
            (is_sent, has_links) = (first.is_some(), true);
        }
        if !is_sent && kind(&stat) != FileType::Directory {
            return Ok(None);
        }
        let properties = || self.reader.properties(&parent, &name, &stat);
        match kind(&stat) {
            FileType::RegularFile => {
                let mut properties = properties().inspect_err(|_| {
                    // The next entry gets its number, and its other names would be links to that one.
                    self.first_names.remove(&(stat.st_dev, stat.st_ino));
                })?;
                if has_links {
                    properties.get_or_insert_default().has_links = true;
                }
                if is_sparse(&stat) {
                    properties.get_or_insert_default().is_sparse = true;
                }
                let listed = SourceFile::is_small(&stat).then(|| FileState::of(&stat));
                self.places.insert(id, FilePlace { parent: place, name, listed });
                Ok(Some(self.entry(path, EntryKind::File, size(&stat), &stat, properties)))
            }
            FileType::Symlink if self.keep.symlinks => {
                let link_target = parent.link_target(&name).map_err(|error| failure("read", error))?;
                let properties = Properties { link_target, ..properties()?.unwrap_or_default() };
                Ok(Some(self.entry(path, EntryKind::Symlink, 0, &stat, Some(properties))))
            }
            FileType::Directory if self.recursive || self.by_names.is_some() => {
                let properties = properties()?;
                self.enter_directory(&parent, (place, name), path)?;
                Ok(Some(self.entry(path, EntryKind::Directory, 0, &stat, properties)))
            }
            FileType::Directory => Err(FailCode::IsDirectory.into()),
            kind => Err(Failure::new(FailCode::SpecialFile, words(kind))),
        }
    }

    /// Whether a path is in the part of the files that is sent.
    fn is_in_part(&self, path: &RelPath) -> bool {
        self.shard.is_none_or(|shard| shard.has(path))
    }

    /// The next name of a list that cannot be sent, because a parent directory of it cannot be passed.
    fn next_lacking(&mut self) -> Option<(ShownPath, Failure)> {
        self.by_names.as_mut()?.next_lacking(self.shard)
    }

    /// An entry, which takes the path.
    fn entry(
        &self,
        path: &mut RelPath,
        kind: EntryKind,
        size: u64,
        stat: &Stat,
        properties: Option<Properties>,
    ) -> Entry {
        let entry = Entry::new(std::mem::take(path), kind, size, mode_of(stat, self.keep), mtime(stat));
        Entry { properties: properties.map(Box::new), ..entry }
    }

    fn enter_directory(
        &mut self,
        parent: &Directory,
        (place, name): (ParentPlace, Component),
        path: &RelPath,
    ) -> Result<(), Failure> {
        let directory = parent.child(&name).map_err(|error| failure("open", error))?;
        let rest = match &self.by_names {
            Some(by_names) => by_names.content(path, &directory),
            None => names_to_send(&directory),
        };
        let mut rest = rest.map_err(|error| io_failure("open", &error))?;
        if self.leaves_out_younger && directory.made().is_some_and(|made| made > self.began) {
            let message = "it was made after the copy began; does the target lie in the source?";
            return Err(Failure::new(FailCode::SourceChanged, message));
        }
        rest.reverse();
        let path = path.clone();
        match &mut self.tree {
            Some(tree) => {
                let below = place.below.as_deref().cloned().unwrap_or_default().join(name.clone());
                let below = below.map_err(|error| Failure::new(FailCode::NameRefused, error.to_string()))?;
                tree.handles.enter(name, directory);
                tree.levels.push(Level { path, below: Arc::new(below), rest });
            }
            None => {
                let levels = vec![Level { path, below: Arc::default(), rest }];
                self.tree =
                    Some(Tree { requested: place.requested, handles: DirectoryHandles::new(directory), levels });
            }
        }
        Ok(())
    }

    /// The directory of a file. Files of one directory follow each other, so the last one is kept.
    fn parent(&mut self, place: &ParentPlace) -> Result<Arc<Directory>, Failure> {
        if let Some((_, directory)) = self.parent.as_ref().filter(|(its, _)| its.is_same(place)) {
            return Ok(Arc::clone(directory));
        }
        let parent = place.requested.parent();
        let opened = match &place.below {
            None => parent,
            Some(below) => {
                parent.and_then(|parent| Ok(parent.child(&place.requested.name)?.descend_along(below.components())?))
            }
        };
        let directory = Arc::new(opened.map_err(|error| io_failure("open its directory", &error))?);
        self.parent = Some((place.clone(), Arc::clone(&directory)));
        Ok(directory)
    }

    fn opened(&mut self, id: EntryId) -> Result<&mut OpenFile, Failure> {
        self.open.as_mut().filter(|open| open.id == id).ok_or_else(|| Failure::new(FailCode::Io, "it is not open"))
    }
}

impl ParentPlace {
    fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.requested, &other.requested) && self.below == other.below
    }
}

impl Tree {
    /// The next name in the innermost directory that has one.
    fn next_step(&mut self) -> Option<Step> {
        let (path, below, name) = loop {
            let level = self.levels.last_mut()?;
            if let Some(name) = level.rest.pop() {
                break (&level.path, Arc::clone(&level.below), name);
            }
            self.levels.pop();
        };
        let place = ParentPlace { requested: Arc::clone(&self.requested), below: Some(below) };
        let path = path.join(name.clone()).map_err(|error| {
            let shown = [&path.to_bytes(), b"/".as_slice(), name.as_bytes()].concat();
            (ShownPath::new(&shown), error)
        });
        self.handles.leave_to(self.levels.len() - 1);
        let parent = self.handles.here().map_err(|lost| lost.failure(FailCode::SourceChanged));
        Some(Step { parent, place, name, path })
    }
}

impl Source for DiskSource {
    fn restrict(&mut self, names: NameList) {
        let Some(by_names) = &mut self.by_names else { return };
        by_names.restrict(names);
        match by_names.top() {
            Ok(entries) => self.requested.extend(entries.into_iter().rev()),
            Err(error) => self.refused.push((ShownPath::new(b"."), io_failure("open", &error))),
        }
    }

    fn next_entry(&mut self, id: EntryId) -> Next {
        if let Some((path, failure)) = self.refused.pop() {
            return Next::Skipped(path, failure);
        }
        if let Some((path, failure)) = self.next_lacking() {
            return Next::Skipped(path, failure);
        }
        loop {
            let Some(Step { parent, place, name, path }) = self.next_step() else { return Next::End };
            let mut path = match path {
                Ok(path) => path,
                Err((shown, error)) => {
                    return Next::Skipped(shown, Failure::new(FailCode::NameRefused, error.to_string()));
                }
            };
            match parent.and_then(|parent| self.enter(id, parent, (place, name), &mut path)) {
                Ok(Some(entry)) => return Next::Entry(entry),
                // It takes no part.
                Ok(None) => {}
                // A copy of a whole tree has everything that a copy can have.
                Err(failure) if failure.code == FailCode::SpecialFile && self.keep.symlinks => {
                    return Next::LeftOut(ShownPath::from(&path), failure);
                }
                Err(failure) => {
                    // The run that would have sent it reports that it is missing. Any other failure may hinder this run.
                    let is_told = failure.code != FailCode::NotFound || self.is_in_part(&path);
                    let mut is_above = false;
                    if let Some(by_names) = &mut self.by_names {
                        by_names.cannot_pass(&path, failure.clone());
                        is_above = by_names.place_of(&path) == Listed::Above;
                    }
                    if is_told && !is_above {
                        return Next::Skipped(ShownPath::from(&path), failure);
                    }
                }
            }
            if let Some((path, failure)) = self.next_lacking() {
                return Next::Skipped(path, failure);
            }
        }
    }

    fn open(&mut self, id: EntryId) -> Result<Stamp, Failure> {
        let place = self.places.get_mut(id).ok_or_else(|| Failure::new(FailCode::Io, "it is not announced"))?;
        let (place, name, listed) = (place.parent.clone(), place.name.clone(), place.listed.take());
        let parent = self.parent(&place)?;
        let file = match listed {
            Some(before) => SourceFile::open_listed(&parent, &name, before)?,
            None => SourceFile::open(&parent, &name)?,
        };
        let stamp = file.stamp();
        self.open = Some(OpenFile { id, parent, name, file });
        Ok(stamp)
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

    fn forget(&mut self, id: EntryId) {
        self.places.remove(id);
    }
}
