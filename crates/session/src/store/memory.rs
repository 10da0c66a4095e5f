//! A tree in memory as source and store, for tests and simulations, with faults on request.

use std::collections::BTreeMap;

use super::{Chunk, Commit, Ending, Leftover, Next, Source, Store};
use crate::failure::{FailCode, Failure};
use crate::figures::Figures;
use crate::integrity::Digest;
use crate::manifest::{Entry, EntryId, EntryKind, Mtime, ShownPath, Stamp};
use crate::path_rules::RelPath;

/// A file or directory of a [`MemorySource`] or [`MemoryStore`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryFile {
    /// File or directory.
    pub kind: EntryKind,
    /// Content of a file.
    pub content: Vec<u8>,
    /// Permission bits.
    pub mode: u32,
    /// When it last changed.
    pub mtime: Mtime,
}

impl MemoryFile {
    /// A file with this content.
    pub const fn file(content: Vec<u8>) -> Self {
        Self { kind: EntryKind::File, content, mode: 0o644, mtime: Mtime { seconds: 1, nanos: 5 } }
    }

    /// A directory.
    pub const fn directory() -> Self {
        Self { kind: EntryKind::Directory, content: Vec::new(), mode: 0o755, mtime: Mtime { seconds: 2, nanos: 7 } }
    }
}

/// A tree to send, walked in the order of its paths, which is the protocol's order.
#[derive(Clone, Debug, Default)]
pub struct MemorySource {
    /// The tree. Parents must be in it.
    pub tree: BTreeMap<RelPath, MemoryFile>,
    /// Items reported as impossible to send, before all others.
    pub skipped: Vec<(ShownPath, Failure)>,
    /// Files whose time changes after they were opened.
    pub touched: Vec<RelPath>,
    /// Files of unknown size.
    pub streamed: Vec<RelPath>,
    /// Files that end early, with their end.
    pub truncated: BTreeMap<RelPath, usize>,
    /// Files that cannot be read beyond an offset.
    pub unreadable: BTreeMap<RelPath, u64>,
    /// Figures of this side for the peer.
    pub figures: Figures,
    pub(crate) last: Option<RelPath>,
    pub(crate) open: Option<(EntryId, RelPath)>,
}

impl MemorySource {
    /// A source of this tree, without faults.
    pub fn new(tree: BTreeMap<RelPath, MemoryFile>) -> Self {
        Self { tree, ..Self::default() }
    }

    /// Whether no file is open.
    pub const fn is_idle(&self) -> bool {
        self.open.is_none()
    }

    fn opened(&self, id: EntryId) -> &RelPath {
        let (open, path) = self.open.as_ref().expect("sessions read only what is open");
        assert_eq!(*open, id, "sessions read only the file that they opened last");
        path
    }
}

impl Source for MemorySource {
    fn next_entry(&mut self, id: EntryId) -> Next {
        assert!(self.open.is_none(), "sessions close a file before they go on");
        if let Some((path, failure)) = self.skipped.pop() {
            return Next::Skipped(path, failure);
        }
        let after = match &self.last {
            Some(last) => (std::ops::Bound::Excluded(last.clone()), std::ops::Bound::Unbounded),
            None => (std::ops::Bound::Unbounded, std::ops::Bound::Unbounded),
        };
        let Some((path, file)) = self.tree.range(after).next() else { return Next::End };
        self.last = Some(path.clone());
        if file.kind == EntryKind::File {
            self.open = Some((id, path.clone()));
        }
        let size = match self.streamed.contains(path) {
            true => Entry::UNKNOWN_SIZE,
            false => u64::try_from(file.content.len()).expect("fits"),
        };
        Next::Entry(Entry { path: path.clone(), kind: file.kind, size, mode: file.mode, mtime: file.mtime })
    }

    fn read(&mut self, id: EntryId, offset: u64, out: &mut [u8]) -> Result<Chunk, Failure> {
        assert!(!out.is_empty(), "sessions never ask for nothing");
        let path = self.opened(id);
        if self.unreadable.get(path).is_some_and(|&end| offset >= end) {
            return Err(Failure::new(FailCode::Io, "read error"));
        }
        let content = &self.tree[path].content;
        let end = self.truncated.get(path).map_or(content.len(), |&end| end.min(content.len()));
        let start = usize::try_from(offset).expect("fits").min(end);
        let count = out.len().min(end - start);
        out[..count].copy_from_slice(&content[start..start + count]);
        Ok(if count == 0 { Chunk::End } else { Chunk::Data(count) })
    }

    fn recheck(&mut self, id: EntryId) -> Result<Stamp, Failure> {
        let path = self.opened(id);
        let file = &self.tree[path];
        let mut stamp = Stamp { size: u64::try_from(file.content.len()).expect("fits"), mtime: file.mtime };
        if self.touched.contains(path) {
            stamp.mtime.seconds += 1;
        }
        Ok(stamp)
    }

    fn figures(&mut self) -> Figures {
        self.figures
    }

    fn close(&mut self, id: EntryId) {
        self.opened(id);
        self.open = None;
    }
}

/// A received tree.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    /// Files and directories with final names.
    pub tree: BTreeMap<RelPath, MemoryFile>,
    /// Content of files with temporary names.
    pub partial: BTreeMap<RelPath, Vec<u8>>,
    /// Bytes that fit. More fail with [`FailCode::NoSpace`].
    pub capacity: Option<u64>,
    /// Paths that cannot be created.
    pub forbidden: Vec<RelPath>,
    /// Paths whose commit fails, at once or later.
    pub uncommittable: Vec<RelPath>,
    /// Commits take effect only when [`MemoryStore::settle`] is called. Until then, writes count as backlog.
    pub deferred: bool,
    /// Figures of this side for the peer.
    pub figures: Figures,
    /// Settles deferred commits at the end of a session without a call.
    pub settles_itself: bool,
    /// How the last session ended, once it has.
    pub ending: Option<Ending>,
    pub(crate) used: u64,
    pub(crate) backlog: u64,
    pub(crate) open: BTreeMap<EntryId, (RelPath, Vec<u8>)>,
    pub(crate) queued: Vec<(EntryId, RelPath, MemoryFile)>,
    pub(crate) settled: Vec<(EntryId, Result<(), Failure>)>,
}

impl MemoryStore {
    /// Whether no temporary file is open and nothing waits.
    pub fn is_idle(&self) -> bool {
        self.open.is_empty() && self.queued.is_empty() && self.settled.is_empty()
    }

    /// Performs all deferred commits.
    pub fn settle(&mut self) {
        self.backlog = 0;
        for (id, path, file) in std::mem::take(&mut self.queued) {
            let outcome = self.replace(path, file);
            self.settled.push((id, outcome));
        }
    }

    fn allowed(&self, entry: &Entry) -> Result<(), Failure> {
        if self.forbidden.contains(&entry.path) {
            return Err(FailCode::PermissionDenied.into());
        }
        match self.tree.get(&entry.path) {
            Some(there) if there.kind != entry.kind => Err(FailCode::Exists.into()),
            _ => Ok(()),
        }
    }

    fn replace(&mut self, path: RelPath, file: MemoryFile) -> Result<(), Failure> {
        if self.uncommittable.contains(&path) {
            return Err(Failure::new(FailCode::Io, "cannot synchronise"));
        }
        self.tree.insert(path, file);
        Ok(())
    }

    fn place(&mut self, id: EntryId, entry: &Entry, content: Vec<u8>) -> Result<Commit, Failure> {
        let file = MemoryFile { kind: entry.kind, content, mode: entry.mode, mtime: entry.mtime };
        if self.deferred {
            self.queued.push((id, entry.path.clone(), file));
            return Ok(Commit::Pending);
        }
        self.replace(entry.path.clone(), file).map(|()| Commit::Done)
    }
}

impl Store for MemoryStore {
    fn make_dir(&mut self, _: EntryId, entry: &Entry) -> Result<(), Failure> {
        self.allowed(entry)?;
        self.tree.entry(entry.path.clone()).or_insert_with(|| MemoryFile { mode: 0o700, ..MemoryFile::directory() });
        Ok(())
    }

    fn begin(&mut self, id: EntryId, entry: &Entry) -> Result<(), Failure> {
        self.allowed(entry)?;
        assert!(self.open.insert(id, (entry.path.clone(), Vec::new())).is_none(), "ids are never reused");
        Ok(())
    }

    fn write(&mut self, id: EntryId, offset: u64, bytes: &[u8]) -> Result<(), Failure> {
        let (_, content) = self.open.get_mut(&id).expect("sessions write only to open files");
        assert_eq!(offset, u64::try_from(content.len()).expect("fits"), "offsets ascend without gaps");
        let more = u64::try_from(bytes.len()).expect("fits");
        if self.capacity.is_some_and(|capacity| self.used + more > capacity) {
            return Err(Failure::new(FailCode::NoSpace, "memory store is full"));
        }
        self.used += more;
        self.backlog += if self.deferred { more } else { 0 };
        content.extend_from_slice(bytes);
        Ok(())
    }

    fn commit(&mut self, id: EntryId, entry: &Entry, digest: &Digest) -> Result<Commit, Failure> {
        let (_, content) = self.open.remove(&id).expect("sessions commit only open files");
        assert_eq!(*digest, Digest::of(&content), "sessions commit only what they verified");
        self.place(id, entry, content)
    }

    fn finish_dir(&mut self, id: EntryId, entry: &Entry) -> Result<Commit, Failure> {
        self.place(id, entry, Vec::new())
    }

    fn abort(&mut self, id: EntryId, leftover: Leftover) {
        let (path, content) = self.open.remove(&id).expect("sessions abort only open files");
        if leftover == Leftover::Keep {
            self.partial.insert(path, content);
        }
    }

    fn figures(&mut self) -> Figures {
        self.figures
    }

    fn conclude(&mut self, ending: Ending) {
        self.ending = Some(ending);
    }

    fn settle(&mut self) {
        if self.settles_itself {
            Self::settle(self);
        }
    }

    fn backlog(&self) -> u64 {
        self.backlog
    }

    fn poll_committed(&mut self) -> Option<(EntryId, Result<(), Failure>)> {
        self.settled.pop()
    }
}
