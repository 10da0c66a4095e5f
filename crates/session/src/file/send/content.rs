//! Output of a sender: the content of files, one at a time.

use std::collections::VecDeque;
use std::sync::Arc;

use super::buffer::MARGIN;
use super::plan::{Plan, Step};
use super::{BLOCK, Pending, SendState, Stage, WORTHWHILE};
use crate::failure::{FailCode, Failure};
use crate::file::{FileEvent, MAX_ATTEMPTS, Side, put_failed};
use crate::frame_kind::FrameKind;
use crate::framing::{HEADER_LEN, header, put_frame};
use crate::handshake::INITIAL_CREDIT;
use crate::integrity::{CHUNK_LEN, ChunkDigest, ChunkDigests, ChunkHasher, Digest, chunk_range};
use crate::manifest::{Entry, EntryId, ShownPath, Stamp};
use crate::store::{Change, Chunk, Source};

/// The file whose content is being sent.
#[derive(Debug)]
pub(super) struct Current {
    pub(super) id: EntryId,
    /// With size and time of the open file.
    pub(super) entry: Arc<Entry>,
    pub(super) plan: Plan,
    /// The receiver cannot take it or has it, so sending stops.
    pub(super) is_refused: bool,
    /// Bytes of content done, sent or not.
    pub(super) done: u64,
    /// A chunk is under way.
    in_chunk: bool,
    hasher: ChunkHasher,
    /// The chunk that the receiver expects next.
    expected: u64,
    digests: ChunkDigests,
    /// Attempts before this one.
    attempts: u8,
    /// The digest of the whole, if only damaged chunks are sent again.
    repairs: Option<Digest>,
}

impl Current {
    fn size(&self) -> u64 {
        self.entry.size
    }

    /// The offset of the next byte of the chunk under way.
    const fn offset(&self) -> u64 {
        self.hasher.index() * CHUNK_LEN + self.hasher.len()
    }

    /// Whether chunks have frames of their own. In a file of one chunk, the digest of the whole ends it.
    fn has_chunk_frames(&self) -> bool {
        self.entry.size > CHUNK_LEN
    }
}

impl SendState {
    /// Takes a step with the content of files. Returns whether more may be possible at once.
    pub(super) fn send_content<S: Source + ?Sized>(&mut self, source: &mut S) -> bool {
        let Some(current) = &mut self.current else { return self.next_content(source) };
        if current.is_refused {
            return self.end_current(source, Err(FailCode::GivenUp.into()));
        }
        if current.in_chunk {
            return self.send_bytes(source);
        }
        match current.plan.step() {
            Step::Send(_) if self.compares_only => self.end_different(source),
            Step::Send(index) => {
                if let Some(pending) = self.pending.get_mut(current.id) {
                    pending.has_sent = true;
                }
                current.in_chunk = true;
                current.hasher.start(index);
                if index != current.expected {
                    self.out.put(|out| {
                        put_frame(out, FrameKind::Seek, |out| out.extend_from_slice(&index.to_be_bytes()));
                    });
                }
                true
            }
            Step::Compare(index, digest) => self.compare(source, index, digest),
            Step::Wait => false,
            Step::End => self.finish_current(source),
        }
    }

    /// Starts the next file: damaged ones first, then those that are wanted, and at the beginning also those whose answer is
    /// still in flight.
    fn next_content<S: Source + ?Sized>(&mut self, source: &mut S) -> bool {
        if let Some((id, chunks)) = self.repairs.pop_front() {
            return self.begin_repair(source, id, chunks);
        }
        while let Some(id) = self.wanted.pop_front() {
            if self.pending.get(id).is_some_and(|pending| matches!(pending.stage, Stage::Wanted(_))) {
                return self.begin_content(source, id);
            }
        }
        let Some(&id) = self.unrequested.front() else { return false };
        let size = self.pending.get(id).map_or(0, |pending| pending.entry.size);
        let bytes = if size == Entry::UNKNOWN_SIZE { 0 } else { size.min(CHUNK_LEN) };
        if self.sent + bytes > INITIAL_CREDIT {
            return false;
        }
        self.unrequested.pop_front();
        self.begin_content(source, id)
    }

    fn begin_content<S: Source + ?Sized>(&mut self, source: &mut S, id: EntryId) -> bool {
        let Some(pending) = self.pending.get_mut(id) else { return true };
        match source.open(id) {
            Ok(stamp) => {
                let entry = stamped(&pending.entry, stamp);
                pending.entry = Arc::clone(&entry);
                let plan = match std::mem::replace(&mut pending.stage, Stage::Sending) {
                    Stage::Wanted(mut plan) if entry.has_size() => {
                        plan.resize(entry.size);
                        *plan
                    }
                    Stage::Wanted(plan) => *plan,
                    _ => Plan::unanswered(&entry),
                };
                self.events.push_back(FileEvent::Started(Arc::clone(&entry)));
                self.start(id, entry, plan, (0, None));
            }
            Err(failure) => self.give_up(source, id, failure),
        }
        true
    }

    fn begin_repair<S: Source + ?Sized>(&mut self, source: &mut S, id: EntryId, chunks: Vec<u64>) -> bool {
        let Some(Pending { entry, stage: Stage::Sent(digest), .. }) = self.pending.get(id) else { return true };
        let (entry, digest) = (Arc::clone(entry), *digest);
        match source.open(id) {
            Ok(stamp) if stamp == entry.stamp() => self.start(id, entry, Plan::only(chunks), (0, Some(digest))),
            Ok(_) => {
                source.close(id);
                self.give_up(source, id, FailCode::SourceChanged.into());
            }
            Err(failure) => self.give_up(source, id, failure),
        }
        true
    }

    fn start(&mut self, id: EntryId, entry: Arc<Entry>, plan: Plan, (attempts, repairs): (u8, Option<Digest>)) {
        self.out.put(|out| {
            put_frame(out, FrameKind::Content, |out| {
                out.extend_from_slice(&id.0.to_be_bytes());
                out.extend_from_slice(&entry.size.to_be_bytes());
                out.extend_from_slice(&entry.mtime.seconds.to_be_bytes());
                out.extend_from_slice(&entry.mtime.nanos.to_be_bytes());
            });
        });
        let hasher = ChunkHasher::at(0);
        let digests = ChunkDigests::default();
        self.current = Some(Current {
            id,
            entry,
            plan,
            is_refused: false,
            done: 0,
            in_chunk: false,
            hasher,
            expected: 0,
            digests,
            attempts,
            repairs,
        });
    }

    /// Reads directly behind the pending bytes and the room for the frame's header. The header is written afterwards,
    /// because only then the length is known.
    fn send_bytes<S: Source + ?Sized>(&mut self, source: &mut S) -> bool {
        let current = self.current.as_mut().expect("only called while a file is under way");
        let offset = current.offset();
        let end = chunk_range(current.hasher.index(), current.size()).end;
        if offset == end {
            return self.end_chunk();
        }
        let credit = self.granted.saturating_sub(self.sent);
        let wanted = (end - offset).min(credit).min(BLOCK as u64);
        let room = self.out.room() - HEADER_LEN;
        let wanted = usize::try_from(wanted).expect("at most BLOCK");
        if wanted == 0 || room < wanted.min(WORTHWHILE) {
            return false;
        }
        let body = &mut self.out.free()[HEADER_LEN..][..wanted.min(room)];
        match source.read(current.id, offset, body) {
            Ok(Chunk::Pending) => false,
            Ok(Chunk::End | Chunk::Data(0) | Chunk::Zeros(0)) if !current.entry.has_size() => {
                let entry = Arc::new(Entry { size: offset, ..Entry::clone(&current.entry) });
                current.entry = Arc::clone(&entry);
                let is_empty = current.hasher.is_empty();
                if let Some(pending) = self.pending.get_mut(current.id) {
                    pending.entry = entry;
                }
                if is_empty {
                    // Also of an empty file, the digest of the whole is that of its first chunk.
                    current.in_chunk = false;
                    self.finish_current(source)
                } else {
                    self.end_last_chunk();
                    self.finish_current(source)
                }
            }
            Ok(Chunk::End | Chunk::Data(0) | Chunk::Zeros(0)) => self.changed(source, &ended_early()),
            Ok(Chunk::Data(count)) => {
                current.hasher.update(&body[..count]);
                current.done += count as u64;
                self.sent += count as u64;
                self.out.free()[..HEADER_LEN].copy_from_slice(&header(FrameKind::Data, count));
                self.out.advance(HEADER_LEN + count);
                true
            }
            Ok(Chunk::Zeros(count)) => {
                let count = count.min(end - offset);
                update_zeros(&mut current.hasher, count);
                current.done += count;
                self.spared += count;
                self.work += count;
                self.out.put(|out| put_frame(out, FrameKind::Zeros, |out| out.extend_from_slice(&count.to_be_bytes())));
                true
            }
            Err(failure) => self.end_current(source, Err(failure)),
        }
    }

    /// All bytes of the chunk are sent.
    fn end_chunk(&mut self) -> bool {
        let current = self.current.as_mut().expect("only called while a file is under way");
        current.in_chunk = false;
        current.expected = current.hasher.index() + 1;
        if current.repairs.is_none() {
            current.digests.put(&current.hasher);
        }
        if current.has_chunk_frames() {
            let digest = current.hasher.digest();
            self.out.put(|out| put_frame(out, FrameKind::Chunk, |out| out.extend_from_slice(digest.as_bytes())));
        }
        true
    }

    /// The file of unknown size has ended within a chunk.
    fn end_last_chunk(&mut self) {
        let current = self.current.as_mut().expect("only called while a file is under way");
        current.in_chunk = false;
        current.digests.put(&current.hasher);
        let digest = current.hasher.digest();
        self.out.put(|out| put_frame(out, FrameKind::Chunk, |out| out.extend_from_slice(digest.as_bytes())));
    }

    /// Compares a chunk with that of the receiver.
    fn compare<S: Source + ?Sized>(&mut self, source: &mut S, index: u64, known: ChunkDigest) -> bool {
        let current = self.current.as_mut().expect("only called while a file is under way");
        current.hasher.start(index);
        let range = chunk_range(index, current.size());
        self.work += range.end - range.start;
        self.scratch.resize(BLOCK, 0);
        while current.offset() < range.end {
            let offset = current.offset();
            let wanted = usize::try_from(range.end - offset).unwrap_or(BLOCK).min(BLOCK);
            match source.read_known(current.id, offset, &mut self.scratch[..wanted]) {
                Ok(Chunk::Data(count @ 1..)) => current.hasher.update(&self.scratch[..count]),
                Ok(Chunk::Zeros(count @ 1..)) => update_zeros(&mut current.hasher, count.min(range.end - offset)),
                // Nobody knows a chunk of a source that waits for another program.
                Ok(_) => return self.changed(source, &ended_early()),
                Err(failure) => return self.end_current(source, Err(failure)),
            }
        }
        if current.hasher.digest() != known {
            current.plan.send_after_all(index);
            return true;
        }
        current.digests.put(&current.hasher);
        current.done += range.end - range.start;
        self.spared += range.end - range.start;
        current.expected = index + 1;
        self.out.put(|out| put_frame(out, FrameKind::Keep, |out| out.extend_from_slice(&index.to_be_bytes())));
        true
    }

    /// All chunks are sent. Checks that the file did not change meanwhile.
    fn finish_current<S: Source + ?Sized>(&mut self, source: &mut S) -> bool {
        let current = self.current.as_ref().expect("only called while a file is under way");
        let (stamp, repairs) = (current.entry.stamp(), current.repairs);
        let digest = repairs.or_else(|| current.digests.root(current.size()));
        match (source.recheck(current.id), digest) {
            (Ok(now), Some(digest)) if now == stamp => self.end_current(source, Ok(digest)),
            (Ok(_), _) => self.changed(source, &Failure::new(FailCode::SourceChanged, "its size or time changed")),
            (Err(failure), _) => self.changed(source, &failure),
        }
    }

    /// The file changed while it was read. Reads it again, or gives up.
    fn changed<S: Source + ?Sized>(&mut self, source: &mut S, failure: &Failure) -> bool {
        let current = self.current.as_mut().expect("only called while a file is under way");
        let (id, attempts) = (current.id, current.attempts + 1);
        let can_repeat = current.entry.has_size();
        if attempts >= MAX_ATTEMPTS || current.repairs.is_some() || !can_repeat {
            let accepted = current.digests.root(current.size()).filter(|_| self.allows_changes);
            return self.end_current(source, accepted.ok_or_else(|| failure.clone()));
        }
        source.close(id);
        match source.open(id) {
            Ok(stamp) if stamp.size != Entry::UNKNOWN_SIZE => {
                let (before, digests) = (current.size(), std::mem::take(&mut current.digests));
                let entry = stamped(&current.entry, stamp);
                if let Some(pending) = self.pending.get_mut(id) {
                    pending.entry = Arc::clone(&entry);
                }
                let plan = Plan::of_changed(stamp.size, before, &digests);
                self.start(id, entry, plan, (attempts, None));
                true
            }
            Ok(_) => self.end_current(source, Err(failure.clone())),
            Err(failure) => {
                self.current = None;
                self.give_up(source, id, failure);
                true
            }
        }
    }

    fn end_current<S: Source + ?Sized>(&mut self, source: &mut S, outcome: Result<Digest, Failure>) -> bool {
        let Current { id, .. } = self.current.take().expect("only called while a file is under way");
        source.close(id);
        match outcome {
            Ok(digest) => {
                self.out.put(|out| put_frame(out, FrameKind::Digest, |out| out.extend_from_slice(digest.as_bytes())));
                if let Some(pending) = self.pending.get_mut(id) {
                    self.undecided -= u64::from(pending.is_undecided());
                    pending.stage = Stage::Sent(digest);
                }
            }
            Err(failure) => self.give_up(source, id, failure),
        }
        true
    }

    /// In a dry run, the receiver has other content.
    fn end_different<S: Source + ?Sized>(&mut self, source: &mut S) -> bool {
        let Current { id, .. } = self.current.take().expect("only called while a file is under way");
        source.close(id);
        let failure = Failure::from(FailCode::Differs);
        self.out.put(|out| put_frame(out, FrameKind::Failed, |out| put_failed(out, id, &failure)));
        if let Some(Pending { entry, .. }) = self.take_pending(id) {
            self.totals.keep(&entry);
            self.events.push_back(FileEvent::Kept(entry, Change::Content));
        }
        source.forget(id);
        true
    }

    /// A file cannot be sent. It was already reported if the receiver refused it.
    fn give_up<S: Source + ?Sized>(&mut self, source: &mut S, id: EntryId, failure: Failure) {
        self.out.put(|out| put_frame(out, FrameKind::Failed, |out| put_failed(out, id, &failure)));
        if let Some(pending) = self.take_pending(id) {
            self.undecided -= u64::from(pending.is_undecided());
            if !pending.is_answered {
                self.given_up.insert(id);
            }
            self.report_failed(ShownPath::from(&pending.entry.path), failure, Side::Here);
        }
        source.forget(id);
    }

    /// Whether files wait for their content.
    pub(super) fn has_content(&self) -> bool {
        self.current.is_some() || !self.wanted.is_empty() || !self.repairs.is_empty()
    }

    /// Whether there is room for the frames around a piece of content.
    pub(super) fn has_room(&self) -> bool {
        self.out.room() >= MARGIN
    }
}

/// The entry with size and time of the file as it was opened.
fn stamped(entry: &Arc<Entry>, stamp: Stamp) -> Arc<Entry> {
    if entry.stamp() == stamp {
        return Arc::clone(entry);
    }
    Arc::new(Entry { size: stamp.size, mtime: stamp.mtime, ..Entry::clone(entry) })
}

fn ended_early() -> Failure {
    Failure::new(FailCode::SourceChanged, "it ended early")
}

/// Appends zeros to a chunk.
pub(in crate::file) fn update_zeros(hasher: &mut ChunkHasher, count: u64) {
    static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
    let mut rest = count;
    while rest > 0 {
        let step = usize::try_from(rest).unwrap_or(ZEROS.len()).min(ZEROS.len());
        hasher.update(&ZEROS[..step]);
        rest -= step as u64;
    }
}

/// Files with damaged chunks, and these chunks.
pub(super) type Repairs = VecDeque<(EntryId, Vec<u64>)>;
