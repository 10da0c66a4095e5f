//! What a pull asked for: anything else that a server sends is an attack (it could overwrite files nobody named).

use std::collections::BTreeSet;

use crate::manifest::{Entry, EntryKind};
use crate::opening::Pull;
use crate::path_rules::Component;

#[derive(Debug)]
pub(super) struct Wanted {
    /// Names that may stand at the root.
    names: BTreeSet<Component>,
    /// The content of the served root was asked for: its names are not known beforehand.
    everything: bool,
    recursive: bool,
}

impl Wanted {
    pub(super) fn new(pull: &Pull) -> Self {
        Self {
            names: pull.paths.iter().filter_map(|path| path.split_last()).map(|(name, _)| name.clone()).collect(),
            everything: pull.paths.iter().any(crate::RelPath::is_root),
            recursive: pull.recursive,
        }
    }

    pub(super) fn allows(&self, entry: &Entry) -> bool {
        let named = self.everything || entry.path.components().first().is_some_and(|first| self.names.contains(first));
        named && (self.recursive || entry.kind == EntryKind::File)
    }
}
