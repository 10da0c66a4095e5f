//! A tree in memory as source and store, for tests and simulations, with faults on request.

use std::collections::{BTreeMap, BTreeSet};

use super::{Change, Chunk, Commit, Ending, KnownChunk, Leftover, Made, Next, Source, Store, Verdict};
use crate::failure::{FailCode, Failure};
use crate::figures::Figures;
use crate::integrity::{CHUNK_LEN, Digest, chunk_count};
use crate::manifest::{Entry, EntryId, EntryKind, Mtime, Properties, ShownPath, Stamp};
use crate::name_list::{Listed, NameList};
use crate::path_rules::RelPath;
use crate::scratch::{MemoryScratch, Scratch};

/// Bytes of a hole.
const HOLE: usize = 4096;

/// An entry of a [`MemorySource`] or [`MemoryStore`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryFile {
    /// File, directory or link.
    pub kind: EntryKind,
    /// Content of a file.
    pub content: Vec<u8>,
    /// Permission bits.
    pub mode: u32,
    /// When it last changed.
    pub mtime: Mtime,
    /// What a copy may keep besides.
    pub properties: Option<Properties>,
}

impl MemoryFile {
    /// A file with this content.
    pub const fn file(content: Vec<u8>) -> Self {
        Self { kind: EntryKind::File, content, mode: 0o644, mtime: Mtime { seconds: 1, nanos: 5 }, properties: None }
    }

    /// A directory.
    pub const fn directory() -> Self {
        let mtime = Mtime { seconds: 2, nanos: 7 };
        Self { kind: EntryKind::Directory, content: Vec::new(), mode: 0o755, mtime, properties: None }
    }
}

/// A tree to send, walked in the order of its paths, which is the protocol's order.
#[derive(Clone, Debug, Default)]
pub struct MemorySource {
    /// The tree. Parents must be in it.
    pub tree: BTreeMap<RelPath, MemoryFile>,
    /// Items reported as impossible to send, before all others.
    pub skipped: Vec<(ShownPath, Failure)>,
    /// Items that are left out, before all others.
    pub left_out: Vec<(ShownPath, Failure)>,
    /// Files whose time changes after they were opened.
    pub touched: Vec<RelPath>,
    /// Files of unknown size.
    pub streamed: Vec<RelPath>,
    /// Files that are rewritten when they have been read once, and their new state.
    pub rewritten: BTreeMap<RelPath, MemoryFile>,
    /// Files that end early, with their end.
    pub truncated: BTreeMap<RelPath, usize>,
    /// Files that cannot be opened.
    pub closed: Vec<RelPath>,
    /// Files that cannot be read beyond an offset.
    pub unreadable: BTreeMap<RelPath, u64>,
    /// Figures of this side for the peer.
    pub figures: Figures,
    /// Files with holes: all zeros in pieces of 4 KiB are such.
    pub sparse: Vec<RelPath>,
    pub(crate) last: Option<RelPath>,
    pub(crate) known: BTreeMap<EntryId, RelPath>,
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

    fn size(&self, path: &RelPath) -> u64 {
        if self.streamed.contains(path) { Entry::UNKNOWN_SIZE } else { self.tree[path].content.len() as u64 }
    }

    /// Entries of which the receiver has not given its last answer.
    pub fn remembered(&self) -> usize {
        self.known.len()
    }
}

impl Source for MemorySource {
    fn restrict(&mut self, names: NameList) {
        self.tree.retain(|path, _| names.place_of(path, true) != Listed::Outside);
    }

    fn next_entry(&mut self, id: EntryId) -> Next {
        if let Some((path, failure)) = self.skipped.pop() {
            return Next::Skipped(path, failure);
        }
        if let Some((path, failure)) = self.left_out.pop() {
            return Next::LeftOut(path, failure);
        }
        let after = match &self.last {
            Some(last) => (std::ops::Bound::Excluded(last.clone()), std::ops::Bound::Unbounded),
            None => (std::ops::Bound::Unbounded, std::ops::Bound::Unbounded),
        };
        let Some((path, file)) = self.tree.range(after).next() else { return Next::End };
        self.last = Some(path.clone());
        if file.kind == EntryKind::File {
            self.known.insert(id, path.clone());
        }
        let size = if file.kind == EntryKind::File { self.size(path) } else { 0 };
        let properties = file.properties.clone().map(Box::new);
        Next::Entry(Entry { path: path.clone(), kind: file.kind, size, mode: file.mode, mtime: file.mtime, properties })
    }

    fn open(&mut self, id: EntryId) -> Result<Stamp, Failure> {
        assert!(self.open.is_none(), "sessions close a file before they go on");
        let path = self.known.get(&id).expect("sessions open only what they announced and nobody answered").clone();
        if self.closed.contains(&path) {
            return Err(FailCode::PermissionDenied.into());
        }
        let stamp = Stamp { size: self.size(&path), mtime: self.tree[&path].mtime };
        self.open = Some((id, path));
        Ok(stamp)
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
        let mut count = out.len().min(end - start);
        if self.sparse.contains(path) && count > 0 {
            let piece = HOLE - start % HOLE;
            count = count.min(piece);
            if content[start..(start + piece).min(end)].iter().all(|&byte| byte == 0) {
                return Ok(Chunk::Zeros(piece.min(end - start) as u64));
            }
        }
        out[..count].copy_from_slice(&content[start..start + count]);
        Ok(if count == 0 { Chunk::End } else { Chunk::Data(count) })
    }

    fn recheck(&mut self, id: EntryId) -> Result<Stamp, Failure> {
        let path = self.opened(id).clone();
        if let Some(file) = self.rewritten.remove(&path) {
            self.tree.insert(path.clone(), file);
        }
        let path = &path;
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

    fn forget(&mut self, id: EntryId) {
        self.known.remove(&id);
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
    /// Commits take effect only when [`MemoryStore::finish_commits`] is called. Until then, writes count as backlog.
    pub deferred: bool,
    /// Figures of this side for the peer.
    pub figures: Figures,
    /// Performs deferred commits at the end of a session without a call.
    pub commits_itself: bool,
    /// How the last session ended, once it has.
    pub ending: Option<Ending>,
    /// Files of the same size and time are kept.
    pub skips: bool,
    /// Files of the same size are compared, so many at a time.
    pub compares: usize,
    /// Content that was written under final names, in bytes.
    pub written: u64,
    /// Names of the target that the source lacks, to be removed at the end.
    pub surplus: Vec<RelPath>,
    /// Damaged bytes cannot be written again.
    pub writes_once: bool,
    /// Files that are compared.
    pub(crate) comparing: BTreeSet<EntryId>,
    pub(crate) unread: Vec<(EntryId, KnownChunk)>,
    pub(crate) used: u64,
    pub(crate) backlog: u64,
    pub(crate) open: BTreeMap<EntryId, OpenPartial>,
    pub(crate) queued: Vec<(EntryId, RelPath, MemoryFile)>,
    pub(crate) committed: Vec<(EntryId, Result<(), Failure>)>,
}

/// A file with a temporary name.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpenPartial {
    path: RelPath,
    content: Vec<u8>,
    /// Bytes of an earlier copy.
    before: Vec<u8>,
    /// These are all that there are.
    is_same: bool,
}

impl MemoryStore {
    /// Whether no temporary file is open and nothing waits.
    pub fn is_idle(&self) -> bool {
        self.open.is_empty() && self.queued.is_empty() && self.committed.is_empty()
    }

    /// Performs all deferred commits.
    pub fn finish_commits(&mut self) {
        self.backlog = 0;
        for (id, path, file) in std::mem::take(&mut self.queued) {
            let outcome = self.replace(path, file);
            self.committed.push((id, outcome));
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
        let properties = entry.properties.as_deref().cloned();
        let file = MemoryFile { kind: entry.kind, content, mode: entry.mode, mtime: entry.mtime, properties };
        if self.deferred {
            self.queued.push((id, entry.path.clone(), file));
            return Ok(Commit::Pending);
        }
        self.replace(entry.path.clone(), file).map(|()| Commit::Done)
    }

    fn charge(&mut self, count: u64) -> Result<(), Failure> {
        if self.capacity.is_some_and(|capacity| self.used + count > capacity) {
            return Err(Failure::new(FailCode::NoSpace, "memory store is full"));
        }
        self.used += count;
        self.backlog += if self.deferred { count } else { 0 };
        Ok(())
    }

    fn opened(&mut self, id: EntryId) -> &mut OpenPartial {
        self.open.get_mut(&id).expect("sessions write only to open files")
    }
}

impl Store for MemoryStore {
    fn make_dir(&mut self, _: EntryId, entry: &Entry) -> Result<Made, Failure> {
        self.allowed(entry)?;
        if self.tree.contains_key(&entry.path) {
            return Ok(Made::Existing);
        }
        self.tree.insert(entry.path.clone(), MemoryFile { mode: 0o700, ..MemoryFile::directory() });
        Ok(Made::New)
    }

    fn examine(&mut self, id: EntryId, entry: &Entry) -> Result<Verdict, Failure> {
        self.allowed(entry)?;
        let there = self.tree.get(&entry.path);
        let same = |file: &&MemoryFile| (file.content.len() as u64, file.mtime) == (entry.size, entry.mtime);
        if self.skips && there.filter(same).is_some() {
            return Ok(Verdict::Have(Change::None));
        }
        let compared = there.filter(|there| self.compares > 0 && there.content.len() as u64 == entry.size);
        let change = match there {
            None => Change::New,
            Some(_) if compared.is_some() => Change::None,
            Some(_) => Change::Content,
        };
        let before = compared.map(|there| &there.content).or_else(|| self.partial.get(&entry.path));
        let Some(before) = before else { return Ok(Verdict::Want(change, Vec::new())) };
        if compared.is_some() {
            self.comparing.insert(id);
        }
        let length = |index| usize::try_from(CHUNK_LEN.min(entry.size - index * CHUNK_LEN)).expect("fits");
        let count = chunk_count(entry.size.min(before.len() as u64));
        for index in 0..count {
            let start = usize::try_from(index * CHUNK_LEN).expect("fits");
            let bytes = before.get(start..start + length(index));
            self.unread.push((id, bytes.map_or(KnownChunk::missing(index), |bytes| KnownChunk::of(index, bytes))));
        }
        let claimed = Some(0..count).filter(|range| !range.is_empty());
        Ok(Verdict::Want(change, claimed.into_iter().collect()))
    }

    fn compares_enough(&self) -> bool {
        self.compares > 0 && self.comparing.len() >= self.compares
    }

    fn poll_known(&mut self) -> Option<(EntryId, KnownChunk)> {
        (!self.unread.is_empty()).then(|| self.unread.remove(0))
    }

    fn has_unknown(&self) -> bool {
        !self.unread.is_empty()
    }

    fn begin(&mut self, id: EntryId, entry: &Entry) -> Result<(), Failure> {
        self.allowed(entry)?;
        let size = usize::try_from(entry.size).expect("fits");
        if let Some(open) = self.open.get_mut(&id) {
            open.content.truncate(size);
            return Ok(());
        }
        let is_same = self.comparing.contains(&id);
        let there = self.tree.get(&entry.path).filter(|_| is_same).map(|there| &there.content);
        let before = there.or_else(|| self.partial.get(&entry.path)).cloned().unwrap_or_default();
        self.open.insert(id, OpenPartial { path: entry.path.clone(), content: Vec::new(), before, is_same });
        Ok(())
    }

    fn write(&mut self, id: EntryId, offset: u64, bytes: &[u8]) -> Result<(), Failure> {
        self.charge(bytes.len() as u64)?;
        self.opened(id).is_same = false;
        put(&mut self.opened(id).content, offset, bytes);
        Ok(())
    }

    fn zeros(&mut self, id: EntryId, offset: u64, count: u64) -> Result<(), Failure> {
        put(&mut self.opened(id).content, offset, &vec![0; usize::try_from(count).expect("fits")]);
        Ok(())
    }

    fn keep(&mut self, id: EntryId, index: u64) -> Result<(), Failure> {
        let open = self.opened(id);
        let start = usize::try_from(index * CHUNK_LEN).expect("fits");
        let end = open.before.len().min(start + usize::try_from(CHUNK_LEN).expect("fits"));
        let bytes = open.before[start..end].to_vec();
        put(&mut open.content, index * CHUNK_LEN, &bytes);
        Ok(())
    }

    fn can_repair(&self) -> bool {
        !self.writes_once
    }

    fn commit(&mut self, id: EntryId, entry: &Entry, digest: &Digest) -> Result<Commit, Failure> {
        let OpenPartial { content, path, is_same, .. } =
            self.open.remove(&id).expect("sessions commit only open files");
        assert_eq!(*digest, Digest::of(&content), "sessions commit only what they verified");
        self.comparing.remove(&id);
        self.partial.remove(&path);
        self.written += if is_same { 0 } else { content.len() as u64 };
        self.place(id, entry, content)
    }

    fn finish_dir(&mut self, id: EntryId, entry: &Entry) -> Result<Commit, Failure> {
        self.place(id, entry, Vec::new())
    }

    fn make_symlink(&mut self, id: EntryId, entry: &Entry) -> Result<(Change, Commit), Failure> {
        self.allowed(entry)?;
        let change = if self.tree.contains_key(&entry.path) { Change::Content } else { Change::New };
        self.place(id, entry, Vec::new()).map(|commit| (change, commit))
    }

    fn make_hard_link(&mut self, id: EntryId, entry: &Entry, first: &RelPath) -> Result<(Change, Commit), Failure> {
        assert!(self.tree.contains_key(first), "the first name comes first");
        self.place(id, entry, Vec::new()).map(|commit| (Change::New, commit))
    }

    fn scratch(&mut self) -> Result<Box<dyn Scratch>, Failure> {
        Ok(Box::<MemoryScratch>::default())
    }

    fn abort(&mut self, id: EntryId, leftover: Leftover) {
        let OpenPartial { path, content, .. } = self.open.remove(&id).expect("sessions abort only open files");
        self.unread.retain(|(its, _)| *its != id);
        self.comparing.remove(&id);
        if leftover == Leftover::Keep {
            self.partial.insert(path, content);
        }
    }

    fn forget(&mut self, id: EntryId) {
        assert!(!self.open.contains_key(&id), "sessions abort what they began");
        self.comparing.remove(&id);
        self.unread.retain(|(its, _)| *its != id);
    }

    fn delete_next(&mut self) -> Option<(ShownPath, Result<(), Failure>)> {
        let path = self.surplus.pop()?;
        if self.forbidden.contains(&path) {
            return Some((ShownPath::from(&path), Err(FailCode::PermissionDenied.into())));
        }
        self.tree.remove(&path);
        Some((ShownPath::from(&path), Ok(())))
    }

    fn figures(&mut self) -> Figures {
        self.figures
    }

    fn conclude(&mut self, ending: Ending) {
        self.ending = Some(ending);
    }

    fn finish_commits(&mut self) {
        if self.commits_itself {
            Self::finish_commits(self);
        }
    }

    fn backlog(&self) -> u64 {
        self.backlog
    }

    fn poll_committed(&mut self) -> Option<(EntryId, Result<(), Failure>)> {
        self.committed.pop()
    }
}

/// Writes bytes at an offset, with zeros in front of them where nothing is.
fn put(content: &mut Vec<u8>, offset: u64, bytes: &[u8]) {
    let start = usize::try_from(offset).expect("fits");
    let end = start + bytes.len();
    if content.len() < end {
        content.resize(end, 0);
    }
    content[start..end].copy_from_slice(bytes);
}
