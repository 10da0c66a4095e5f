//! Entries of a target that the source lacks, and their removal.
//!
//! A copy that removes notes the names of each directory that it gets. When the directory is complete, all others in it are
//! surplus. They are removed at the end, once everything arrived and nothing failed, and only if they are no more than the user
//! allowed. No link is followed. What the source has under another spelling is none of it.

mod aliases;

use std::collections::BTreeMap;
use std::sync::Arc;

use farhaul_session::{Component, Ends, FailCode, Failure, Mtime, RelPath, Rules, ShownPath};
use rustix::fs::FileType;
use rustix::io::Errno;

use self::aliases::{Aliases, MOST_ALIASES};
use super::directory::{Directory, kind};
use super::failure::{cannot_change, failure};
use super::filters::Filters;
use super::place::Places;
use super::place_stack::PlaceStack;
use super::properties::TargetProperties;
use super::seen_names::SeenNames;
use super::temporary::is_temporary;

/// Memory of the directories whose times are set back after the removals. Further ones keep the time of their removal.
const MOST_TIMES: usize = 16 << 20;

/// The removal of an entry.
type Removal = (ShownPath, Result<(), Failure>);

/// The entries that the source lacks.
#[derive(Debug, Default)]
pub(super) struct Surplus {
    /// Most entries that may be removed. `None` if nothing is.
    most: Option<u64>,
    /// Whether the root takes part.
    has_root: bool,
    /// What is left out of the copy stays.
    filters: Filters,
    /// The names that the source has.
    seen: SeenNames,
    /// Why a name was not noted. Then nothing is removed.
    failed: Option<Failure>,
    /// Surplus entries, and times of the directories that lose them.
    found: PlaceStack,
    times: BTreeMap<RelPath, Mtime>,
    weight_of_times: usize,
    /// What the target has under another spelling.
    aliases: Aliases,
    /// What is removed: with all entries in surplus directories, those first. The next one is last.
    removals: Option<PlaceStack>,
}

impl Surplus {
    /// By these rules. With a filter that is no pattern, nothing is removed.
    pub(super) fn of(rules: &Rules) -> Self {
        match Filters::of(&rules.filters) {
            Ok(filters) => Self { most: rules.delete, has_root: rules.whole, filters, ..Self::default() },
            Err(_) => Self::default(),
        }
    }

    /// The source has this entry.
    pub(super) fn saw(&mut self, path: &RelPath, places: &Places) {
        if self.most.is_some()
            && self.failed.is_none()
            && let Some((name, _)) = path.split_last()
        {
            self.failed = self.seen.note(path.parent(), name, || places.scratch()).err();
        }
    }

    /// The directory at `path` is complete, and gets this time.
    pub(super) fn finish(
        &mut self,
        place: (&RelPath, Mtime),
        places: &Places,
        open: impl FnOnce() -> Result<Arc<Directory>, Failure>,
    ) {
        let last = self.seen.take(place.0);
        // More than may be removed is not counted.
        if self.failed.is_some() || self.most.is_none_or(|most| self.found.len() > most) {
            return;
        }
        if let Err(failure) = self.find(place, last, places, open) {
            self.failed = Some(failure);
        }
    }

    fn find(
        &mut self,
        (path, mtime): (&RelPath, Mtime),
        last: Option<u64>,
        places: &Places,
        open: impl FnOnce() -> Result<Arc<Directory>, Failure>,
    ) -> Result<(), Failure> {
        // In a dry run, it may not exist.
        let Ok(directory) = open() else { return Ok(()) };
        let Ok(names) = directory.names() else { return Ok(()) };
        let before = self.found.len();
        let mut unlisted = Vec::new();
        let surplus = self.seen.without(last, names, |seen| {
            let seen = Component::new(seen).ok().filter(|seen| directory.stat(seen).is_ok());
            unlisted.extend(seen.filter(|_| unlisted.len() <= MOST_ALIASES));
        })?;
        for name in surplus.into_iter().filter(|name| !is_temporary(name)) {
            let is_directory = directory.stat(&name).is_ok_and(|stat| kind(&stat) == FileType::Directory);
            let is_spared = path.join(name.clone()).is_ok_and(|path| self.filters.leave_out(&path, is_directory));
            if !is_spared {
                self.found.push(path, &name, || places.scratch())?;
            }
        }
        if self.found.len() > before {
            self.aliases.note(path, unlisted)?;
        }
        if self.found.len() > before && self.weight_of_times < MOST_TIMES {
            self.weight_of_times += path.weight() + size_of::<(RelPath, Mtime)>();
            self.times.insert(path.clone(), mtime);
        }
        Ok(())
    }

    /// Removes the next entry. `None` once there are none.
    pub(super) fn next(&mut self, places: &Places, ends: &Ends, dry_run: bool) -> Option<Removal> {
        let most = self.most?;
        if self.removals.is_none() {
            if std::mem::take(&mut self.has_root) {
                self.finish((&RelPath::root(), Mtime::default()), places, || places.directory(&RelPath::root()));
                self.times.remove(&RelPath::root());
            }
            if let Some(failure) = self.failed.take() {
                self.most = None;
                let message = format!("nothing is removed, because the names of the source were not noted: {failure}");
                return Some((ShownPath::new(b"."), Err(Failure::new(failure.code, message))));
            }
            match self.plan(places, ends, most) {
                Ok(removals) => {
                    self.removals = Some(removals);
                    if !dry_run {
                        self.aliases.respell(places);
                    }
                }
                Err(failed) => {
                    self.most = None;
                    return Some(failed);
                }
            }
        }
        while let Some(place) = self.removals.as_mut().and_then(|removals| removals.pop().transpose()) {
            let (parent, name) = match place {
                Ok(place) => place,
                Err(failure) => {
                    self.most = None;
                    return Some((ShownPath::new(b"."), Err(failure)));
                }
            };
            let path = ShownPath::from(&parent.join(name.clone()).unwrap_or_default());
            match if dry_run { Ok(true) } else { remove(places, &parent, &name) } {
                Ok(true) => return Some((path, Ok(()))),
                Ok(false) => {}
                Err(failure) => return Some((path, Err(failure))),
            }
        }
        self.restore_times(places, dry_run);
        self.most = None;
        None
    }

    /// Everything that is removed, counted before the first removal.
    fn plan(&mut self, places: &Places, ends: &Ends, most: u64) -> Result<PlaceStack, Removal> {
        let mut all = PlaceStack::default();
        self.aliases.find_spared(places).map_err(|(path, failure)| (ShownPath::from(&path), Err(failure)))?;
        let unread = |failure| (ShownPath::new(b"."), Err(failure));
        while let Some((parent, name)) = self.found.pop().map_err(unread)? {
            if self.aliases.spare(&parent, &name) {
                continue;
            }
            let shown = || ShownPath::from(&parent.join(name.clone()).unwrap_or_default());
            collect((places, &self.filters, ends), &parent, &name, most, &mut all)
                .map_err(|failure| (shown(), Err(failure)))?;
            if all.len() > most {
                let message =
                    format!("more than {most} entries would be removed, so none was; ‹max-delete› allows more");
                return Err((shown(), Err(Failure::new(FailCode::NotSelected, message))));
            }
        }
        // Entries come after their directories, and are removed before them.
        Ok(all)
    }

    fn restore_times(&self, places: &Places, dry_run: bool) {
        if dry_run {
            return;
        }
        for (path, mtime) in &self.times {
            if let Ok(directory) = places.directory(path) {
                // Another user's directory keeps its new time.
                let _ = TargetProperties::plain(None, *mtime).set_time(&directory);
            }
        }
    }
}

/// Appends an entry, and what is in it.
fn collect(
    (places, filters, ends): (&Places, &Filters, &Ends),
    parent: &RelPath,
    name: &Component,
    most: u64,
    all: &mut PlaceStack,
) -> Result<(), Failure> {
    ends.check()?;
    all.push(parent, name, || places.scratch())?;
    if all.len() > most {
        return Ok(());
    }
    let directory = places.directory(parent)?;
    let stat = directory.stat(name).map_err(|error| failure("read", error))?;
    if kind(&stat) == FileType::Directory && !directory.keeps(&stat) {
        let path = parent.join(name.clone()).map_err(|error| Failure::new(FailCode::NameRefused, error.to_string()))?;
        let opened = directory.child(name).and_then(|child| Ok((child.names()?, child)));
        let (names, child) = opened.map_err(|error| failure("open", error))?;
        for name in names {
            let is_directory = child.stat(&name).is_ok_and(|stat| kind(&stat) == FileType::Directory);
            if !path.join(name.clone()).is_ok_and(|path| filters.leave_out(&path, is_directory)) {
                collect((places, filters, ends), &path, &name, most, all)?;
            }
        }
    }
    Ok(())
}

/// Removes an entry. False if it stays because a filter spares something in it.
fn remove(places: &Places, parent: &RelPath, name: &Component) -> Result<bool, Failure> {
    let directory = places.directory(parent)?;
    let removed = match directory.remove(name) {
        Err(error @ (Errno::ISDIR | Errno::PERM)) => match directory.remove_directory(name) {
            // It is a file all the same.
            Err(Errno::NOTDIR) => Err(error),
            removed => removed,
        },
        removed => removed,
    };
    match removed {
        Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(false),
        // Somebody else removed it.
        Ok(()) | Err(Errno::NOENT) => Ok(true),
        Err(error) => Err(cannot_change("remove", &directory, name, error)),
    }
}
