//! The tasks of the threads: files get their names, directories their properties, and both are made safe from a crash.

use std::sync::Arc;

use farhaul_session::{EntryId, FailCode, Failure};
use rustix::io::Errno;

use crate::descriptors::Permit;
use crate::directory::Directory;
use crate::failure::failure;
use crate::partial::{Commitment, Partial};
use crate::patience::{Patience, patiently};
use crate::properties::TargetProperties;
use crate::small_file::SmallFile;

/// From this number of files on, one wait for the whole file system costs less than a wait for each of them.
const SYNC_TOGETHER: usize = 8;

/// The result of an entry.
pub(super) type CommitResult = (EntryId, Result<(), Failure>);

/// A file whose content is complete and verified.
#[derive(Debug)]
pub(crate) struct FileCommit {
    pub(crate) id: EntryId,
    pub(crate) content: Complete,
    pub(crate) how: Commitment,
}

/// The content of a complete file.
#[derive(Debug)]
pub(crate) enum Complete {
    /// Under a temporary name.
    Written(Box<Partial>),
    /// In memory. The file is made by the thread that commits it.
    Small(SmallFile),
}

impl Complete {
    pub(super) fn directory(&self) -> &Arc<Directory> {
        match self {
            Self::Written(partial) => &partial.directory,
            Self::Small(file) => &file.directory,
        }
    }

    /// The file under its temporary name, and what it takes to write it again if it is [small](Partial::small).
    fn written(self, patience: Option<&Patience>) -> (Result<Partial, Failure>, Option<SmallFile>) {
        match self {
            Self::Written(partial) => (Ok(*partial), None),
            Self::Small(file) if file.is_new => (patiently(patience, || Partial::small(&file)), Some(file)),
            Self::Small(file) => (patiently(patience, || file.spill()), None),
        }
    }
}

/// A directory whose entries have all been started.
#[derive(Debug)]
pub(crate) struct DirectoryCommit {
    pub(crate) id: EntryId,
    pub(crate) directory: Arc<Directory>,
    /// The directory of its own name.
    pub(crate) parent: Arc<Directory>,
    /// Its mode is `None` for a directory that existed before the copy, unless the copy keeps permissions.
    pub(crate) properties: TargetProperties,
    /// Whether this copy, or a broken one before it, has made it.
    pub(crate) is_ours: bool,
    /// Whether its names are to survive a crash.
    pub(crate) syncs: bool,
}

#[derive(Debug)]
pub(super) struct Named {
    pub(super) id: EntryId,
    /// Those to synchronise.
    pub(super) directories: Vec<Arc<Directory>>,
    /// The time that the first of them gets then.
    pub(super) time: Option<DirectoryTime>,
    /// Returned when the directories are closed.
    pub(super) _permit: Permit,
}

/// The time of a directory, and whether this copy has made it.
#[derive(Debug)]
pub(super) struct DirectoryTime(TargetProperties, bool);

#[derive(Debug)]
pub(super) enum Task {
    Files(Vec<(FileCommit, Permit)>),
    Directory(DirectoryCommit, Permit),
    Sync(Vec<Named>),
}

/// The result of a task.
#[derive(Debug)]
pub(super) enum Done {
    /// The entry is in place, but a crash may still undo it.
    Named(Named),
    Failed(EntryId, Failure),
    Synced(Vec<CommitResult>),
}

impl Task {
    pub(super) fn perform(self) -> Vec<Done> {
        match self {
            Self::Files(files) => commit_files(files),
            Self::Directory(DirectoryCommit { id, directory, parent, properties, is_ours, syncs }, permit) => {
                let mut set = finish(&directory, &properties, is_ours);
                let time = DirectoryTime(properties, is_ours);
                let (directories, time) = if syncs {
                    (vec![directory, parent], Some(time))
                } else {
                    set = set.and_then(|()| time.set(&directory));
                    (Vec::new(), None)
                };
                let set = set.map_err(|error| failure("set the properties of the directory", error));
                vec![Done::of(Named { id, directories, time, _permit: permit }, set)]
            }
            Self::Sync(named) => vec![Done::Synced(synced(named))],
        }
    }
}

impl Done {
    fn of(named: Named, result: Result<(), Failure>) -> Self {
        match result {
            Ok(()) => Self::Named(named),
            Err(failure) => Self::Failed(named.id, failure),
        }
    }
}

/// Makes files that survive a crash, and gives them their names.
fn commit_files(files: Vec<(FileCommit, Permit)>) -> Vec<Done> {
    let mut prepared: Vec<_> = files
        .into_iter()
        .map(|(FileCommit { id, content, how }, permit)| {
            let directories = if how.syncs { vec![Arc::clone(content.directory())] } else { Vec::new() };
            let (partial, small) = content.written(how.patience.as_deref());
            let partial = partial.and_then(|mut partial| partial.prepare(&how).map(|()| partial));
            Prepared { named: Named { id, directories, time: None, _permit: permit }, how, partial, small }
        })
        .collect();
    sync(&mut prepared);
    prepared.into_iter().map(Prepared::named).collect()
}

/// A file under its temporary name, with its properties.
struct Prepared {
    named: Named,
    how: Commitment,
    partial: Result<Partial, Failure>,
    /// What it takes to write it again, if it is [small](Partial::small).
    small: Option<SmallFile>,
}

impl Prepared {
    fn named(self) -> Done {
        let Self { named, how, partial, small } = self;
        let taken = partial.and_then(|partial| partial.take_name(&how));
        let done = match (taken, small) {
            // Another copy has removed it, or made one of its name.
            (Err(failure), Some(small)) if failure.code == FailCode::NotFound => {
                patiently(how.patience.as_deref(), || small.spill()).and_then(|partial| partial.commit(&how))
            }
            (taken, _) => taken,
        };
        Done::of(named, done)
    }
}

/// Makes the content of prepared files survive a crash.
fn sync(prepared: &mut [Prepared]) {
    let all: Vec<_> = prepared.iter().filter(|file| file.how.syncs && file.partial.is_ok()).collect();
    let devices: Vec<_> =
        all.iter().filter_map(|file| Some(file.named.directories.first()?.identity().device())).collect();
    let is_one = devices.windows(2).all(|pair| pair[0] == pair[1]);
    if all.len() >= SYNC_TOGETHER
        && is_one
        && let Some(first) = all.first()
        && first.named.directories.first().is_some_and(|directory| rustix::fs::syncfs(directory).is_ok())
    {
        return;
    }
    for Prepared { how, partial, .. } in prepared {
        let synced = match partial {
            Ok(partial) if how.syncs => partial.sync_all(),
            _ => Ok(()),
        };
        if let Err(failure) = synced {
            *partial = Err(failure);
        }
    }
}

impl DirectoryTime {
    fn set(&self, directory: &Directory) -> Result<(), Errno> {
        let Self(properties, is_ours) = self;
        if_owned(properties.set_time(directory), *is_ours)
    }
}

/// The result of an attempt to set properties of a directory. The system lets only the owner of one that existed before do that.
fn if_owned(set: Result<(), Errno>, is_ours: bool) -> Result<(), Errno> {
    if is_ours { set } else { set.or_else(|error| if error == Errno::PERM { Ok(()) } else { Err(error) }) }
}

/// Gives a directory its properties, without the time.
fn finish(directory: &Directory, properties: &TargetProperties, is_ours: bool) -> Result<(), Errno> {
    if !is_ours {
        return if_owned(properties.set_but_time(directory), is_ours);
    }
    // The mode may forbid to take the mark off.
    directory.unmark();
    let Some(mode) = properties.mode else { return properties.set_but_time(directory) };
    properties.without_mode().set_but_time(directory)?;
    properties.if_there_are_modes(directory.set_mode(mode))
}

/// Synchronises each directory once, even after failures of others.
fn synced(all: Vec<Named>) -> Vec<CommitResult> {
    let mut results: Vec<(Arc<Directory>, Result<(), Errno>)> = Vec::new();
    for directory in all.iter().flat_map(|named| &named.directories) {
        if !results.iter().any(|(its, _)| its.is_same(directory)) {
            results.push((Arc::clone(directory), directory.sync()));
        }
    }
    let outcome = |named: Named| {
        let mine = |directory: &Arc<Directory>| named.directories.iter().any(|its| its.is_same(directory));
        let result = results.iter().filter(|(directory, _)| mine(directory)).try_for_each(|(_, result)| *result);
        let time = || named.time.as_ref().zip(named.directories.first());
        let result = result.and_then(|()| time().map_or(Ok(()), |(time, directory)| time.set(directory)));
        (named.id, result.map_err(|error| failure("write the directory to the disk", error)))
    };
    all.into_iter().map(outcome).collect()
}
