//! Commits in the background: a few threads make complete files safe from a crash while the session goes on.
//!
//! A commit waits for the disk twice: for the file and for its directory. These waits dominate a copy of many small
//! files. So files wait in parallel, and one wait for a directory serves all files renamed since the last one.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use farhaul_session::{EntryId, Failure};
use rustix::io::Errno;

use super::descriptors::Permit;
use super::directory::{Directory, Identity};
use super::failure::failure;
use super::partial::{Commitment, Partial, SmallFile};
use super::patience::{Patience, patiently};
use super::properties::TargetProperties;

/// Most threads. File systems merge the waits of files that are synchronised in parallel, and more than a few threads
/// gain nothing.
const THREADS: usize = 4;
/// Most running commits of one store. All stores of the process share the [`Permit`]s. The number is far below the 4096
/// unanswered files that a sender of this project allows, so no sender stalls.
const UNDER_WAY: usize = 128;

/// Most files that one thread makes, synchronises and names at a time.
const BATCH: usize = 32;
/// Small files for which another thread begins: fewer cost less than its wake-up.
const GATHERED: usize = 8;
/// From this number of files on, one wait for the whole file system costs less than a wait for each of them.
const SYNC_TOGETHER: usize = 8;

/// While more files wait, this many are renamed before their directories are synchronised. One wait for eight files
/// costs little and delays the answers only briefly.
const TOGETHER: usize = 8;

/// The result of an entry.
type CommitResult = (EntryId, Result<(), Failure>);

/// The threads and their tasks. Dropping it waits for all of them.
#[derive(Debug, Default)]
pub(super) struct Commits {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<CommitState>,
    /// A task is ready, or no task will come any more.
    work: Condvar,
    /// A task has completed.
    progress: Condvar,
}

#[derive(Debug, Default)]
struct CommitState {
    files: VecDeque<(FileCommit, Permit)>,
    /// In order of completion: a directory comes after those inside it.
    directories: VecDeque<(DirectoryCommit, Permit)>,
    /// Files without their final names yet, and the directories of these names.
    unnamed: Vec<(EntryId, Identity)>,
    /// Entries that survive a crash once their directories are synchronised.
    named: Vec<Named>,
    /// A thread is synchronising directories. Files renamed meanwhile wait for the next time.
    is_syncing: bool,
    /// Threads that perform tasks or look for one, and those that wait to be called.
    busy: usize,
    idle: usize,
    /// Calls that no idle thread has answered yet.
    calls: usize,
    /// Entries without an outcome.
    under_way: usize,
    outcomes: VecDeque<CommitResult>,
    is_ending: bool,
}

/// A file whose content is complete and verified.
#[derive(Debug)]
pub(super) struct FileCommit {
    pub(super) id: EntryId,
    pub(super) content: Complete,
    pub(super) how: Commitment,
}

/// The content of a complete file.
#[derive(Debug)]
pub(super) enum Complete {
    /// Under a temporary name.
    Written(Box<Partial>),
    /// In memory. The file is made by the thread that commits it.
    Small(SmallFile),
}

impl Complete {
    fn directory(&self) -> &Arc<Directory> {
        match self {
            Self::Written(partial) => &partial.directory,
            Self::Small(file) => &file.directory,
        }
    }

    fn written(self, patience: Option<&Patience>) -> Result<Partial, Failure> {
        match self {
            Self::Written(partial) => Ok(*partial),
            Self::Small(file) => patiently(patience, || file.write()),
        }
    }
}

/// A directory whose entries have all been started.
#[derive(Debug)]
pub(super) struct DirectoryCommit {
    pub(super) id: EntryId,
    pub(super) directory: Arc<Directory>,
    /// The directory of its own name.
    pub(super) parent: Arc<Directory>,
    /// Its mode is `None` for a directory that existed before the copy, unless the copy keeps permissions.
    pub(super) properties: TargetProperties,
    /// Whether this copy, or a broken one before it, has made it.
    pub(super) is_ours: bool,
    /// Whether its names are to survive a crash.
    pub(super) syncs: bool,
}

#[derive(Debug)]
struct Named {
    id: EntryId,
    /// Those to synchronise.
    directories: Vec<Arc<Directory>>,
    /// Returned when the directories are closed.
    _permit: Permit,
}

#[derive(Debug)]
enum Task {
    Files(Vec<(FileCommit, Permit)>),
    Directory(DirectoryCommit, Permit),
    Sync(Vec<Named>),
}

impl Commits {
    /// Starts to commit a file. Waits while too many commits are running.
    pub(super) fn file(&mut self, commit: FileCommit) {
        self.submit(|state, permit| {
            state.unnamed.push((commit.id, commit.content.directory().identity()));
            state.files.push_back((commit, permit));
        });
    }

    /// Starts to commit a directory. Its mode and time are set after the files in it have their names.
    pub(super) fn directory(&mut self, commit: DirectoryCommit) {
        self.submit(|state, permit| state.directories.push_back((commit, permit)));
    }

    /// The next result, if there is one.
    pub(super) fn poll(&self) -> Option<CommitResult> {
        self.shared.state().outcomes.pop_front()
    }

    /// Waits until no commit is running.
    pub(super) fn wait_for_all(&self) {
        drop(self.shared.wait_until(|state| state.under_way == 0));
    }

    /// Adds a commit. A busy thread takes it when it looks for its next task, so that small files gather for one wait. Another
    /// thread is called for a task that waits for nobody.
    fn submit(&mut self, put: impl FnOnce(&mut CommitState, Permit)) {
        drop(self.shared.wait_until(|state| state.under_way < UNDER_WAY));
        // Waits for a permit without the lock, which threads need to return permits. No other caller adds commits
        // meanwhile.
        let permit = Permit::take();
        let mut state = self.shared.state();
        put(&mut state, permit);
        state.under_way += 1;
        let has_help = state.busy + state.calls > 0;
        if has_help && !state.is_worth_another_thread() || self.shared.call(&mut state) {
            return;
        }
        if self.threads.len() < THREADS {
            state.busy += 1;
            drop(state);
            let shared = Arc::clone(&self.shared);
            match thread::Builder::new().name("farhaul:disk".into()).spawn(move || shared.work()) {
                Ok(thread) => self.threads.push(thread),
                Err(_) => self.shared.state().busy -= 1,
            }
        } else {
            drop(state);
        }
        if self.threads.is_empty() {
            // The system refused all threads, so the caller does the work.
            self.shared.work_here();
        }
    }
}

impl Drop for Commits {
    fn drop(&mut self) {
        self.shared.state().is_ending = true;
        self.shared.work.notify_all();
        for thread in self.threads.drain(..) {
            // The thread itself reported a panic.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, CommitState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_until(&self, holds: impl Fn(&CommitState) -> bool) -> MutexGuard<'_, CommitState> {
        self.progress.wait_while(self.state(), |state| !holds(state)).unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls an idle thread. Returns whether there is one.
    fn call(&self, state: &mut CommitState) -> bool {
        let is_there = state.calls < state.idle;
        if is_there {
            state.calls += 1;
            self.work.notify_one();
        }
        is_there
    }

    /// The loop of a thread.
    fn work(&self) {
        let mut state = self.state();
        loop {
            state = match state.next_task() {
                Some(task) => {
                    // Others go on while this one waits for directories.
                    let leaves_files = !matches!(task, Task::Files(_)) && !state.files.is_empty();
                    if leaves_files || state.files.len() >= GATHERED {
                        self.call(&mut state);
                    }
                    self.perform(task, state)
                }
                // The remaining threads do the tasks that follow from theirs.
                None if state.is_ending => return,
                None => self.wait_for_call(state),
            };
        }
    }

    fn wait_for_call<'a>(&self, mut state: MutexGuard<'a, CommitState>) -> MutexGuard<'a, CommitState> {
        (state.busy, state.idle) = (state.busy - 1, state.idle + 1);
        let is_not_called = |state: &mut CommitState| state.calls == 0 && !state.is_ending;
        let mut state = self.work.wait_while(state, is_not_called).unwrap_or_else(PoisonError::into_inner);
        state.calls = state.calls.saturating_sub(1);
        (state.busy, state.idle) = (state.busy + 1, state.idle - 1);
        state
    }

    /// Performs all ready tasks on this thread.
    fn work_here(&self) {
        let mut state = self.state();
        while let Some(task) = state.next_task() {
            state = self.perform(task, state);
        }
    }

    fn perform<'a>(&'a self, task: Task, state: MutexGuard<'a, CommitState>) -> MutexGuard<'a, CommitState> {
        drop(state);
        let done = task.perform();
        let mut state = self.state();
        done.into_iter().for_each(|done| state.on_done(done));
        self.progress.notify_all();
        state
    }
}

impl CommitState {
    /// Whether the last commit does not gather with others: the content of a large file, a directory, or one that completes a group.
    fn is_worth_another_thread(&self) -> bool {
        let is_small = |(commit, _): &(FileCommit, Permit)| matches!(commit.content, Complete::Small(_));
        self.files.len().is_multiple_of(GATHERED) || !self.files.back().is_some_and(is_small)
    }

    /// The next task. One thread at a time synchronises directories, for all entries that wait for that.
    fn next_task(&mut self) -> Option<Task> {
        let is_worth_it = self.named.len() >= TOGETHER || self.files.is_empty() && !self.named.is_empty();
        if !self.is_syncing && is_worth_it {
            self.is_syncing = true;
            return Some(Task::Sync(std::mem::take(&mut self.named)));
        }
        let is_complete = |(commit, _): &(DirectoryCommit, Permit)| {
            !self.unnamed.iter().any(|(_, directory)| *directory == commit.directory.identity())
        };
        if let Some(position) = self.directories.iter().position(is_complete) {
            return self.directories.remove(position).map(|(commit, permit)| Task::Directory(commit, permit));
        }
        let mut files: Vec<_> = self.files.pop_front().into_iter().collect();
        // Others wait for large files alone, and small ones for each other.
        while files.len() < BATCH
            && self.files.front().is_some_and(|(commit, _)| matches!(commit.content, Complete::Small(_)))
        {
            files.extend(self.files.pop_front());
        }
        (!files.is_empty()).then_some(Task::Files(files))
    }

    fn on_done(&mut self, done: Done) {
        match done {
            Done::Named(named) => {
                self.unnamed.retain(|(id, _)| *id != named.id);
                self.named.push(named);
            }
            Done::Failed(id, failure) => {
                self.unnamed.retain(|(its, _)| *its != id);
                self.under_way -= 1;
                self.outcomes.push_back((id, Err(failure)));
            }
            Done::Synced(outcomes) => {
                self.is_syncing = false;
                self.under_way -= outcomes.len();
                self.outcomes.extend(outcomes);
            }
        }
    }
}

/// The result of a task.
#[derive(Debug)]
enum Done {
    /// The entry is in place, but a crash may still undo it.
    Named(Named),
    Failed(EntryId, Failure),
    Synced(Vec<CommitResult>),
}

impl Task {
    fn perform(self) -> Vec<Done> {
        match self {
            Self::Files(files) => commit_files(files),
            Self::Directory(DirectoryCommit { id, directory, parent, properties, is_ours, syncs }, permit) => {
                let set = finish(&directory, &properties, is_ours);
                let set = set.map_err(|error| failure("set the properties of the directory", error));
                let directories = if syncs { vec![directory, parent] } else { Vec::new() };
                vec![Done::of(Named { id, directories, _permit: permit }, set)]
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
            let partial = content
                .written(how.patience.as_deref())
                .and_then(|mut partial| partial.prepare(&how).map(|()| partial));
            (Named { id, directories, _permit: permit }, how, partial)
        })
        .collect();
    sync(&mut prepared);
    let named = |(named, how, partial): (Named, Commitment, Result<Partial, Failure>)| {
        Done::of(named, partial.and_then(|partial| partial.take_name(&how)))
    };
    prepared.into_iter().map(named).collect()
}

/// Makes the content of prepared files survive a crash.
fn sync(prepared: &mut [(Named, Commitment, Result<Partial, Failure>)]) {
    let to_sync = |(_, how, partial): &(Named, Commitment, Result<Partial, Failure>)| how.syncs && partial.is_ok();
    let all: Vec<_> = prepared.iter().filter(|item| to_sync(item)).collect();
    let devices: Vec<_> =
        all.iter().filter_map(|(named, ..)| Some(named.directories.first()?.identity().device())).collect();
    let is_one = devices.windows(2).all(|pair| pair[0] == pair[1]);
    if all.len() >= SYNC_TOGETHER
        && is_one
        && let Some((named, ..)) = all.first()
        && named.directories.first().is_some_and(|directory| rustix::fs::syncfs(directory).is_ok())
    {
        return;
    }
    for (_, how, partial) in prepared {
        let synced = match partial {
            Ok(partial) if how.syncs => partial.sync_all(),
            _ => Ok(()),
        };
        if let Err(failure) = synced {
            *partial = Err(failure);
        }
    }
}

/// Gives a directory its properties.
fn finish(directory: &Directory, properties: &TargetProperties, is_ours: bool) -> Result<(), Errno> {
    if !is_ours {
        // The system lets only the owner of a directory set them.
        return match properties.set(directory) {
            Err(Errno::PERM) => Ok(()),
            set => set,
        };
    }
    // The mode may forbid to take the mark off.
    directory.unmark();
    let Some(mode) = properties.mode else { return properties.set(directory) };
    properties.without_mode().set(directory)?;
    properties.if_there_are_modes(directory.set_mode(mode))?;
    properties.set_time(directory)
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
        (named.id, result.map_err(|error| failure("write the directory to the disk", error)))
    };
    all.into_iter().map(outcome).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use farhaul_session::{Ends, Mtime};

    use super::*;

    #[test]
    fn without_threads_the_caller_does_the_work() {
        let shared = Shared::default();
        let here = Arc::new(Directory::open(&std::env::temp_dir()).unwrap());
        let id = EntryId(7);
        shared.state().named.push(Named { id, directories: vec![here], _permit: Permit::take() });
        shared.state().under_way = 1;
        shared.work_here();
        assert_eq!(shared.state().outcomes, [(id, Ok(()))]);
        assert_eq!(shared.state().under_way, 0);
    }

    #[test]
    fn small_files_gather_while_a_thread_is_busy() {
        let here = Arc::new(Directory::open(&std::env::temp_dir()).unwrap());
        let mut state = CommitState::default();
        for number in 1..=2 * BATCH {
            let (directory, content) = (Arc::clone(&here), Vec::new());
            let name = farhaul_session::Component::new(b"name").unwrap();
            let file = SmallFile { directory, name, claims: Arc::default(), content };
            let properties = TargetProperties::plain(None, Mtime { seconds: 0, nanos: 0 });
            let how = Commitment {
                properties,
                keeps_permissions: false,
                syncs: true,
                patience: None,
                verify: None,
                ends: Ends::default(),
            };
            let commit = FileCommit { id: EntryId(0), content: Complete::Small(file), how };
            state.files.push_back((commit, Permit::take()));
            assert_eq!(state.is_worth_another_thread(), number % GATHERED == 0, "{number}");
        }
        assert!(matches!(state.next_task(), Some(Task::Files(files)) if files.len() == BATCH));
    }

    #[test]
    fn a_directory_waits_for_the_names_of_its_own_files_only() {
        let open = |path: &Path| Arc::new(Directory::open(path).unwrap());
        let (mine, other) = (open(&std::env::temp_dir()), open(Path::new("/")));
        let mtime = Mtime { seconds: 0, nanos: 0 };
        let commit = |id, directory: &Arc<Directory>| {
            let (directory, parent) = (Arc::clone(directory), Arc::clone(&other));
            let properties = TargetProperties::plain(None, mtime);
            let commit =
                DirectoryCommit { id: EntryId(id), directory, parent, properties, is_ours: false, syncs: true };
            (commit, Permit::take())
        };
        let mut state = CommitState { under_way: 3, ..CommitState::default() };
        // This is another handle of the same directory.
        state.unnamed.push((EntryId(0), open(&std::env::temp_dir()).identity()));
        state.directories.extend([commit(1, &mine), commit(2, &other)]);
        assert!(matches!(state.next_task(), Some(Task::Directory(DirectoryCommit { id: EntryId(2), .. }, _))));
        assert!(state.next_task().is_none());
        let named = Named { id: EntryId(0), directories: vec![Arc::clone(&mine)], _permit: Permit::take() };
        state.on_done(Done::Named(named));
        assert!(matches!(state.next_task(), Some(Task::Sync(named)) if named.len() == 1));
        assert!(matches!(state.next_task(), Some(Task::Directory(DirectoryCommit { id: EntryId(1), .. }, _))));
    }
}
