//! Where the entries of a copy go: the directories of a target, by handle.

use std::collections::BTreeMap;
use std::sync::Arc;

use farhaul_session::{Component, Entry, EntryId, EntryKind, FailCode, Failure, Made, RelPath, Scratch};
use rustix::io::Errno;

use super::caps::Caps;
use super::claims::Claims;
use super::directory::{Directory, Identity, mtime};
use super::failure::failure;
use super::lock_wait::LockWait;
use super::remains::{Remain, Remains};
use super::scratch::scratch_in;
use super::target::Target;
use super::temporary::refuse_reserved;
use super::umask::umask;

/// Rights of the owner. The owner's next copy must enter an incomplete directory.
const OWNER: u32 = 0o700;

/// The directories of a target. Entries run ahead of content, so files come for directories that were left. A directory is
/// opened again when it is needed, without following links, and it must be the same one.
#[derive(Debug)]
pub(super) struct Places {
    root: Arc<Directory>,
    /// The name for the single entry at the root, in place of its own.
    rename: Option<Rename>,
    /// A directory that has that name, unfinished, and the name of its source. The first entry tells whether this is the same
    /// copy, which goes on there, or whether it goes into it.
    unfinished: Option<(Directory, Component)>,
    /// What the copy has made at the root.
    claims: Arc<Claims>,
    /// Temporary names at the root. Read when they are needed.
    remains: Option<Remains>,
    umask: u32,
    /// The directories that are not finished, by their paths in the session.
    directories: BTreeMap<RelPath, OpenDirectory>,
    /// The directory used last.
    last: Option<(RelPath, Arc<Directory>)>,
    /// The caps of the peer's key.
    caps: Option<Arc<dyn Caps>>,
}

/// A directory whose content is incomplete.
#[derive(Debug)]
struct OpenDirectory {
    id: EntryId,
    /// `None` in a dry run, if it does not exist.
    identity: Option<Identity>,
    /// Whether this copy has made it.
    is_new: bool,
    /// Whether it existed before, with the time of the source.
    is_finished: bool,
    /// Its mode if the copy breaks off. `None` for directories that existed before, which keep their mode in any case.
    mode_after_break: Option<u32>,
    /// What the copy has made in it.
    claims: Arc<Claims>,
    /// Temporary names of earlier copies in it. Read when they are needed; a new directory has none.
    remains: Option<Remains>,
}

/// Where an entry goes.
#[derive(Clone, Debug)]
pub(super) struct StoredPlace {
    pub(super) directory: Arc<Directory>,
    /// Its name there.
    pub(super) name: Component,
    pub(super) claims: Arc<Claims>,
    /// Whether this copy has made its directory.
    pub(super) is_in_new: bool,
    /// Whether its directory had the time of the source already. A copy that broke off in it left it another time. What a file that failed left there goes with `clean`.
    pub(super) is_in_finished: bool,
    /// The path of its directory in the session.
    parents: RelPath,
}

/// A directory whose entries are all answered.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) directory: Arc<Directory>,
    /// The directory of its own name.
    pub(super) parent: Arc<Directory>,
    /// Whether this copy, or a broken one before it, has made it.
    pub(super) is_ours: bool,
    /// Whether this copy may have made an entry in it.
    pub(super) has_new: bool,
}

#[derive(Debug)]
struct Rename {
    to: Component,
    /// The entry that got the name. Only one can.
    from: Option<Component>,
}

impl Places {
    /// Places in `root`, where the only entry gets the name `rename` if there is one.
    pub(super) fn new(root: Directory, rename: Option<Component>) -> Self {
        Self {
            root: Arc::new(root),
            rename: rename.map(|to| Rename { to, from: None }),
            unfinished: None,
            claims: Arc::default(),
            remains: None,
            umask: umask(),
            directories: BTreeMap::new(),
            last: None,
            caps: None,
        }
    }

    /// Places in `parent` for the copy that has left `directory` unfinished there, as `name`, and in `directory` for any other one.
    pub(super) fn going_on(parent: Directory, name: Component, directory: Directory, source: Component) -> Self {
        Self { unfinished: Some((directory, source)), ..Self::new(parent, Some(name)) }
    }

    /// Makes a directory, or takes the one that stands there. In a dry run, none is made.
    pub(super) fn make_dir(&mut self, id: EntryId, entry: &Entry, dry_run: bool) -> Result<Made, Failure> {
        let open = |identity, mode_after_break, remains: Option<Remains>| OpenDirectory {
            id,
            identity,
            is_new: remains.is_some(),
            is_finished: false,
            mode_after_break,
            claims: Arc::default(),
            remains,
        };
        let Some(place) = self.find(entry)? else {
            self.directories.insert(entry.path.clone(), open(None, None, None));
            return Ok(Made::New);
        };
        let StoredPlace { directory: parent, name, claims, .. } = place;
        if dry_run {
            let there = match parent.child(&name) {
                Ok(directory) => Some(directory.identity()),
                Err(Errno::NOENT) => None,
                Err(error) => return Err(Target { directory: &parent, name: &name }.no_directory(&claims, error)),
            };
            self.directories.insert(entry.path.clone(), open(there, None, None));
            return Ok(if there.is_some() { Made::Existing } else { Made::New });
        }
        let no_directory = |error| Target { directory: &parent, name: &name }.no_directory(&claims, error);
        let (directory, is_new) = parent.make_child(&name).map_err(no_directory)?;
        claims.claim_existing(&parent, &name, (directory.inode(), is_new))?;
        if is_new {
            directory.mark_unfinished(OWNER, self.renamed_source(&entry.path));
        }
        let is_ours = is_new || directory.is_unfinished();
        let mode_after_break = is_ours.then_some(entry.mode & !self.umask & 0o777 | OWNER);
        let remains = is_new.then(Remains::default);
        let is_finished = !is_ours && rustix::fs::fstat(&directory).is_ok_and(|stat| mtime(&stat) == entry.mtime);
        let open = OpenDirectory { is_finished, ..open(Some(directory.identity()), mode_after_break, remains) };
        self.directories.insert(entry.path.clone(), open);
        self.last = Some((entry.path.clone(), Arc::new(directory)));
        Ok(if is_new { Made::New } else { Made::Existing })
    }

    /// The open directory of an entry, and the entry's name there. `None` in a dry run, if the directory does not exist.
    pub(super) fn find(&mut self, entry: &Entry) -> Result<Option<StoredPlace>, Failure> {
        self.find_path(&entry.path, entry.kind == EntryKind::Directory)
    }

    fn find_path(&mut self, path: &RelPath, is_directory: bool) -> Result<Option<StoredPlace>, Failure> {
        let no_name = || Failure::from(FailCode::NameRefused);
        let (name, parents) = path.split_last().ok_or_else(no_name)?;
        if let Some((directory, source)) = self.unfinished.take()
            && (source != *name || !is_directory)
        {
            (self.root, self.rename) = (Arc::new(directory), None);
        }
        let name = match &mut self.rename {
            Some(rename) if parents.is_empty() => {
                if rename.from.get_or_insert_with(|| name.clone()) != name {
                    let message = "several files cannot have one name; the target must be a directory";
                    return Err(Failure::new(FailCode::Exists, message));
                }
                rename.to.clone()
            }
            _ => name.clone(),
        };
        refuse_reserved(&name)?;
        if parents.is_empty() {
            let (directory, claims) = (Arc::clone(&self.root), Arc::clone(&self.claims));
            let (is_in_new, is_in_finished, parents) = (false, false, RelPath::root());
            return Ok(Some(StoredPlace { directory, name, claims, is_in_new, is_in_finished, parents }));
        }
        let parents = path.parent();
        let open = self.directories.get(&parents).ok_or_else(|| Failure::from(FailCode::ParentFailed))?;
        let Some(identity) = open.identity else { return Ok(None) };
        let (claims, is_in_new, is_in_finished) = (Arc::clone(&open.claims), open.is_new, open.is_finished);
        let directory = self.open(&parents, identity)?;
        Ok(Some(StoredPlace { directory, name, claims, is_in_new, is_in_finished, parents }))
    }

    /// The name of the source of the directory that has its own name from the target.
    fn renamed_source<'a>(&self, path: &'a RelPath) -> Option<&'a Component> {
        match path.components() {
            [source] => self.rename.is_some().then_some(source),
            _ => None,
        }
    }

    /// The same for a file that has its name, whose directory may be finished.
    pub(super) fn find_finished(&mut self, path: &RelPath) -> Result<Option<StoredPlace>, Failure> {
        let parents = path.parent();
        if parents.is_root() || self.directories.contains_key(&parents) {
            return self.find_path(path, false);
        }
        let (name, _) = path.split_last().ok_or_else(|| Failure::from(FailCode::NameRefused))?;
        let (directory, name, claims) = (self.directory(&parents)?, name.clone(), Arc::default());
        Ok(Some(StoredPlace { directory, name, claims, is_in_new: false, is_in_finished: false, parents }))
    }

    /// Opens a directory of the copy. It must be the one that the copy made or found there.
    fn open(&mut self, path: &RelPath, identity: Identity) -> Result<Arc<Directory>, Failure> {
        if let Some((_, directory)) = self.last.as_ref().filter(|(its, _)| its == path) {
            return Ok(Arc::clone(directory));
        }
        let directory = Arc::new(self.descend(path).map_err(|error| match error {
            Errno::NOENT | Errno::NOTDIR | Errno::LOOP => replaced(),
            error => failure("open its directory", error),
        })?);
        if directory.identity() != identity {
            return Err(replaced());
        }
        self.last = Some((path.clone(), Arc::clone(&directory)));
        Ok(directory)
    }

    /// Opens the directory at this path of the session.
    fn descend(&self, path: &RelPath) -> Result<Directory, Errno> {
        let renamed = self.rename.as_ref().map(|rename| &rename.to);
        let names = path.components().iter().enumerate();
        self.root.descend_along(names.map(|(index, name)| if index == 0 { renamed.unwrap_or(name) } else { name }))
    }

    /// Counts scratch files against these caps from now on.
    pub(super) fn count_scratch(&mut self, caps: Arc<dyn Caps>) {
        self.caps = Some(caps);
    }

    /// A file without a name in the target.
    pub(super) fn scratch(&self) -> Result<Box<dyn Scratch>, Failure> {
        scratch_in(&self.root, self.caps.as_deref())
    }

    /// The directory at this path of the session, or the root.
    pub(super) fn directory(&self, path: &RelPath) -> Result<Arc<Directory>, Failure> {
        if path.is_root() {
            return Ok(Arc::clone(&self.root));
        }
        if let Some((_, directory)) = self.last.as_ref().filter(|(its, _)| its == path) {
            return Ok(Arc::clone(directory));
        }
        self.descend(path).map(Arc::new).map_err(|error| failure("open its directory", error))
    }

    /// What an earlier copy left of this file.
    pub(super) fn remain(&mut self, place: &StoredPlace, entry: &Entry, wait: Option<&LockWait>) -> Option<Remain> {
        let remains = match self.directories.get_mut(&place.parents) {
            Some(open) => &mut open.remains,
            None => &mut self.remains,
        };
        let remains = remains.get_or_insert_with(|| Remains::list(&place.directory));
        if remains.is_empty() { None } else { remains.take(&place.directory, &place.name, entry, wait) }
    }

    /// A directory is complete. `None` in a dry run, if it does not exist.
    pub(super) fn finish_dir(&mut self, entry: &Entry) -> Result<Option<Finished>, Failure> {
        let open = self.directories.remove(&entry.path).ok_or_else(|| Failure::new(FailCode::Io, "it is not open"))?;
        let Some(identity) = open.identity else { return Ok(None) };
        let directory = self.open(&entry.path, identity)?;
        let parents = entry.path.parent();
        let parent = match self.directories.get(&parents).and_then(|open| open.identity) {
            Some(identity) => self.open(&parents, identity)?,
            None => Arc::clone(&self.root),
        };
        let (is_ours, has_new) = (open.mode_after_break.is_some(), open.claims.has_made());
        Ok(Some(Finished { directory, parent, is_ours, has_new }))
    }

    /// Gives the directories that are not finished the modes that they keep if nothing more arrives.
    pub(super) fn leave(&mut self) {
        let left = std::mem::take(&mut self.directories);
        // The innermost come first: their parents may become unreadable.
        let mut left: Vec<_> = left.into_iter().collect();
        left.sort_by_key(|(_, open)| std::cmp::Reverse(open.id));
        for (path, open) in left {
            let (Some(mode), Some(identity)) = (open.mode_after_break, open.identity) else { continue };
            if let Ok(directory) = self.open(&path, identity) {
                // If that fails, the directory stays private. The next copy gives it its mode.
                let _ = directory.set_mode(mode);
                directory.mark_unfinished(mode, self.renamed_source(&path));
            }
        }
    }
}

fn replaced() -> Failure {
    Failure::new(FailCode::NotFound, "its directory was moved, removed or replaced")
}
