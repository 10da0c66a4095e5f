//! The directories of a copy that are not complete. Content comes after the entries, so a directory may be left long before
//! its last file has its name.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::manifest::{Entry, EntryId};
use crate::store::Made;

#[derive(Debug, Default)]
pub(super) struct Directories {
    all: BTreeMap<EntryId, Directory>,
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

    /// An entry in it needs an answer.
    pub(super) fn expect(&mut self, id: Option<EntryId>) {
        if let Some(directory) = id.and_then(|id| self.all.get_mut(&id)) {
            directory.pending += 1;
        }
    }

    /// An entry in it has its last answer. Returns the directory if it is complete now.
    pub(super) fn answered(&mut self, id: Option<EntryId>) -> Option<(EntryId, Directory)> {
        let id = id?;
        self.all.get_mut(&id)?.pending -= 1;
        self.take_complete(id)
    }

    /// No more entries will come in it. Returns it if it is complete now.
    pub(super) fn leave(&mut self, id: EntryId) -> Option<(EntryId, Directory)> {
        self.all.get_mut(&id)?.is_left = true;
        self.take_complete(id)
    }

    fn take_complete(&mut self, id: EntryId) -> Option<(EntryId, Directory)> {
        self.all.get(&id).filter(|directory| directory.is_left && directory.pending == 0)?;
        self.all.remove(&id).map(|directory| (id, directory))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}
