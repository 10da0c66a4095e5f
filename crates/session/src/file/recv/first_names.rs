//! Files of which further names may follow, until the end of the session, and the links that wait for them. A million of
//! them cost no memory: their paths and states are in scratch files.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::RecvState;
use crate::error::{SessionError, Violation};
use crate::failure::{FailCode, Failure};
use crate::field::Fields;
use crate::manifest::{Entry, EntryId};
use crate::path_rules::RelPath;
use crate::scratch::Records;
use crate::store::Change;
use crate::store::{Commit, Store};

/// A record: number of the entry, place and length of its path, whether the file failed.
const RECORD: u64 = 8 + 8 + 4 + 1;

#[derive(Debug, Default)]
pub(super) struct FirstNames {
    /// Records of one length, ascending by their numbers, because entries come in that order.
    index: Records,
    paths: Records,
    /// Links that came before their file had its name.
    waiting: BTreeMap<EntryId, Vec<Link>>,
}

#[derive(Debug)]
pub(super) struct Link {
    pub(super) id: EntryId,
    pub(super) entry: Arc<Entry>,
    pub(super) parent: Option<EntryId>,
}

/// A file that was announced before.
struct FirstName {
    /// Where its record says if it failed.
    state: u64,
    path: u64,
    length: u32,
    has_failed: bool,
}

impl FirstNames {
    /// Remembers a file.
    fn expect<S: Store + ?Sized>(&mut self, store: &mut S, id: EntryId, entry: &Entry) -> Result<(), Failure> {
        let mut path = Vec::new();
        entry.path.encode(&mut path);
        let place = self.paths.push(&path, || store.scratch())?;
        let length = u32::try_from(path.len()).map_err(|_| FailCode::NameRefused)?;
        let record = [&id.0.to_be_bytes()[..], &place.to_be_bytes(), &length.to_be_bytes(), &[0]].concat();
        self.index.push(&record, || store.scratch()).map(drop)
    }

    /// Finds a file by its number.
    fn find(&self, id: EntryId) -> Result<Option<FirstName>, Failure> {
        let malformed = |_| Failure::from(FailCode::Io);
        let (mut low, mut high) = (0, self.index.len() / RECORD);
        while low < high {
            let middle = low + (high - low) / 2;
            let mut record = [0; RECORD as usize];
            self.index.read(middle * RECORD, &mut record)?;
            let mut fields = Fields::new(&record);
            match fields.u64().map_err(malformed)?.cmp(&id.0) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => {
                    let (path, length) = (fields.u64().map_err(malformed)?, fields.u32().map_err(malformed)?);
                    let has_failed = fields.u8().map_err(malformed)? != 0;
                    return Ok(Some(FirstName { state: (middle + 1) * RECORD - 1, path, length, has_failed }));
                }
            }
        }
        Ok(None)
    }

    #[cfg(test)]
    pub(super) fn kept(&self) -> usize {
        self.index.held() + self.paths.held()
    }

    fn path(&self, first: &FirstName) -> Result<RelPath, Failure> {
        let mut bytes = vec![0; usize::try_from(first.length).map_err(|_| FailCode::Io)?];
        self.paths.read(first.path, &mut bytes)?;
        Fields::new(&bytes).path().map_err(|_| FailCode::Io.into())
    }

    /// The file failed. Returns the links that waited for it.
    pub(super) fn failed(&mut self, id: EntryId) -> Result<Vec<Link>, Failure> {
        if let Some(first) = self.find(id)? {
            self.index.overwrite(first.state, &[1])?;
        }
        Ok(self.waiting.remove(&id).unwrap_or_default())
    }
}

impl RecvState {
    /// Remembers a file that may get further names.
    pub(super) fn expect_links<S: Store + ?Sized>(
        &mut self,
        store: &mut S,
        id: EntryId,
        entry: &Entry,
    ) -> Result<(), SessionError> {
        match self.keep.hard_links && entry.may_have_links() {
            true => self.first_names.expect(store, id, entry).map_err(SessionError::Store),
            false => Ok(()),
        }
    }

    pub(super) fn hard_link<S: Store + ?Sized>(
        &mut self,
        store: &mut S,
        id: EntryId,
        entry: Arc<Entry>,
        parent: Option<EntryId>,
    ) -> Result<(), SessionError> {
        if !self.keep.hard_links {
            return self.refuse(store, id, (&entry, parent), Failure::new(FailCode::SpecialFile, "a hard link"));
        }
        let first_id = entry.first_name().ok_or(Violation::UnknownEntry)?;
        let first = self.first_names.find(first_id).map_err(SessionError::Store)?.ok_or(Violation::UnknownEntry)?;
        if first.has_failed {
            return self.refuse(store, id, (&entry, parent), first_failed());
        }
        let waits = self.later.binary_search_by_key(&first_id, |(its, ..)| *its).is_ok();
        if waits || self.pending.contains_key(&first_id) || self.committing.contains_key(&first_id) {
            self.first_names.waiting.entry(first_id).or_default().push(Link { id, entry, parent });
            return Ok(());
        }
        let path = self.first_names.path(&first).map_err(SessionError::Store)?;
        let made = store.make_hard_link(id, &entry, &path);
        self.conclude_link(store, id, (entry, parent), made)
    }

    /// The file has its name. Makes the links that waited for it.
    pub(super) fn make_links<S: Store + ?Sized>(
        &mut self,
        store: &mut S,
        first: EntryId,
        path: &RelPath,
    ) -> Result<(), SessionError> {
        for Link { id, entry, parent } in self.first_names.waiting.remove(&first).unwrap_or_default() {
            let made = store.make_hard_link(id, &entry, path);
            self.conclude_link(store, id, (entry, parent), made)?;
        }
        Ok(())
    }

    /// Refuses the further names of a file that failed.
    pub(super) fn refuse_links<S: Store + ?Sized>(&mut self, store: &mut S, id: EntryId) -> Result<(), SessionError> {
        for Link { id, entry, parent } in self.first_names.failed(id).map_err(SessionError::Store)? {
            self.tell_failed(id, &entry, first_failed())?;
            self.answered(store, parent, &entry)?;
        }
        Ok(())
    }

    pub(super) fn conclude_link<S: Store + ?Sized>(
        &mut self,
        store: &mut S,
        id: EntryId,
        (entry, parent): (Arc<Entry>, Option<EntryId>),
        made: Result<(Change, Commit), Failure>,
    ) -> Result<(), SessionError> {
        let (change, outcome) = match made {
            Ok((change, commit)) => (change, Ok(commit)),
            Err(failure) => (Change::None, Err(failure)),
        };
        self.conclude_entry(store, id, super::Committing { entry, parent, change, digest: None }, outcome)
    }
}

/// The failure of a link to a file that failed.
fn first_failed() -> Failure {
    Failure::new(FailCode::ParentFailed, "its file failed under its first name")
}
