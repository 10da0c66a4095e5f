//! Open descriptors, which all copies of the process share: the number of copies that they permit, and permits for
//! commits.

use std::sync::{Condvar, LazyLock, Mutex, PoisonError};

use rustix::process::{Resource, getrlimit};

/// The permits of this process.
static PERMITS: Permits = Permits::new();
/// The limit of descriptors at the first copy.
static LIMIT: LazyLock<Option<u64>> = LazyLock::new(|| getrlimit(Resource::Nofile).current);

/// Most descriptors of a source, or of a store besides its commits. These are the root, the innermost directory, a
/// file, and two while it opens a directory.
const OF_A_COPY: u64 = 5;
/// Most descriptors of a commit: a file and its directory, or a directory and its parent. One more may be about to
/// close.
const OF_A_COMMIT: u64 = 3;
/// Commits get one in this many descriptors. At three descriptors each, that leaves more than half for everything else.
const SHARE: u64 = 8;
/// Least number of commits. With fewer, disks would wait for each other.
const AT_LEAST: u64 = 4;
/// Descriptors for standard streams, the connection, traces and the like.
const RESERVE: u64 = 20;

#[derive(Debug)]
struct Permits {
    counts: Mutex<Counts>,
    returned: Condvar,
}

#[derive(Debug, Default)]
struct Counts {
    taken: u64,
    /// Threads that wait for a permit. Without any, none is notified, which is a call of the system.
    waiting: u64,
}

/// Permits one commit until it is dropped.
#[derive(Debug)]
pub(super) struct Permit(&'static Permits);

impl Permit {
    /// Waits for a permit. Threads of their own complete the commits, so permits return without the waiting thread's
    /// help.
    pub(super) fn take() -> Self {
        PERMITS.take(commits(*LIMIT))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut counts = self.0.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.taken -= 1;
        if counts.waiting > 0 {
            self.0.returned.notify_one();
        }
    }
}

impl Permits {
    const fn new() -> Self {
        Self { counts: Mutex::new(Counts { taken: 0, waiting: 0 }), returned: Condvar::new() }
    }

    fn take(&'static self, most: u64) -> Permit {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        while counts.taken >= most {
            counts.waiting += 1;
            counts = self.returned.wait(counts).unwrap_or_else(PoisonError::into_inner);
            counts.waiting -= 1;
        }
        counts.taken += 1;
        Permit(self)
    }
}

/// The number of concurrent copies that the limit of open files permits to this process, at least one.
///
/// More copies may work, but single files may fail.
pub fn copies_at_a_time() -> usize {
    usize::try_from(copies(*LIMIT)).unwrap_or(usize::MAX)
}

/// The number of concurrent commits for this limit of descriptors.
fn commits(descriptors: Option<u64>) -> u64 {
    descriptors.map_or(u64::MAX, |descriptors| (descriptors / SHARE).max(AT_LEAST))
}

/// The same for copies.
fn copies(descriptors: Option<u64>) -> u64 {
    descriptors.map_or(u64::MAX, |all| {
        let left = all.saturating_sub(RESERVE + commits(descriptors) * OF_A_COMMIT);
        (left / OF_A_COPY).max(1)
    })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::thread;

    use super::*;

    #[test]
    fn copies_and_their_commits_fit_into_the_descriptors_of_the_process() {
        for descriptors in [64, 100, 256, 1024, 1 << 20] {
            let (commits, copies) = (commits(Some(descriptors)), copies(Some(descriptors)));
            assert!(commits * OF_A_COMMIT + copies * OF_A_COPY + RESERVE <= descriptors, "{descriptors}");
        }
        assert_eq!((commits(Some(1024)), copies(Some(1024))), (128, 124));
        assert_eq!((commits(Some(10)), copies(Some(10))), (AT_LEAST, 1));
        assert_eq!((commits(None), copies(None)), (u64::MAX, u64::MAX));
    }

    #[test]
    fn a_permit_that_comes_back_lets_the_next_commit_begin() {
        static TWO: Permits = Permits::new();
        let (first, _second) = (TWO.take(2), TWO.take(2));
        let (tell, told) = channel();
        thread::scope(|scope| {
            scope.spawn(move || {
                let third = TWO.take(2);
                tell.send(()).unwrap();
                drop(third);
            });
            assert!(told.try_recv().is_err());
            drop(first);
            told.recv().unwrap();
        });
        assert_eq!(TWO.counts.lock().unwrap().taken, 1);
    }
}
