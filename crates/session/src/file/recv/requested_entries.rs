//! The entries that a receiver requested. Any other one is an attack, because it could overwrite files that nobody named.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::manifest::{Entry, EntryKind};
use crate::name_list::{Listed, NameList};
use crate::path_rules::{Component, RelPath};
use crate::pattern::Pattern;
use crate::request::CopyScope;

#[derive(Debug)]
pub(super) struct RequestedEntries {
    /// Names that are allowed at the root.
    names: BTreeSet<Component>,
    /// Patterns of further names there.
    patterns: Vec<Pattern>,
    /// The content of a directory was requested, so its names are not known in advance.
    everything: bool,
    /// The names that the copy is restricted to.
    listed: Option<Arc<NameList>>,
    recursive: bool,
    /// Links that the copy keeps.
    symlinks: bool,
    hard_links: bool,
    /// The target takes one entry.
    single: bool,
    /// The entry that came, if it takes one.
    taken: Option<Component>,
}

impl RequestedEntries {
    pub(super) fn new(scope: &CopyScope) -> Self {
        let names = || scope.paths.iter().filter_map(|path| path.split_last()).map(|(name, _)| name);
        Self {
            names: names().cloned().collect(),
            patterns: names().filter(|name| scope.patterns && Pattern::is_in(name)).map(Pattern::new).collect(),
            everything: scope.paths.iter().any(RelPath::is_root),
            listed: scope.names.clone(),
            recursive: scope.recursive,
            symlinks: scope.rules.keep.symlinks,
            hard_links: scope.rules.keep.hard_links,
            single: scope.single,
            taken: None,
        }
    }

    /// Whether this entry, which comes next, was requested.
    pub(super) fn allows(&mut self, entry: &Entry) -> bool {
        let is_kept = match entry.kind {
            EntryKind::File | EntryKind::Directory => true,
            EntryKind::Symlink => self.symlinks,
            EntryKind::HardLink => self.hard_links,
        };
        if let Some(listed) = &self.listed {
            return is_kept
                && match listed.place_of(&entry.path, self.recursive) {
                    Listed::Itself | Listed::Within => true,
                    Listed::Above => entry.kind == EntryKind::Directory,
                    Listed::Outside => false,
                };
        }
        let Some(first) = entry.path.components().first() else { return false };
        let is_one_too_many = self.single && self.taken.as_ref().is_some_and(|taken| taken != first);
        let is_requested = self.has(first) && is_kept && (self.recursive || entry.kind != EntryKind::Directory);
        if self.single && self.taken.is_none() {
            self.taken = Some(first.clone());
        }
        is_requested && !is_one_too_many
    }

    fn has(&self, name: &Component) -> bool {
        // Without recursion, a directory brings no content.
        self.everything && self.recursive
            || self.names.contains(name)
            || self.patterns.iter().any(|pattern| pattern.matches(name.as_bytes()))
    }
}
