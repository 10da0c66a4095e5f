//! Results of the store, and answers to the sender.

use std::sync::Arc;

use super::{Committing, Directory, GRANT_PART, RecvPhase, RecvState};
use crate::course::Course;
use crate::error::SessionError;
use crate::failure::Failure;
use crate::figures::Figures;
use crate::file::{FileEvent, Side, put_failed};
use crate::frame_kind::FrameKind;
use crate::manifest::{Entry, EntryId, ShownPath};
use crate::opening::{INITIAL_CREDIT, put_abort};
use crate::store::{Commit, Ending, Leftover, Store};

impl RecvState {
    pub(super) fn finish_directories<S: Store + ?Sized>(
        &mut self,
        store: &mut S,
        depth: usize,
    ) -> Result<(), SessionError> {
        while let Some(Directory { id, entry, stands }) = self.open.close_to(depth) {
            if stands {
                let outcome = store.finish_dir(id, &entry);
                self.settle(id, Committing { entry, digest: None }, outcome)?;
            }
        }
        Ok(())
    }

    pub(super) fn on_store<S: Store + ?Sized>(&mut self, store: &mut S) -> Result<(), SessionError> {
        while let Some((id, outcome)) = store.poll_committed() {
            if let Some(committing) = self.committing.remove(&id) {
                self.settle(id, committing, outcome.map(|()| Commit::Done))?;
            } else if let Err(failure) = outcome
                && self.current.as_ref().is_some_and(|current| current.id == id && !current.refused)
            {
                self.refuse_current(store, failure)?;
            }
        }
        self.grant(store);
        self.finish_if_settled(store);
        Ok(())
    }

    /// A file or directory is complete, will be, or could not be completed.
    pub(super) fn settle(
        &mut self,
        id: EntryId,
        committing: Committing,
        outcome: Result<Commit, Failure>,
    ) -> Result<(), SessionError> {
        let Committing { entry, digest } = committing;
        match (outcome, digest) {
            (Err(failure), _) => return self.refuse(id, &entry, failure),
            (Ok(Commit::Pending), digest) => {
                self.committing.insert(id, Committing { entry, digest });
            }
            (Ok(Commit::Done), Some(digest)) => {
                self.totals.files += 1;
                self.totals.bytes += entry.size;
                self.out.put(FrameKind::Verified, |out| {
                    out.extend_from_slice(&id.0.to_be_bytes());
                    out.extend_from_slice(digest.as_bytes());
                });
                self.events.push_back(FileEvent::Verified(entry, digest));
            }
            (Ok(Commit::Done), None) => {
                self.totals.directories += 1;
                self.out.put(FrameKind::Made, |out| out.extend_from_slice(&id.0.to_be_bytes()));
                self.events.push_back(FileEvent::Made(entry));
            }
        }
        Ok(())
    }

    pub(super) fn finish_if_settled<S: Store + ?Sized>(&mut self, store: &mut S) {
        if self.course.is_at(RecvPhase::Ended) && self.committing.is_empty() {
            let files = self.totals.files;
            store.conclude(if self.totals.failed == 0 { Ending::Whole } else { Ending::Lacking });
            let figures = Figures { bytes: self.received, ..store.figures() };
            self.out.put(FrameKind::Done, |out| {
                out.extend_from_slice(&files.to_be_bytes());
                figures.encode(out);
            });
            self.course = Course::Done;
            self.stored = self.received;
            self.events.push_back(FileEvent::Done(self.totals));
        }
    }

    /// The file in progress cannot be kept.
    pub(super) fn refuse_current<S: Store + ?Sized>(
        &mut self,
        store: &mut S,
        failure: Failure,
    ) -> Result<(), SessionError> {
        let current = self.current.as_mut().expect("only called while a file is under way");
        current.refused = true;
        let (id, entry) = (current.id, Arc::clone(&current.entry));
        store.abort(id, Leftover::Keep);
        self.refuse(id, &entry, failure)
    }

    /// Tells the sender at once that an entry failed here. Ends the session if all later entries would fail too.
    pub(super) fn refuse(&mut self, id: EntryId, entry: &Entry, failure: Failure) -> Result<(), SessionError> {
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
        if granted >= self.granted.saturating_add(window / GRANT_PART) && self.course.is_at(RecvPhase::Receiving) {
            self.granted = granted;
            let stored = self.stored;
            self.out.put(FrameKind::Grant, |out| {
                out.extend_from_slice(&granted.to_be_bytes());
                out.extend_from_slice(&stored.to_be_bytes());
            });
        }
    }

    pub(super) fn fail<S: Store + ?Sized>(&mut self, store: &mut S, error: SessionError) -> SessionError {
        if let Some(current) = self.current.take().filter(|current| !current.refused) {
            store.abort(current.id, Leftover::Keep);
        }
        // Complete files count, and both sides learn of them, however the session ends.
        store.settle();
        while let Some((id, outcome)) = store.poll_committed() {
            if let Some(committing) = self.committing.remove(&id) {
                // Further failures change nothing.
                let _ = self.settle(id, committing, outcome.map(|()| Commit::Done));
            }
        }
        store.conclude(Ending::Lacking);
        self.course.fail(error, |abort| put_abort(self.out.bytes(), abort))
    }
}
