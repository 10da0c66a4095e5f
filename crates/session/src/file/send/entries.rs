//! Output of a sender: entries, their content and digests.

use std::sync::Arc;

use super::buffer::MARGIN;
use super::{CHUNK, Current, MAX_UNCONFIRMED, SendPhase, SendState, Unconfirmed, WORTHWHILE};
use crate::course::Course;
use crate::failure::{FailCode, Failure};
use crate::figures::Figures;
use crate::file::{FileEvent, MAX_EVENTS, Side, put_failed};
use crate::frame_kind::FrameKind;
use crate::framing::{HEADER_LEN, header, put_frame};
use crate::manifest::{Entry, EntryId, EntryKind, ShownPath};
use crate::store::{Chunk, Next, Source};

impl SendState {
    pub(super) fn fill<S: Source + ?Sized>(&mut self, source: &mut S) {
        if self.course.error().is_some() {
            if let Some(current) = self.current.take() {
                source.close(current.id);
            }
            return;
        }
        while self.course.is_at(SendPhase::Sending) && self.out.room() >= MARGIN {
            let moved = match &self.current {
                Some(current) if current.refused => self.end_current(source, Err(FailCode::GivenUp.into())),
                Some(current) if current.sent == current.entry.size => self.finish_current(source),
                Some(_) => self.send_chunk(source),
                None => self.next_entry(source),
            };
            if !moved {
                break;
            }
        }
    }

    /// Starts the next entry. Returns whether more may be possible at once, as do the steps below.
    fn next_entry<S: Source + ?Sized>(&mut self, source: &mut S) -> bool {
        let waiting = self.unconfirmed.len().saturating_sub(self.open.depth());
        if waiting >= MAX_UNCONFIRMED || self.events.len() >= MAX_EVENTS {
            return false;
        }
        let id = EntryId(self.entries);
        match source.next_entry(id) {
            Next::Pending => return false,
            Next::Skipped(path, failure) => self.skip(path, failure),
            Next::Entry(entry) => match self.open.admit(&entry.path) {
                Ok(depth) => self.begin(id, entry, depth),
                Err(_) => {
                    if entry.kind == EntryKind::File {
                        source.close(id);
                    }
                    let failure = Failure::new(FailCode::NameRefused, "the name is a duplicate or out of order");
                    self.skip(ShownPath::from(&entry.path), failure);
                }
            },
            Next::End => {
                let (entries, skipped) = (self.entries, self.skipped);
                let figures = Figures { bytes: self.sent, ..source.figures() };
                self.out.put(|out| {
                    put_frame(out, FrameKind::End, |out| {
                        out.extend_from_slice(&entries.to_be_bytes());
                        out.extend_from_slice(&skipped.to_be_bytes());
                        figures.encode(out);
                    });
                });
                self.course = Course::At(SendPhase::Ended);
            }
        }
        true
    }

    fn skip(&mut self, path: ShownPath, failure: Failure) {
        self.out.put(|out| {
            put_frame(out, FrameKind::Skipped, |out| {
                path.encode(out);
                failure.encode(out);
            });
        });
        self.skipped += 1;
        self.report_failed(path, failure, Side::Here);
    }

    fn begin(&mut self, id: EntryId, entry: Entry, depth: usize) {
        while self.open.close_to(depth).is_some() {}
        self.entries += 1;
        self.out.put(|out| put_frame(out, FrameKind::Entry, |out| entry.encode(out)));
        let entry = Arc::new(entry);
        self.unconfirmed.insert(id, Unconfirmed { entry: Arc::clone(&entry), digest: None });
        match entry.kind {
            EntryKind::Directory => self.open.open(entry.name().clone(), id),
            EntryKind::File => {
                self.events.push_back(FileEvent::Started(Arc::clone(&entry)));
                self.current = Some(Current { id, entry, sent: 0, refused: false });
            }
        }
    }

    /// Reads directly behind the pending bytes and the room for the frame's header. The header is written afterwards,
    /// because only then the length is known.
    fn send_chunk<S: Source + ?Sized>(&mut self, source: &mut S) -> bool {
        let current = self.current.as_mut().expect("only called while a file is under way");
        let left = current.entry.size - current.sent;
        let credit = self.granted.saturating_sub(self.sent);
        let wanted = left.min(credit).min(CHUNK as u64);
        let room = self.out.room() - HEADER_LEN;
        let wanted = usize::try_from(wanted).expect("at most CHUNK");
        if wanted == 0 || room < wanted.min(WORTHWHILE) {
            return false;
        }
        let body = &mut self.out.free()[HEADER_LEN..][..wanted.min(room)];
        match source.read(current.id, current.sent, body) {
            Ok(Chunk::Pending) => false,
            Ok(Chunk::End | Chunk::Data(0)) if !current.entry.has_size() => {
                let entry = Arc::new(Entry { size: current.sent, ..Entry::clone(&current.entry) });
                current.entry = Arc::clone(&entry);
                if let Some(unconfirmed) = self.unconfirmed.get_mut(&current.id) {
                    unconfirmed.entry = entry;
                }
                self.finish_current(source)
            }
            Ok(Chunk::End | Chunk::Data(0)) => {
                let failure = Failure::new(FailCode::SourceChanged, "it ended early");
                self.end_current(source, Err(failure))
            }
            Ok(Chunk::Data(count)) => {
                self.hasher.update(&body[..count]);
                current.sent += count as u64;
                self.sent += count as u64;
                self.out.free()[..HEADER_LEN].copy_from_slice(&header(FrameKind::Data, count));
                self.out.advance(HEADER_LEN + count);
                true
            }
            Err(failure) => self.end_current(source, Err(failure)),
        }
    }

    /// All bytes are sent. Checks that the file did not change meanwhile.
    fn finish_current<S: Source + ?Sized>(&mut self, source: &mut S) -> bool {
        let current = self.current.as_ref().expect("only called while a file is under way");
        let outcome = match source.recheck(current.id) {
            Ok(stamp) if stamp == current.entry.stamp() => Ok(()),
            Ok(_) => Err(Failure::new(FailCode::SourceChanged, "its size or time changed")),
            Err(failure) => Err(failure),
        };
        self.end_current(source, outcome)
    }

    fn end_current<S: Source + ?Sized>(&mut self, source: &mut S, outcome: Result<(), Failure>) -> bool {
        let Current { id, entry, .. } = self.current.take().expect("only called while a file is under way");
        source.close(id);
        let digest = self.hasher.take();
        match outcome {
            Ok(()) => {
                self.out.put(|out| put_frame(out, FrameKind::Digest, |out| out.extend_from_slice(digest.as_bytes())));
                if let Some(unconfirmed) = self.unconfirmed.get_mut(&id) {
                    unconfirmed.digest = Some(digest);
                }
            }
            Err(failure) => {
                self.out.put(|out| put_frame(out, FrameKind::Failed, |out| put_failed(out, id, &failure)));
                // Already reported if the receiver refused it.
                if self.unconfirmed.remove(&id).is_some() {
                    self.report_failed(ShownPath::from(&entry.path), failure, Side::Here);
                }
            }
        }
        true
    }

    pub(super) fn report_failed(&mut self, path: ShownPath, failure: Failure, by: Side) {
        self.totals.failed += 1;
        self.events.push_back(FileEvent::Failed { path, failure, by });
    }
}
