//! The request of a pull. Any other entry from a server is an attack, because it could overwrite files that nobody
//! named.

use std::collections::BTreeSet;

use crate::manifest::{Entry, EntryKind};
use crate::opening::Pull;
use crate::path_rules::Component;
use crate::pattern::Pattern;

#[derive(Debug)]
pub(super) struct Wanted {
    /// Names that are allowed at the root.
    names: BTreeSet<Component>,
    /// Patterns of further names there.
    patterns: Vec<Pattern>,
    /// The content of the served root was requested, so its names are not known in advance.
    everything: bool,
    recursive: bool,
}

impl Wanted {
    pub(super) fn new(pull: &Pull) -> Self {
        let names = || pull.paths.iter().filter_map(|path| path.split_last()).map(|(name, _)| name);
        Self {
            names: names().cloned().collect(),
            patterns: names().filter(|name| pull.patterns && Pattern::is_in(name)).map(Pattern::new).collect(),
            everything: pull.paths.iter().any(crate::RelPath::is_root),
            recursive: pull.recursive,
        }
    }

    pub(super) fn allows(&self, entry: &Entry) -> bool {
        let named = self.everything || entry.path.components().first().is_some_and(|first| self.has(first));
        named && (self.recursive || entry.kind == EntryKind::File)
    }

    fn has(&self, name: &Component) -> bool {
        self.names.contains(name) || self.patterns.iter().any(|pattern| pattern.matches(name.as_bytes()))
    }
}
