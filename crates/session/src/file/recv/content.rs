//! Input of a receiver: the content of files.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Committing, RecvPhase, RecvState};
use crate::error::{SessionError, Violation};
use crate::failure::{FailCode, Failure};
use crate::file::send::update_zeros;
use crate::file::{FileEvent, MAX_ATTEMPTS, Side, decode_failed, entry_id};
use crate::frame_kind::{FrameKind, MAX_SMALL};
use crate::framing::decode_whole;
use crate::integrity::{CHUNK_LEN, ChunkDigest, ChunkDigests, ChunkHasher, Digest, chunk_count, chunk_range};
use crate::manifest::{Entry, EntryId, Mtime, ShownPath};
use crate::store::{Change, Leftover, Store};

/// Most damaged chunks that one frame names. The others come in the next attempt.
const MAX_NAMED: usize = (MAX_SMALL - 8) / 8;

/// Most attempts to send one file: those for changes of the source, and those for damage.
const MAX_STARTS: u8 = 2 * MAX_ATTEMPTS;
/// Most files with damaged chunks at a time. Each has a file open, or its bytes in memory. Further ones fail.
const MAX_REPAIRING: usize = 64;
/// Most gaps between the chunks of a file. A sender has as many as chunks are claimed in ranges, or damaged.
const MAX_RUNS: usize = 1 << 16;

/// A file that was announced, and has no last answer yet.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) entry: Arc<Entry>,
    pub(super) parent: Option<EntryId>,
    pub(super) change: Change,
    /// Whether the store has it open.
    pub(super) is_begun: bool,
    /// Whether bytes of it came that the target does not have.
    has_new: bool,
    /// Chunks whose bytes are right.
    pub(super) chunks: ChunkDigests,
    /// Digests of chunks that the store has of an earlier copy.
    pub(super) known: BTreeMap<u64, (ChunkDigest, Digest)>,
    /// Chunks that arrived damaged.
    damaged: BTreeSet<u64>,
    attempts: u8,
    /// How often its content began.
    starts: u8,
}

impl Pending {
    pub(super) fn new(entry: Arc<Entry>, parent: Option<EntryId>, change: Change) -> Self {
        let (chunks, known, damaged) = (ChunkDigests::default(), BTreeMap::new(), BTreeSet::new());
        let (is_begun, has_new) = (false, false);
        Self { entry, parent, change, is_begun, has_new, chunks, known, damaged, attempts: 0, starts: 0 }
    }
}

/// The file whose content arrives.
#[derive(Debug)]
pub(super) struct Content {
    id: EntryId,
    /// Bytes of the file as the sender opened it, [`Entry::UNKNOWN_SIZE`] if unknown.
    size: u64,
    /// The chunk under way.
    hasher: ChunkHasher,
    /// Bytes of the file done.
    done: u64,
    /// It failed or is there already. Its data is discarded.
    is_discarded: bool,
}

impl Content {
    fn offset(&self) -> u64 {
        self.hasher.index().saturating_mul(CHUNK_LEN).saturating_add(self.hasher.len())
    }

    /// Bytes that the chunk under way still takes. In one attempt, no more come than the file has.
    fn room(&self) -> u64 {
        let end = chunk_range(self.hasher.index(), self.size).end;
        end.saturating_sub(self.offset()).min(self.size.saturating_sub(self.done))
    }

    fn is_at_end_of_chunk(&self) -> bool {
        self.offset() == chunk_range(self.hasher.index(), self.size).end
    }

    /// Whether chunks have frames of their own.
    const fn has_chunk_frames(&self) -> bool {
        self.size > CHUNK_LEN
    }
}

impl RecvState {
    pub(super) fn progress_of(&self, content: &Content) -> Option<(EntryId, u64, u64)> {
        self.pending.contains_key(&content.id).then_some((content.id, content.size, content.done))
    }

    pub(super) fn on_content<S: Store + ?Sized>(&mut self, store: &mut S, body: &[u8]) -> Result<(), SessionError> {
        let (id, size, mtime) = decode_whole(FrameKind::Content, body, |fields| {
            let (id, size) = (entry_id(fields)?, fields.u64()?);
            Ok((id, size, Mtime::decode(fields)?))
        })?;
        // The content of the same file may start anew.
        if id.0 >= self.entries || self.content.as_ref().is_some_and(|content| content.id != id) {
            return Err(Violation::UnknownEntry.into());
        }
        // Before it was heard, a sender may send a file that waits to be examined.
        if let Some(file) = self.take_later(id) {
            self.answer_file(store, id, file)?;
        }
        let mut content = Content { id, size, hasher: ChunkHasher::at(0), done: 0, is_discarded: true };
        let Some(pending) = self.pending.get_mut(&id) else {
            self.content = Some(content);
            return Ok(());
        };
        pending.starts = pending.starts.saturating_add(1);
        if pending.starts > MAX_STARTS {
            return Err(Violation::Limit("attempts to send a file").into());
        }
        let has_changed = pending.entry.size != size || pending.entry.mtime != mtime;
        if has_changed {
            let old = pending.entry.size;
            pending.entry = Arc::new(Entry { size, mtime, ..Entry::clone(&pending.entry) });
            self.known -= pending.known.len();
            forget_changed(pending, old, size);
            self.known += pending.known.len();
        }
        let entry = Arc::clone(&pending.entry);
        let mut begun = Ok(());
        if size != Entry::UNKNOWN_SIZE && size > self.limits.file_size {
            begun = Err(FailCode::TooLarge.into());
        } else if !pending.is_begun || has_changed {
            // Without a size, no space can be reserved.
            begun = match entry.has_size() {
                true => store.begin(id, &entry),
                false => store.begin(id, &Entry { size: 0, ..Entry::clone(&entry) }),
            };
        }
        match begun {
            Ok(()) => {
                content.is_discarded = false;
                if !pending.is_begun {
                    self.events.push_back(FileEvent::Started(entry));
                }
                pending.is_begun = true;
                self.content = Some(content);
                Ok(())
            }
            Err(failure) => {
                self.content = Some(content);
                self.refuse_pending(store, id, failure)
            }
        }
    }

    pub(super) fn on_data<S: Store + ?Sized>(&mut self, store: &mut S, data: &[u8]) -> Result<(), SessionError> {
        let count = data.len() as u64;
        let Some(content) = &mut self.content else {
            return Err(Violation::OutOfPlace(FrameKind::Data).into());
        };
        let (id, offset) = (content.id, content.offset());
        if count > content.room() {
            return Err(Self::too_long(&self.pending, content, count).into());
        }
        if count > self.granted.saturating_sub(self.received) {
            return Err(Violation::CreditExceeded.into());
        }
        if count > self.limits.bytes.saturating_sub(self.received) {
            return Err(Violation::Limit("bytes").into());
        }
        self.received += count;
        content.done += count;
        if let Some(pending) = self.pending.get_mut(&id).filter(|_| !content.is_discarded) {
            pending.has_new = true;
        }
        if content.is_discarded {
            content.hasher.skip(count);
        } else if offset.saturating_add(count) > self.limits.file_size {
            content.hasher.skip(count);
            self.refuse_pending(store, id, FailCode::TooLarge.into())?;
        } else {
            content.hasher.update(data);
            if let Err(failure) = store.write(id, offset, data) {
                self.refuse_pending(store, id, failure)?;
            }
        }
        self.grant(store);
        Ok(())
    }

    pub(super) fn on_zeros<S: Store + ?Sized>(&mut self, store: &mut S, body: &[u8]) -> Result<(), SessionError> {
        let count = decode_whole(FrameKind::Zeros, body, |fields| fields.u64())?;
        let Some(content) = &mut self.content else {
            return Err(Violation::OutOfPlace(FrameKind::Zeros).into());
        };
        let (id, offset) = (content.id, content.offset());
        if count == 0 || count > content.room() {
            return Err(Self::too_long(&self.pending, content, count).into());
        }
        content.done += count;
        self.spared = self.spared.saturating_add(count);
        if content.is_discarded {
            content.hasher.skip(count);
            return Ok(());
        }
        if let Some(pending) = self.pending.get_mut(&id) {
            pending.has_new = true;
        }
        if offset.saturating_add(count) > self.limits.file_size {
            content.hasher.skip(count);
            return self.refuse_pending(store, id, FailCode::TooLarge.into());
        }
        update_zeros(&mut content.hasher, count);
        self.work = self.work.saturating_add(count);
        store.zeros(id, offset, count).or_else(|failure| self.refuse_pending(store, id, failure))
    }

    pub(super) fn on_seek(&mut self, body: &[u8]) -> Result<(), SessionError> {
        let index = decode_whole(FrameKind::Seek, body, |fields| fields.u64())?;
        let content = self.content.as_mut().ok_or(Violation::OutOfPlace(FrameKind::Seek))?;
        if !content.hasher.is_empty() || index >= chunk_count(content.size) {
            return Err(Violation::OutOfPlace(FrameKind::Seek).into());
        }
        content.hasher.start(index);
        Ok(())
    }

    /// The chunk under way is complete.
    pub(super) fn on_chunk<S: Store + ?Sized>(&mut self, store: &mut S, body: &[u8]) -> Result<(), SessionError> {
        let sent = decode_whole(FrameKind::Chunk, body, |fields| Ok(ChunkDigest::from_bytes(fields.array()?)))?;
        let content = self.content.as_mut().ok_or(Violation::OutOfPlace(FrameKind::Chunk))?;
        let is_last = content.size == Entry::UNKNOWN_SIZE && !content.hasher.is_empty();
        if !content.has_chunk_frames() || !content.is_at_end_of_chunk() && !is_last {
            return Err(Violation::OutOfPlace(FrameKind::Chunk).into());
        }
        let (id, index) = (content.id, content.hasher.index());
        if let Some(pending) = self.pending.get_mut(&id).filter(|_| !content.is_discarded) {
            let digest = content.hasher.digest();
            self.known -= usize::from(pending.known.remove(&index).is_some());
            if digest == sent {
                pending.damaged.remove(&index);
                pending.chunks.put(&content.hasher);
                if pending.chunks.runs() > MAX_RUNS {
                    return Err(Violation::Limit("chunks in disorder").into());
                }
                store.chunk(id, index, &digest);
            } else {
                pending.chunks.remove(index);
                pending.damaged.insert(index);
            }
        }
        // A chunk cut short is the last one of a file of unknown size.
        if content.hasher.len() == CHUNK_LEN || content.has_size() {
            content.hasher.start(index + 1);
        }
        Ok(())
    }

    pub(super) fn on_keep<S: Store + ?Sized>(&mut self, store: &mut S, body: &[u8]) -> Result<(), SessionError> {
        let index = decode_whole(FrameKind::Keep, body, |fields| fields.u64())?;
        let content = self.content.as_mut().ok_or(Violation::OutOfPlace(FrameKind::Keep))?;
        if !content.hasher.is_empty() || index >= chunk_count(content.size) {
            return Err(Violation::OutOfPlace(FrameKind::Keep).into());
        }
        let range = chunk_range(index, content.size);
        let count = range.end - range.start;
        if count > content.size.saturating_sub(content.done) {
            return Err(Self::too_long(&self.pending, content, count).into());
        }
        content.hasher.start(index + 1);
        content.done += count;
        self.spared = self.spared.saturating_add(count);
        let id = content.id;
        let Some(pending) = self.pending.get_mut(&id).filter(|_| !content.is_discarded) else { return Ok(()) };
        if pending.chunks.get(index).is_some() || pending.damaged.contains(&index) {
            return Ok(());
        }
        let (digest, whole) = pending.known.remove(&index).ok_or(Violation::UnknownEntry)?;
        self.known -= 1;
        match store.keep(id, index) {
            Ok(()) => {
                pending.chunks.put_known(index, digest, whole);
                Ok(())
            }
            Err(failure) => self.refuse_pending(store, id, failure),
        }
    }

    pub(super) fn on_digest<S: Store + ?Sized>(&mut self, store: &mut S, body: &[u8]) -> Result<(), SessionError> {
        let sent = decode_whole(FrameKind::Digest, body, |fields| Ok(Digest::from_bytes(fields.array()?)))?;
        let mut content = self.content.take().ok_or(Violation::OutOfPlace(FrameKind::Digest))?;
        if !content.has_chunk_frames() {
            self.end_only_chunk(&mut content)?;
        }
        let id = content.id;
        let Some(pending) = self.pending.get_mut(&id).filter(|_| !content.is_discarded) else { return Ok(()) };
        if !content.has_size() {
            pending.entry = Arc::new(Entry { size: content.done, ..Entry::clone(&pending.entry) });
        }
        let count = chunk_count(pending.entry.size);
        let digest = pending.chunks.root(pending.entry.size);
        match digest {
            Some(digest) if digest == sent && pending.damaged.is_empty() => self.commit(store, id, digest),
            None if pending.damaged.is_empty() => {
                let (path, announced) = (pending.entry.path.to_string(), pending.entry.size);
                Err(Violation::Length { path, announced, received: content.done }.into())
            }
            _ => {
                // With the digests of all chunks right and that of the whole wrong, any of them may be damaged.
                if pending.damaged.is_empty() {
                    pending.damaged.extend(0..count.min(MAX_NAMED as u64));
                }
                self.ask_again(store, id)
            }
        }
    }

    /// The digest of the whole ends the only chunk of a file.
    fn end_only_chunk(&mut self, content: &mut Content) -> Result<(), SessionError> {
        let Some(pending) = self.pending.get_mut(&content.id).filter(|_| !content.is_discarded) else { return Ok(()) };
        if content.hasher.index() == 1 && pending.chunks.get(0).is_some() {
            // It was kept.
            return Ok(());
        }
        if content.offset() != content.size {
            let (path, announced) = (pending.entry.path.to_string(), pending.entry.size);
            return Err(Violation::Length { path, announced, received: content.offset() }.into());
        }
        pending.damaged.remove(&0);
        pending.chunks.put(&content.hasher);
        Ok(())
    }

    fn commit<S: Store + ?Sized>(&mut self, store: &mut S, id: EntryId, digest: Digest) -> Result<(), SessionError> {
        let Pending { entry, parent, change, has_new, .. } = self.take_pending(id).expect("the caller has found it");
        let change = if has_new { change.with_content() } else { change };
        let outcome = store.commit(id, &entry, &digest);
        self.conclude_entry(store, id, Committing { entry, parent, change, digest: Some(digest) }, outcome)
    }

    /// Requests damaged chunks once more, or gives the file up.
    fn ask_again<S: Store + ?Sized>(&mut self, store: &mut S, id: EntryId) -> Result<(), SessionError> {
        let pending = self.pending.get_mut(&id).expect("the caller has found it");
        pending.attempts += 1;
        self.repairing += usize::from(pending.attempts == 1);
        if pending.attempts >= MAX_ATTEMPTS || self.repairing > MAX_REPAIRING || !store.can_repair() {
            let offset = pending.damaged.first().map_or(0, |index| index * CHUNK_LEN);
            let message = match pending.attempts {
                1 => format!("the MiB at offset {offset} arrived damaged"),
                attempts => format!("the MiB at offset {offset} arrived damaged {attempts} times"),
            };
            let (entry, parent) = (Arc::clone(&pending.entry), pending.parent);
            self.take_pending(id);
            store.abort(id, Leftover::Remove);
            return self.refuse(store, id, (&entry, parent), Failure::new(FailCode::DigestMismatch, message));
        }
        let named: Vec<u64> = pending.damaged.iter().take(MAX_NAMED).copied().collect();
        let entry = Arc::clone(&pending.entry);
        self.out.put(FrameKind::Again, |out| {
            out.extend_from_slice(&id.0.to_be_bytes());
            named.iter().for_each(|index| out.extend_from_slice(&index.to_be_bytes()));
        });
        self.events.push_back(FileEvent::Repaired { entry, chunks: named.len() as u64 });
        Ok(())
    }

    /// The sender gives up this file and needs no answer.
    pub(super) fn on_failed<S: Store + ?Sized>(&mut self, store: &mut S, body: &[u8]) -> Result<(), SessionError> {
        let (id, failure) = decode_failed(body)?;
        if id.0 >= self.entries || self.content.as_ref().is_some_and(|content| content.id != id) {
            return Err(Violation::UnknownEntry.into());
        }
        self.content = None;
        let (entry, parent, is_begun) = match (self.take_pending(id), self.take_later(id)) {
            (Some(Pending { entry, parent, is_begun, .. }), _) => (entry, parent, is_begun),
            (None, Some((entry, parent))) => (entry, parent, false),
            // This side refused it before, or has it.
            (None, None) => return Ok(()),
        };
        match is_begun {
            true => store.abort(id, if failure.code == FailCode::Io { Leftover::Keep } else { Leftover::Remove }),
            false => store.forget(id),
        }
        if self.dry_run && failure.code == FailCode::Differs {
            self.totals.keep(&entry);
            self.events.push_back(FileEvent::Kept(Arc::clone(&entry), Change::Content));
            self.make_links(store, id, &entry.path)?;
            return self.answered(store, parent, &entry);
        }
        self.report_failed(ShownPath::from(&entry.path), failure, Side::Peer);
        if entry.may_have_links() {
            self.refuse_links(store, id)?;
        }
        self.answered(store, parent, &entry)
    }

    /// A file without its last answer cannot be kept. Data in flight is discarded.
    pub(super) fn refuse_pending<S: Store + ?Sized>(
        &mut self,
        store: &mut S,
        id: EntryId,
        failure: Failure,
    ) -> Result<(), SessionError> {
        if let Some(content) = self.content.as_mut().filter(|content| content.id == id) {
            content.is_discarded = true;
        }
        let Some(Pending { entry, parent, is_begun, .. }) = self.take_pending(id) else { return Ok(()) };
        match is_begun {
            true => store.abort(id, Leftover::Keep),
            false => store.forget(id),
        }
        self.refuse(store, id, (&entry, parent), failure)
    }

    fn take_pending(&mut self, id: EntryId) -> Option<Pending> {
        let pending = self.pending.remove(&id)?;
        self.repairing -= usize::from(pending.attempts > 0);
        self.known -= pending.known.len();
        Some(pending)
    }

    fn too_long(pending: &BTreeMap<EntryId, Pending>, content: &Content, more: u64) -> Violation {
        let path = pending.get(&content.id).map_or_else(String::new, |pending| pending.entry.path.to_string());
        Violation::Length { path, announced: content.size, received: content.done.saturating_add(more) }
    }

    /// Whether a file is still expected from the sender.
    pub(super) fn awaits_content(&self) -> bool {
        debug_assert!(self.content.is_none() || !self.course.is_at(RecvPhase::Deleting));
        self.content.is_some() || !self.pending.is_empty()
    }
}

impl Content {
    const fn has_size(&self) -> bool {
        self.size != Entry::UNKNOWN_SIZE
    }
}

/// Forgets chunks whose length has changed with the size of the file. All others may still be compared.
fn forget_changed(pending: &mut Pending, old: u64, new: u64) {
    let count = chunk_count(new);
    if old == new || old == Entry::UNKNOWN_SIZE {
        return;
    }
    pending.chunks.truncate(count);
    pending.known.split_off(&count);
    pending.damaged.split_off(&count);
    let last_of_both = chunk_count(old).min(count).saturating_sub(1);
    if chunk_range(last_of_both, old) != chunk_range(last_of_both, new) {
        pending.chunks.remove(last_of_both);
        pending.known.remove(&last_of_both);
        pending.damaged.remove(&last_of_both);
    }
}
