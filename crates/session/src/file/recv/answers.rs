//! Results of the store, and answers to the sender.

use std::sync::Arc;

use super::directories::Directory;
use super::{Committing, GRANT_PART, MAX_KNOWN, RecvPhase, RecvState};
use crate::course::Course;
use crate::error::SessionError;
use crate::failure::Failure;
use crate::figures::Figures;
use crate::file::{FileEvent, Side, put_failed};
use crate::frame_kind::FrameKind;
use crate::handshake::INITIAL_CREDIT;
use crate::manifest::{Entry, EntryId, EntryKind, ShownPath};
use crate::refusal::put_abort;
use crate::store::{Change, Commit, Ending, Leftover, Made, Store};

impl RecvState {
    /// No more entries come in the directories deeper than `depth`.
    pub(super) fn leave_directories<S: Store + ?Sized>(
        &mut self,
        store: &mut S,
        depth: usize,
    ) -> Result<(), SessionError> {
        while let Some(id) = self.open.close_to(depth) {
            let complete = self.directories.leave(id);
            self.finish_directory(store, complete)?;
        }
        Ok(())
    }

    /// An entry of this directory has its last answer.
    pub(super) fn answered<S: Store + ?Sized>(
        &mut self,
        store: &mut S,
        parent: Option<EntryId>,
        entry: &Entry,
    ) -> Result<(), SessionError> {
        let complete = self.directories.answered(parent, entry);
        self.finish_directory(store, complete)
    }

    fn finish_directory<S: Store + ?Sized>(
        &mut self,
        store: &mut S,
        complete: Option<(EntryId, Directory)>,
    ) -> Result<(), SessionError> {
        let Some((id, Directory { entry, parent, made, .. })) = complete else { return Ok(()) };
        match made {
            Some(made) => {
                let change = if made == Made::New { Change::New } else { Change::None };
                let outcome = store.finish_dir(id, &entry);
                self.conclude_entry(store, id, Committing { entry, parent, change, digest: None }, outcome)
            }
            // It was refused before its entries.
            None => self.answered(store, parent, &entry),
        }
    }

    pub(super) fn on_store<S: Store + ?Sized>(&mut self, store: &mut S) -> Result<(), SessionError> {
        while !self.out.is_full()
            && self.known < MAX_KNOWN
            && let Some((id, known)) = store.poll_known()
        {
            let Some(pending) = self.pending.get_mut(&id) else { continue };
            if let Some(digest) = known.digest {
                self.known += usize::from(pending.known.insert(known.index, digest).is_none());
            }
            self.out.put(FrameKind::Known, |out| {
                out.extend_from_slice(&id.0.to_be_bytes());
                out.extend_from_slice(&known.index.to_be_bytes());
                if let Some((digest, _)) = known.digest {
                    out.extend_from_slice(digest.as_bytes());
                }
            });
        }
        while let Some((id, outcome)) = store.poll_committed() {
            if let Some(committing) = self.committing.remove(&id) {
                self.conclude_entry(store, id, committing, outcome.map(|()| Commit::Done))?;
            } else if let Err(failure) = outcome {
                self.refuse_pending(store, id, failure)?;
            }
        }
        self.grant(store);
        self.examine_later(store)?;
        self.finish_if_complete(store)
    }

    /// An entry is complete, will be, or could not be completed.
    pub(super) fn conclude_entry<S: Store + ?Sized>(
        &mut self,
        store: &mut S,
        id: EntryId,
        committing: Committing,
        outcome: Result<Commit, Failure>,
    ) -> Result<(), SessionError> {
        let Committing { entry, parent, change, digest } = committing;
        match (outcome, digest) {
            (Err(failure), _) => return self.refuse(store, id, (&entry, parent), failure),
            (Ok(Commit::Pending), digest) => {
                self.committing.insert(id, Committing { entry, parent, change, digest });
                return Ok(());
            }
            (Ok(Commit::Done), Some(digest)) => {
                self.totals.verify(&entry, change);
                self.compared += u64::from(change.keeps_content());
                self.out.put(FrameKind::Verified, |out| {
                    out.extend_from_slice(&id.0.to_be_bytes());
                    out.extend_from_slice(digest.as_bytes());
                });
                self.events.push_back(FileEvent::Verified(Arc::clone(&entry), digest, change));
                self.make_links(store, id, &entry.path)?;
            }
            (Ok(Commit::Done), None) => {
                match entry.kind {
                    EntryKind::Directory => self.totals.directories += 1,
                    _ => self.totals.links += 1,
                }
                self.out.put(FrameKind::Made, |out| {
                    out.extend_from_slice(&id.0.to_be_bytes());
                    out.push(change as u8);
                });
                self.events.push_back(FileEvent::Made(Arc::clone(&entry), change));
            }
        }
        self.answered(store, parent, &entry)
    }

    /// Once every entry is answered: waits for the commits, removes what is surplus, and ends the session.
    pub(super) fn finish_if_complete<S: Store + ?Sized>(&mut self, store: &mut S) -> Result<(), SessionError> {
        if self.course.is_at(RecvPhase::Ended) && !self.awaits_content() {
            // The last file of a directory lets the directory be finished, which waits for the disk again.
            let mut is_moving = true;
            while is_moving && !self.committing.is_empty() {
                store.finish_commits();
                is_moving = false;
                while let Some((id, outcome)) = store.poll_committed() {
                    if let Some(committing) = self.committing.remove(&id) {
                        self.conclude_entry(store, id, committing, outcome.map(|()| Commit::Done))?;
                        is_moving = true;
                    }
                }
            }
            if self.committing.is_empty() {
                self.course = Course::At(RecvPhase::Deleting);
                // Whatever the source could not read may be what seems to be surplus.
                self.may_delete = self.totals.failed == 0;
            }
        }
        while self.course.is_at(RecvPhase::Deleting) && self.has_room() {
            let Some((path, removed)) = self.may_delete.then(|| store.delete_next()).flatten() else {
                self.finish(store);
                break;
            };
            self.out.put(FrameKind::Deleted, |out| {
                path.encode(out);
                if let Err(failure) = &removed {
                    failure.encode(out);
                }
            });
            match removed {
                Ok(()) => {
                    self.totals.deleted += 1;
                    self.events.push_back(FileEvent::Deleted(path));
                }
                Err(failure) => self.report_failed(path, failure, Side::Here),
            }
        }
        Ok(())
    }

    fn finish<S: Store + ?Sized>(&mut self, store: &mut S) {
        debug_assert!(self.directories.is_empty() && self.committing.is_empty(), "every entry is answered");
        let files = self.totals.files + self.compared;
        store.conclude(if self.totals.failed == 0 { Ending::Whole } else { Ending::Lacking });
        let figures = Figures { bytes: self.received, ..store.figures() };
        self.out.put(FrameKind::Done, |out| {
            out.extend_from_slice(&files.to_be_bytes());
            figures.encode(out);
        });
        self.course = Course::Done;
        self.stored = self.received;
        self.events.push_back(FileEvent::Done(self.done()));
    }

    /// Tells the sender that an entry failed here, which was its last answer. Ends the session if all later entries would
    /// fail too.
    pub(super) fn refuse<S: Store + ?Sized>(
        &mut self,
        store: &mut S,
        id: EntryId,
        (entry, parent): (&Entry, Option<EntryId>),
        failure: Failure,
    ) -> Result<(), SessionError> {
        self.tell_failed(id, entry, failure)?;
        if entry.may_have_links() {
            self.refuse_links(store, id)?;
        }
        self.answered(store, parent, entry)
    }

    pub(super) fn tell_failed(&mut self, id: EntryId, entry: &Entry, failure: Failure) -> Result<(), SessionError> {
        self.out.put(FrameKind::Failed, |out| put_failed(out, id, &failure));
        self.report_failed(ShownPath::from(&entry.path), failure.clone(), Side::Here);
        if failure.code.ends_session() { Err(SessionError::Store(failure)) } else { Ok(()) }
    }

    pub(super) fn report_failed(&mut self, path: ShownPath, failure: Failure, by: Side) {
        self.totals.failed += 1;
        self.events.push_back(FileEvent::Failed { path, failure, by });
    }

    pub(super) fn grant<S: Store + ?Sized>(&mut self, store: &S) {
        // The store may count its backlog differently. Grants never shrink.
        self.stored = self.stored.max(self.received.saturating_sub(store.backlog()));
        let window = self.limits.window.max(INITIAL_CREDIT);
        let granted = self.stored.saturating_add(window);
        let is_wanted = self.course.is_at(RecvPhase::Receiving) || self.awaits_content();
        if granted >= self.granted.saturating_add(window / GRANT_PART) && is_wanted {
            self.granted = granted;
            let stored = self.stored;
            self.out.put(FrameKind::Grant, |out| {
                out.extend_from_slice(&granted.to_be_bytes());
                out.extend_from_slice(&stored.to_be_bytes());
            });
        }
    }

    /// Breaks off. Files complete by now keep their names, and count.
    pub(super) fn fail<S: Store + ?Sized>(&mut self, store: &mut S, error: SessionError) -> SessionError {
        self.content = None;
        self.later.clear();
        for (id, pending) in std::mem::take(&mut self.pending) {
            match pending.is_begun {
                true => store.abort(id, Leftover::Keep),
                false => store.forget(id),
            }
        }
        // Complete files count, and both sides learn of them, however the session ends.
        store.finish_commits();
        while let Some((id, outcome)) = store.poll_committed() {
            if let Some(committing) = self.committing.remove(&id) {
                // Further failures change nothing.
                let _ = self.conclude_entry(store, id, committing, outcome.map(|()| Commit::Done));
            }
        }
        store.conclude(Ending::Lacking);
        self.course.fail(error, |abort| put_abort(self.out.bytes(), abort))
    }
}
