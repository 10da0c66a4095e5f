//! The target of a store, and what it is given before the first entry.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::Arc;

use farhaul_session::{Component, Ends, RelPath, Rules};

use super::DiskStore;
use super::made_root::MadeRoot;
use crate::caps::Caps;
use crate::commits::Commits;
use crate::directory::Directory;
use crate::known::KnownChunks;
use crate::lock_wait::LockWait;
use crate::patience::Patience;
use crate::place::Places;
use crate::properties::Writer;
use crate::surplus::Surplus;
use crate::time_steps::TimeSteps;
use crate::umask::umask;

impl DiskStore {
    /// Stores all entries in a directory.
    pub fn into_directory(directory: Directory) -> Self {
        Self::new(Places::new(directory, None))
    }

    /// Stores entries at a user's path: in it, if it is a directory. Otherwise one file or tree gets that name, or a
    /// new directory with `is_directory`.
    ///
    /// # Errors
    /// The parent directory does not exist or may not be entered.
    pub fn at(path: &Path, is_directory: bool) -> io::Result<Self> {
        let is_unfinished = |directory: Directory| directory.unfinished_source().is_some();
        match Directory::open_parent(path)? {
            Some((parent, name)) if !path.is_dir() || parent.child(&name).is_ok_and(is_unfinished) => {
                Self::under(parent, name, is_directory)
            }
            _ => Ok(Self::into_directory(Directory::open(path)?)),
        }
    }

    /// The same for a path that a peer requests below `root`. No link is followed.
    ///
    /// # Errors
    /// As [`at`](DiskStore::at).
    pub fn beneath(root: &Directory, target: &RelPath, is_directory: bool) -> io::Result<Self> {
        match root.descend_to_parent(target)? {
            Some((parent, name)) => Self::under(parent, name, is_directory),
            None => Ok(Self::into_directory(root.descend(target)?)),
        }
    }

    fn under(parent: Directory, name: Component, is_directory: bool) -> io::Result<Self> {
        match parent.child(&name) {
            Ok(directory) => Ok(match directory.unfinished_source().filter(|_| !is_directory) {
                Some(source) => Self::new(Places::going_on(parent, name, directory, source)),
                None => Self::into_directory(directory),
            }),
            Err(_) if is_directory => {
                let (directory, made) = MadeRoot::make(parent, name)?;
                let mut store = Self::into_directory(directory);
                store.made = made;
                Ok(store)
            }
            Err(_) => Ok(Self::new(Places::new(parent, Some(name)))),
        }
    }

    fn new(places: Places) -> Self {
        let rules = Rules::default();
        Self {
            places,
            made: None,
            writer: Writer::of(rules.keep, umask(), false),
            rules,
            remains: BTreeMap::new(),
            compared: BTreeMap::new(),
            new: BTreeSet::new(),
            known: KnownChunks::default(),
            time_steps: TimeSteps::default(),
            files: BTreeMap::new(),
            commits: Commits::default(),
            surplus: Surplus::default(),
            patience: None,
            lock_wait: None,
            ends: Ends::default(),
            caps: None,
        }
    }

    /// The same under these rules. Properties that need privileges are set only for a peer that `is_trusted` with them.
    #[must_use]
    pub fn under_rules(mut self, rules: &Rules, is_trusted: bool) -> Self {
        self.writer = Writer::of(rules.keep, umask(), is_trusted);
        self.surplus = Surplus::of(rules);
        self.rules = rules.clone();
        self
    }

    /// The same with this patience for a full disk.
    #[must_use]
    pub fn waiting_by(mut self, patience: Option<Patience>) -> Self {
        self.patience = patience.map(Arc::new);
        self
    }

    /// The same, whose long loops end once the copy does.
    #[must_use]
    pub fn ending_by(mut self, ends: Ends) -> Self {
        self.ends = ends;
        self
    }

    /// The same, which counts files in the place of hard links and scratch files against these caps.
    #[must_use]
    pub fn within_caps(mut self, caps: Arc<dyn Caps>) -> Self {
        self.places.count_scratch(Arc::clone(&caps));
        self.caps = Some(caps);
        self
    }

    /// The same with this wait for incomplete files that other copies hold.
    #[must_use]
    pub fn waiting_for_locks(mut self, wait: LockWait) -> Self {
        self.lock_wait = Some(wait);
        self
    }
}
