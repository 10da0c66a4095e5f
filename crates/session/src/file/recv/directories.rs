//! The directories of a copy that are not complete. Content comes after the entries, so a directory may be left long before
//! its last file has its name.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::file::Unanswered;
use crate::manifest::{Entry, EntryId, EntryKind};
use crate::store::Made;

#[derive(Debug, Default)]
pub(super) struct Directories {
    all: BTreeMap<EntryId, Directory>,
    /// Entries without their last answer, apart from open directories.
    unanswered: Unanswered,
}

#[derive(Debug)]
pub(super) struct Directory {
    pub(super) entry: Arc<Entry>,
    pub(super) parent: Option<EntryId>,
    /// Whether it was made. `None` if it does not exist, so that no entries can be created in it.
    pub(super) made: Option<Made>,
    /// Entries in it without their last answer.
    pending: u64,
    /// No more entries will come.
    is_left: bool,
}

impl Directories {
    pub(super) fn add(&mut self, id: EntryId, entry: Arc<Entry>, parent: Option<EntryId>, made: Option<Made>) {
        self.all.insert(id, Directory { entry, parent, made, pending: 0, is_left: false });
    }

    /// Whether entries can be created in this directory, or at the root.
    pub(super) fn stands(&self, id: Option<EntryId>) -> bool {
        id.is_none_or(|id| self.all.get(&id).is_some_and(|directory| directory.made.is_some()))
    }

    /// This entry in it needs an answer.
    pub(super) fn expect(&mut self, id: Option<EntryId>, entry: &Entry) {
        if entry.kind != EntryKind::Directory {
            self.unanswered.add(entry.weight());
        }
        if let Some(directory) = id.and_then(|id| self.all.get_mut(&id)) {
            directory.pending += 1;
        }
    }

    /// This entry in it has its last answer. Returns the directory if it is complete now.
    pub(super) fn answered(&mut self, id: Option<EntryId>, entry: &Entry) -> Option<(EntryId, Directory)> {
        self.unanswered.remove(entry.weight());
        let id = id?;
        self.all.get_mut(&id)?.pending -= 1;
        self.take_complete(id)
    }

    /// No more entries will come in it. Returns it if it is complete now.
    pub(super) fn leave(&mut self, id: EntryId) -> Option<(EntryId, Directory)> {
        let directory = self.all.get_mut(&id)?;
        directory.is_left = true;
        self.unanswered.add(directory.entry.weight());
        self.take_complete(id)
    }

    fn take_complete(&mut self, id: EntryId) -> Option<(EntryId, Directory)> {
        self.all.get(&id).filter(|directory| directory.is_left && directory.pending == 0)?;
        self.all.remove(&id).map(|directory| (id, directory))
    }

    /// The entries without their last answer, apart from open directories.
    pub(super) const fn unanswered(&self) -> Unanswered {
        self.unanswered
    }

    #[cfg(test)]
    pub(super) fn kept(&self) -> usize {
        let open = self.all.values().filter(|directory| !directory.is_left);
        self.unanswered.weight + open.map(|directory| directory.entry.weight()).sum::<usize>()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}
