//! A tree in memory for a server of the file service: for tests and simulations, with faults on request.

use std::collections::{BTreeMap, BTreeSet};

use crate::failure::{FailCode, Failure};
use crate::integrity::Digest;
use crate::manifest::{EntryKind, Stamp};
use crate::path_rules::{Component, RelPath};
use crate::store::MemoryFile;

use super::answer::{FileVersion, ListPage, Written};
use super::entry::{FileInfo, ListedEntry, NodeKind};
use super::files::{Files, Finished, Progressing};
use super::request::{Existing, MakeDirectory, Move, Put, Remove, Removing};
use super::service_path::ServicePath;

/// A tree in memory.
#[derive(Clone, Debug, Default)]
pub struct MemoryFiles {
    /// The tree. Parents must be in it.
    pub tree: BTreeMap<RelPath, MemoryFile>,
    /// Bytes that it still takes; `None` for no limit.
    pub room: Option<u64>,
    /// Files that change while they are read.
    pub changing: BTreeSet<RelPath>,
    /// Directories that cannot be listed.
    pub locked: BTreeSet<RelPath>,
    /// Calls of [`Files::read`] so far.
    pub reads: u64,
    /// Most bytes of one read; zero for no limit.
    pub short_reads: usize,
}

/// An open file.
#[derive(Debug)]
pub struct MemoryReading {
    path: RelPath,
    content: Vec<u8>,
}

/// A file under way.
#[derive(Debug)]
pub struct MemoryWriting {
    path: RelPath,
    put: Put,
    content: Vec<u8>,
}

/// Work in steps of one entry.
#[derive(Debug)]
pub enum MemoryWork {
    /// Entries to remove, the next one last.
    Remove(Vec<RelPath>, u64),
    /// A file to copy.
    Copy(RelPath, Move),
}

impl MemoryFiles {
    /// These entries.
    pub const fn new(tree: BTreeMap<RelPath, MemoryFile>) -> Self {
        Self { tree, room: None, changing: BTreeSet::new(), locked: BTreeSet::new(), reads: 0, short_reads: 0 }
    }

    fn path(place: &ServicePath) -> Result<RelPath, Failure> {
        RelPath::parse(place.as_bytes()).map_err(|error| Failure::new(FailCode::NameRefused, error.to_string()))
    }

    fn find(&self, path: &RelPath) -> Result<&MemoryFile, Failure> {
        self.tree.get(path).ok_or_else(|| FailCode::NotFound.into())
    }

    fn is_directory(&self, path: &RelPath) -> bool {
        path.is_root() || self.tree.get(path).is_some_and(|file| file.kind == EntryKind::Directory)
    }

    fn below<'a>(&'a self, path: &'a RelPath) -> impl Iterator<Item = &'a RelPath> {
        let depth = path.components().len();
        let is_below = move |other: &&RelPath| {
            other.components().len() > depth && other.components()[..depth] == *path.components()
        };
        // They follow it.
        self.tree.range(path..).map(|(below, _)| below).filter(move |below| *below != path).take_while(is_below)
    }

    /// Checks the place of a new entry, and makes its parents.
    fn make_parents(&mut self, path: &RelPath, parents: bool, existing: Existing) -> Result<(), Failure> {
        let (_, above) = path.split_last().ok_or(FailCode::Exists)?;
        let mut at = RelPath::root();
        for name in above {
            at = at.join(name.clone()).map_err(|_| FailCode::NameRefused)?;
            match self.tree.get(&at) {
                Some(file) if file.kind == EntryKind::Directory => {}
                Some(_) => return Err(FailCode::NotDirectory.into()),
                None if parents => drop(self.tree.insert(at.clone(), MemoryFile::directory())),
                None => return Err(FailCode::NotFound.into()),
            }
        }
        match self.tree.get(path) {
            Some(_) if existing == Existing::Keep || self.is_directory(path) => Err(FailCode::Exists.into()),
            _ => Ok(()),
        }
    }
}

fn info(file: &MemoryFile) -> FileInfo {
    let kind = match file.kind {
        EntryKind::File => NodeKind::File,
        EntryKind::Directory => NodeKind::Directory,
        EntryKind::Symlink | EntryKind::HardLink => NodeKind::Other,
    };
    let owner = file.properties.as_ref().and_then(|properties| properties.owner.clone());
    FileInfo {
        kind,
        size: file.content.len() as u64,
        mode: file.mode,
        mtime: file.mtime,
        ctime: Some(file.mtime),
        target: None,
        owner,
    }
}

impl Files for MemoryFiles {
    type Reading = MemoryReading;
    type Writing = MemoryWriting;
    type Work = MemoryWork;

    fn stat(&mut self, place: &ServicePath) -> Result<FileInfo, Failure> {
        let path = Self::path(place)?;
        if path.is_root() { Ok(info(&MemoryFile::directory())) } else { self.find(&path).map(info) }
    }

    fn list(&mut self, place: &ServicePath, below: &RelPath, cursor: &[u8], most: usize) -> Result<ListPage, Failure> {
        let mut path = Self::path(place)?;
        for name in below.components() {
            path.push(name.clone()).map_err(|_| FailCode::NameRefused)?;
        }
        if self.locked.contains(&path) {
            return Err(FailCode::PermissionDenied.into());
        }
        if !self.is_directory(&path) {
            self.find(&path)?;
            return Err(FailCode::NotDirectory.into());
        }
        let depth = path.components().len();
        let names: BTreeSet<&Component> = self
            .below(&path)
            .filter(|below| below.components().len() == depth + 1)
            .filter_map(|below| below.components().last())
            .filter(|name| name.as_bytes() > cursor)
            .collect();
        let is_last = names.len() <= most;
        let mut page = ListPage::default();
        for name in names.into_iter().take(most) {
            let path = path.join(name.clone()).map_err(|_| FailCode::NameRefused)?;
            page.entries.push(ListedEntry { name: name.clone(), info: info(self.find(&path)?) });
        }
        if !is_last {
            page.next = page.entries.last().map(|entry| entry.name.as_bytes().to_vec()).unwrap_or_default();
        }
        Ok(page)
    }

    fn open(&mut self, place: &ServicePath) -> Result<MemoryReading, Failure> {
        let path = Self::path(place)?;
        if self.is_directory(&path) {
            return Err(FailCode::IsDirectory.into());
        }
        let content = self.find(&path)?.content.clone();
        Ok(MemoryReading { path, content })
    }

    fn version(&mut self, file: &mut MemoryReading) -> Result<(FileVersion, bool), Failure> {
        let mtime = self.find(&file.path).map(|file| file.mtime).unwrap_or_default();
        let stamp = Stamp { size: file.content.len() as u64, mtime };
        Ok((FileVersion { stamp, ctime: Some(mtime) }, self.changing.contains(&file.path)))
    }

    fn read(&mut self, file: &mut MemoryReading, offset: u64, out: &mut [u8]) -> Result<usize, Failure> {
        self.reads += 1;
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(file.content.len());
        let most = if self.short_reads > 0 { self.short_reads } else { out.len() };
        let count = out.len().min(most).min(file.content.len() - from);
        out[..count].copy_from_slice(&file.content[from..from + count]);
        Ok(count)
    }

    fn create(&mut self, put: &Put) -> Result<MemoryWriting, Failure> {
        let path = Self::path(&put.place)?;
        self.make_parents(&path, put.parents, put.existing)?;
        Ok(MemoryWriting { path, put: put.clone(), content: Vec::new() })
    }

    fn write(&mut self, file: &mut MemoryWriting, bytes: &[u8]) -> Result<(), Failure> {
        if let Some(room) = &mut self.room {
            *room = room.checked_sub(bytes.len() as u64).ok_or(FailCode::NoSpace)?;
        }
        file.content.extend_from_slice(bytes);
        Ok(())
    }

    fn commit(&mut self, file: MemoryWriting, _: &Digest) -> Result<(), Failure> {
        let MemoryWriting { path, put, content } = file;
        self.make_parents(&path, false, put.existing)?;
        let mtime = put.mtime.unwrap_or_default();
        self.tree.insert(path, MemoryFile { mode: put.mode, mtime, ..MemoryFile::file(content) });
        Ok(())
    }

    fn make_directory(&mut self, request: &MakeDirectory) -> Result<bool, Failure> {
        let path = Self::path(&request.place)?;
        if request.parents && self.is_directory(&path) {
            return Ok(false);
        }
        self.make_parents(&path, request.parents, Existing::Keep)?;
        self.tree.insert(path, MemoryFile::directory());
        Ok(true)
    }

    fn rename(&mut self, places: &Move) -> Result<(), Failure> {
        let (from, to) = (Self::path(&places.from)?, Self::path(&places.to)?);
        self.find(&from)?;
        self.make_parents(&to, places.parents, places.existing)?;
        let moved: Vec<RelPath> = self.below(&from).cloned().chain([from.clone()]).collect();
        for path in moved {
            let Some(file) = self.tree.remove(&path) else { continue };
            let mut new = to.clone();
            for name in &path.components()[from.components().len()..] {
                new.push(name.clone()).map_err(|_| FailCode::NameRefused)?;
            }
            self.tree.insert(new, file);
        }
        Ok(())
    }

    fn remove(&mut self, request: &Remove) -> Result<MemoryWork, Failure> {
        let path = Self::path(&request.place)?;
        let is_directory = self.is_directory(&path);
        self.find(&path)?;
        let mut all: Vec<RelPath> = vec![path.clone()];
        match request.removing {
            Removing::File if is_directory => return Err(FailCode::IsDirectory.into()),
            Removing::EmptyDirectory if !is_directory => return Err(FailCode::NotDirectory.into()),
            Removing::Tree(_) => all.extend(self.below(&path).cloned()),
            _ if self.below(&path).next().is_some() => return Err(FailCode::NotEmpty.into()),
            _ => {}
        }
        let most = if let Removing::Tree(most) = request.removing { most } else { 1 };
        Ok(MemoryWork::Remove(all, most))
    }

    fn copy(&mut self, places: &Move) -> Result<MemoryWork, Failure> {
        let (from, to) = (Self::path(&places.from)?, Self::path(&places.to)?);
        if self.is_directory(&from) {
            return Err(FailCode::IsDirectory.into());
        }
        self.find(&from)?;
        self.make_parents(&to, places.parents, places.existing)?;
        Ok(MemoryWork::Copy(from, places.clone()))
    }

    fn step(&mut self, work: &mut MemoryWork) -> Result<Progressing, Failure> {
        match work {
            MemoryWork::Remove(all, most) => {
                let removed = |all: &Vec<RelPath>, tree: &BTreeMap<RelPath, MemoryFile>| {
                    all.iter().filter(|path| !tree.contains_key(path)).count() as u64
                };
                let done = removed(all, &self.tree);
                match all.iter().rev().find(|path| self.tree.contains_key(path)) {
                    None => return Ok(Progressing::Done(Finished::Removed(done))),
                    Some(_) if done >= *most => return Err(FailCode::Limit.into()),
                    Some(path) => drop(self.tree.remove(&path.clone())),
                }
                Ok(Progressing::More)
            }
            MemoryWork::Copy(from, places) => {
                let file = self.find(from)?.clone();
                let to = Self::path(&places.to)?;
                self.make_parents(&to, false, places.existing)?;
                let written = Written { size: file.content.len() as u64, digest: Some(Digest::of(&file.content)) };
                self.tree.insert(to, file);
                Ok(Progressing::Done(Finished::Copied(written)))
            }
        }
    }
}
