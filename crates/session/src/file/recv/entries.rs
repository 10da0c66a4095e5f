//! Input of a receiver: entries, their content and digests.

use std::sync::Arc;

use super::{Committing, Current, Directory, RecvPhase, RecvState};
use crate::course::Course;
use crate::error::{SessionError, Violation};
use crate::failure::{FailCode, Failure};
use crate::field::Fields;
use crate::figures::Figures;
use crate::file::{FileEvent, Side, decode_failed};
use crate::frame_kind::FrameKind;
use crate::framing::decode_whole;
use crate::integrity::Digest;
use crate::manifest::{Entry, EntryId, EntryKind, ShownPath};
use crate::opening::{Accept, received_abort};
use crate::store::{Leftover, Store};

impl RecvState {
    pub(super) fn on_frame<S: Store + ?Sized>(
        &mut self,
        store: &mut S,
        kind: FrameKind,
        body: &[u8],
    ) -> Result<(), SessionError> {
        if kind == FrameKind::Abort {
            return Err(received_abort(body));
        }
        if self.awaits_accept {
            if kind != FrameKind::Accept {
                return Err(SessionError::NotFarhaul);
            }
            Accept::decode(body)?;
            self.awaits_accept = false;
            self.events.push_back(FileEvent::Accepted);
            return Ok(());
        }
        if !self.course.is_at(RecvPhase::Receiving) {
            return Err(Violation::OutOfPlace(kind).into());
        }
        match (kind, self.current.take()) {
            (FrameKind::Entry, None) => self.on_entry(store, body),
            (FrameKind::Digest, Some(current)) => self.on_digest(store, current, body),
            (FrameKind::Failed, Some(current)) => self.on_failed(store, current, body),
            (FrameKind::Skipped, None) => self.on_skipped(body),
            (FrameKind::End, None) => self.on_end(store, body),
            (_, current) => {
                self.current = current;
                Err(Violation::OutOfPlace(kind).into())
            }
        }
    }

    fn on_entry<S: Store + ?Sized>(&mut self, store: &mut S, body: &[u8]) -> Result<(), SessionError> {
        let entry = Entry::decode(body).map_err(|reason| reason.in_frame(FrameKind::Entry))?;
        if self.wanted.as_mut().is_some_and(|wanted| !wanted.allows(&entry)) {
            return Err(Violation::NotAskedFor(entry.path.to_string()).into());
        }
        let depth = self.open.admit(&entry.path).map_err(|_| Violation::EntryOrder(entry.path.to_string()))?;
        self.count_entry()?;
        self.finish_directories(store, depth)?;
        let id = EntryId(self.entries);
        self.entries += 1;
        let entry = Arc::new(entry);
        match entry.kind {
            EntryKind::Directory => self.begin_directory(store, id, entry),
            EntryKind::File => self.begin_file(store, id, entry),
        }
    }

    fn count_entry(&self) -> Result<(), Violation> {
        if self.entries + self.skipped >= self.limits.entries { Err(Violation::Limit("entries")) } else { Ok(()) }
    }

    fn begin_directory<S: Store + ?Sized>(
        &mut self,
        store: &mut S,
        id: EntryId,
        entry: Arc<Entry>,
    ) -> Result<(), SessionError> {
        let made = if self.parent_stands() { store.make_dir(id, &entry) } else { Err(FailCode::ParentFailed.into()) };
        let stands = made.is_ok();
        self.open.open(entry.name().clone(), Directory { id, entry: Arc::clone(&entry), stands });
        made.or_else(|failure| self.refuse(id, &entry, failure))
    }

    fn begin_file<S: Store + ?Sized>(
        &mut self,
        store: &mut S,
        id: EntryId,
        entry: Arc<Entry>,
    ) -> Result<(), SessionError> {
        let begun = if !self.parent_stands() {
            Err(FailCode::ParentFailed.into())
        } else if !entry.has_size() {
            // Without a size, no space can be reserved.
            store.begin(id, &Entry { size: 0, ..Entry::clone(&entry) })
        } else if entry.size > self.limits.file_size {
            Err(FailCode::TooLarge.into())
        } else {
            store.begin(id, &entry)
        };
        let refused = begun.is_err();
        if !refused {
            self.events.push_back(FileEvent::Started(Arc::clone(&entry)));
        }
        self.current = Some(Current { id, entry: Arc::clone(&entry), received: 0, refused });
        begun.or_else(|failure| self.refuse(id, &entry, failure))
    }

    fn parent_stands(&self) -> bool {
        self.open.innermost().is_none_or(|parent| parent.stands)
    }

    pub(super) fn on_data<S: Store + ?Sized>(&mut self, store: &mut S, data: &[u8]) -> Result<(), SessionError> {
        let count = data.len() as u64;
        let Some(current) = &mut self.current else {
            return Err(Violation::OutOfPlace(FrameKind::Data).into());
        };
        if count > current.entry.size - current.received {
            let received = current.received + count;
            return Err(length_violation(&current.entry, received).into());
        }
        if count > self.granted - self.received {
            return Err(Violation::CreditExceeded.into());
        }
        if count > self.limits.bytes.saturating_sub(self.received) {
            return Err(Violation::Limit("bytes").into());
        }
        let offset = current.received;
        current.received += count;
        self.received += count;
        let too_large = current.received > self.limits.file_size;
        if !current.refused && too_large {
            self.refuse_current(store, FailCode::TooLarge.into())?;
        } else if !current.refused {
            self.hasher.update(data);
            if let Err(failure) = store.write(current.id, offset, data) {
                self.refuse_current(store, failure)?;
            }
        }
        self.grant(store);
        Ok(())
    }

    fn on_digest<S: Store + ?Sized>(
        &mut self,
        store: &mut S,
        current: Current,
        body: &[u8],
    ) -> Result<(), SessionError> {
        let digest = self.hasher.take();
        let checked =
            decode_whole(FrameKind::Digest, body, |fields| Ok(Digest::from_bytes(fields.array()?))).and_then(|sent| {
                match current.received == current.entry.size || !current.entry.has_size() {
                    true => Ok(sent),
                    false => Err(length_violation(&current.entry, current.received)),
                }
            });
        let Current { id, mut entry, refused, received } = current;
        if !entry.has_size() {
            Arc::make_mut(&mut entry).size = received;
        }
        if refused {
            return checked.map(drop).map_err(SessionError::from);
        }
        let outcome = match checked {
            Ok(sent) if sent == digest => store.commit(id, &entry, &digest),
            Ok(_) => {
                store.abort(id, Leftover::Remove);
                Err(FailCode::DigestMismatch.into())
            }
            Err(violation) => {
                store.abort(id, Leftover::Keep);
                return Err(violation.into());
            }
        };
        self.settle(id, Committing { entry, digest: Some(digest) }, outcome)
    }

    /// The sender gives up this file and needs no answer.
    fn on_failed<S: Store + ?Sized>(
        &mut self,
        store: &mut S,
        current: Current,
        body: &[u8],
    ) -> Result<(), SessionError> {
        self.hasher.take();
        let Current { id, entry, refused, .. } = current;
        if !refused {
            store.abort(id, Leftover::Remove);
        }
        let (failed, failure) = decode_failed(body)?;
        if failed != id {
            return Err(Violation::UnknownEntry.into());
        }
        if !refused {
            self.report_failed(ShownPath::from(&entry.path), failure, Side::Peer);
        }
        Ok(())
    }

    fn on_skipped(&mut self, body: &[u8]) -> Result<(), SessionError> {
        let mut fields = Fields::new(body);
        let bad = |reason: crate::field::Malformed| reason.in_frame(FrameKind::Skipped);
        let path = ShownPath::decode(&mut fields).map_err(bad)?;
        let failure = Failure::decode(&mut fields).map_err(bad)?;
        self.count_entry()?;
        self.skipped += 1;
        self.report_failed(path, failure, Side::Peer);
        Ok(())
    }

    fn on_end<S: Store + ?Sized>(&mut self, store: &mut S, body: &[u8]) -> Result<(), SessionError> {
        let (counts, figures) = decode_whole(FrameKind::End, body, |fields| {
            Ok(((fields.u64()?, fields.u64()?), Figures::decode(fields)?))
        })?;
        // The counts show that the stream lost and added nothing.
        if counts != (self.entries, self.skipped) || figures.bytes != self.received {
            return Err(Violation::Counts.into());
        }
        self.finish_directories(store, 0)?;
        self.peer = Some(figures);
        self.course = Course::At(RecvPhase::Ended);
        store.settle();
        self.on_store(store)
    }
}

fn length_violation(entry: &Entry, received: u64) -> Violation {
    Violation::Length { path: entry.path.to_string(), announced: entry.size, received }
}
