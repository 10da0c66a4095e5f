//! Commits in the background: a few threads make complete files safe from a crash while the session goes on.
//!
//! A commit waits for the disk twice: for the file and for its directory. These waits dominate a copy of many small
//! files. So files wait in parallel, and one wait for a directory serves all files renamed since the last one.

mod tasks;

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use farhaul_session::EntryId;

use self::tasks::{CommitResult, Done, Named, Task};
pub(super) use self::tasks::{Complete, DirectoryCommit, FileCommit};
use super::descriptors::Permit;
use super::directory::Identity;

/// Most threads. File systems merge the waits of files that are synchronised in parallel, and more than a few threads
/// gain nothing.
const THREADS: usize = 4;
/// Most running commits of one store. All stores of the process share the [`Permit`]s. The number is far below the 4096
/// unanswered files that a sender of this project allows, so no sender stalls.
const UNDER_WAY: usize = 128;

/// Running commits at which a caller that waited goes on with small files. It brings more than one to the threads.
const RESUMED: usize = UNDER_WAY - BATCH;

/// Most files that one thread makes, synchronises and names at a time.
const BATCH: usize = 32;
/// Small files for which another thread begins: fewer cost less than its wake-up.
const GATHERED: usize = 8;
/// While more files wait, this many are renamed before their directories are synchronised. One wait for eight files
/// costs little and delays the answers only briefly.
const TOGETHER: usize = 8;

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
    /// What is [awaited](CommitState::awaited) holds.
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
    /// The caller waits until no more entries than these are without an outcome.
    awaited: Option<usize>,
    outcomes: VecDeque<CommitResult>,
    is_ending: bool,
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
        self.shared.wait_for(0);
    }

    /// Adds a commit. A busy thread takes it when it looks for its next task, so that small files gather for one wait. Another
    /// thread is called for a task that waits for nobody.
    fn submit(&mut self, put: impl FnOnce(&mut CommitState, Permit)) {
        let resumed = self.shared.state().resumed();
        if let Some(resumed) = resumed {
            self.shared.wait_for(resumed);
        }
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

    /// Waits until no more entries than `most` are without an outcome.
    fn wait_for(&self, most: usize) {
        let mut state = self.state();
        while state.under_way > most {
            state.awaited = Some(most);
            state = self.progress.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
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
        let under_way = state.under_way;
        if state.awaited.take_if(|most| under_way <= *most).is_some() {
            self.progress.notify_one();
        }
        state
    }
}

impl CommitState {
    /// The number of running commits at which a caller goes on that has to wait. Large files may take long.
    fn resumed(&self) -> Option<usize> {
        let has_small = || self.files.iter().any(|(commit, _)| matches!(commit.content, Complete::Small(_)));
        (self.under_way >= UNDER_WAY).then(|| if has_small() { RESUMED } else { UNDER_WAY - 1 })
    }

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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use std::os::unix::fs::MetadataExt;

    use farhaul_session::{Ends, Mtime};

    use super::*;
    use crate::directory::Directory;
    use crate::partial::Commitment;
    use crate::properties::TargetProperties;
    use crate::small_file::SmallFile;

    #[test]
    fn without_threads_the_caller_does_the_work() {
        let shared = Shared::default();
        let here = Arc::new(Directory::open(&std::env::temp_dir()).unwrap());
        let id = EntryId(7);
        shared.state().named.push(Named { id, directories: vec![here], time: None, _permit: Permit::take() });
        shared.state().under_way = 1;
        shared.work_here();
        assert_eq!(shared.state().outcomes, [(id, Ok(()))]);
        assert_eq!(shared.state().under_way, 0);
    }

    #[test]
    fn a_directory_gets_its_time_once_its_names_survive_a_crash() {
        let path = std::env::temp_dir().join(format!("farhaul-time-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        let directory = Arc::new(Directory::open(&path).unwrap());
        let properties = TargetProperties::plain(None, Mtime { seconds: 7, nanos: 0 });
        for is_ours in [true, false] {
            let (directory, parent, properties) = (Arc::clone(&directory), Arc::clone(&directory), properties.clone());
            let commit = DirectoryCommit { id: EntryId(0), directory, parent, properties, is_ours, syncs: true };
            let done = Task::Directory(commit, Permit::take()).perform();
            let seconds = || std::fs::metadata(&path).unwrap().mtime();
            assert_ne!(seconds(), 7, "a copy that is killed here leaves it to the next one");
            let named = done.into_iter().map(|done| match done {
                Done::Named(named) => named,
                other => panic!("{other:?}"),
            });
            Task::Sync(named.collect()).perform();
            assert_eq!(seconds(), 7);
            std::fs::create_dir_all(path.join("sub")).unwrap();
        }
        std::fs::remove_dir_all(&path).unwrap();
    }

    #[test]
    fn small_files_gather_while_a_thread_is_busy() {
        let here = Arc::new(Directory::open(&std::env::temp_dir()).unwrap());
        let mut state = CommitState::default();
        for number in 1..=2 * BATCH {
            let (directory, content) = (Arc::clone(&here), Vec::new());
            let name = farhaul_session::Component::new(b"name").unwrap();
            let file = SmallFile { directory, name, claims: Arc::default(), content, is_new: true };
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
        let named = Named { id: EntryId(0), directories: vec![Arc::clone(&mine)], time: None, _permit: Permit::take() };
        state.on_done(Done::Named(named));
        assert!(matches!(state.next_task(), Some(Task::Sync(named)) if named.len() == 1));
        assert!(matches!(state.next_task(), Some(Task::Directory(DirectoryCommit { id: EntryId(1), .. }, _))));
    }
}
