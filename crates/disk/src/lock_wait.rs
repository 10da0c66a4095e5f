//! Waiting for an incomplete file that another copy holds, and whose sender may be dead.
//!
//! A sender that was killed says nothing. Its session holds the incomplete file until the silence has lasted long enough, and the
//! same command, repeated meanwhile, would begin anew. A copy that runs shows itself by its writes.

use std::fmt;
use std::fs::File;
use std::thread;
use std::time::Duration;

use rustix::fs::{FlockOperation, Stat, flock, fstat};

/// A shorter file is sent again rather than waited for: the most bytes that a copy that goes on should send twice.
const WORTH: i64 = 64 << 20;
/// Interval of looks.
const LOOK: Duration = Duration::from_millis(100);
/// Looks after which a file that still changes has a copy that runs. A session writes what had arrived when its sender died.
const LOOKS_OF_DOUBT: u32 = 30;
/// A copy that runs writes within so many looks.
const LOOKS_OF_WRITES: u32 = 5;
/// Looks beyond the silence, for the end of the session.
const LOOKS_OF_END: u32 = 50;

/// Waits until another copy gives up its incomplete file, if that copy is likely to be dead.
pub struct LockWait {
    looks: u32,
    /// Whether the copy that waits ends.
    ends: Box<dyn Fn() -> bool + Send + Sync>,
    /// Ends older sessions of the same copy whose client is dead, and tells whether there are any.
    older: Box<dyn Fn() -> bool + Send + Sync>,
}

impl LockWait {
    /// `silence` is the longest time for which sessions of this program wait for a dead peer.
    pub fn new(silence: Duration, ends: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        let looks = u32::try_from(silence.as_millis() / LOOK.as_millis()).unwrap_or(u32::MAX);
        Self { looks: looks.saturating_add(LOOKS_OF_END), ends: Box::new(ends), older: Box::new(|| false) }
    }

    /// The same with a function that ends older sessions of the same copy whose client is dead. It tells whether there are any.
    pub fn hurried_by(self, older: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self { older: Box::new(older), ..self }
    }

    /// Locks `file` once nobody else does. Returns false if the other copy goes on, or if the file is not worth the wait.
    pub(super) fn locks(&self, file: &File) -> bool {
        let written = || fstat(file).map(|stat| (stat.st_size, changed(&stat)));
        let Ok(mut last) = written() else { return false };
        // A session of the same copy is known to be dead soon.
        let has_older = (self.older)();
        let most = match last.0 < WORTH {
            true if has_older => LOOKS_OF_DOUBT + LOOKS_OF_WRITES,
            true => return false,
            false => self.looks,
        };
        let mut quiet = 0;
        for look in 0..most {
            if has_older {
                (self.older)();
            }
            if flock(file, FlockOperation::NonBlockingLockExclusive).is_ok() {
                return true;
            }
            let is_running = look >= LOOKS_OF_DOUBT && quiet < LOOKS_OF_WRITES;
            if is_running || (self.ends)() {
                return false;
            }
            thread::park_timeout(LOOK);
            match written() {
                Ok(now) if now == last => quiet += 1,
                Ok(now) => (last, quiet) = (now, 0),
                Err(_) => return false,
            }
        }
        false
    }
}

fn changed(stat: &Stat) -> (i64, u64) {
    (stat.st_mtime, stat.st_mtime_nsec)
}

impl fmt::Debug for LockWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockWait").field("looks", &self.looks).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// Two handles of one file of this length, the first of which holds it.
    fn held(name: &str, len: i64) -> (File, File) {
        let folder = std::env::temp_dir().join(format!("farhaul-lock-wait-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join(name);
        let holder = File::create(&path).unwrap();
        holder.set_len(len as u64).unwrap();
        flock(&holder, FlockOperation::NonBlockingLockExclusive).unwrap();
        let waiting = File::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        (holder, waiting)
    }

    fn wait(silence: Duration) -> LockWait {
        LockWait::new(silence, || false)
    }

    #[test]
    fn the_file_of_a_dead_copy_is_taken_once_its_session_ends() {
        let (holder, waiting) = held("dead", WORTH);
        thread::scope(|scope| {
            let waits = scope.spawn(|| wait(Duration::from_secs(30)).locks(&waiting));
            thread::park_timeout(LOOK);
            drop(holder);
            assert!(waits.join().unwrap());
        });
    }

    #[test]
    fn a_copy_that_writes_on_keeps_its_file() {
        let (holder, waiting) = held("running", WORTH);
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut len = WORTH as u64;
                while !is_over.load(Ordering::Relaxed) {
                    len += 1;
                    holder.set_len(len).unwrap();
                    thread::park_timeout(LOOK / 2);
                }
            });
            let locked = wait(Duration::from_secs(600)).locks(&waiting);
            is_over.store(true, Ordering::Relaxed);
            assert!(!locked);
        });
    }

    #[test]
    fn a_short_file_of_a_dead_session_of_the_same_copy_is_waited_for() {
        let (holder, short) = held("older", WORTH - 1);
        let holder = std::sync::Mutex::new(Some(holder));
        let looks = std::sync::atomic::AtomicU32::new(0);
        // The session ends at the third look.
        let older = move || {
            if looks.fetch_add(1, Ordering::Relaxed) == 3 {
                drop(holder.lock().unwrap().take());
            }
            true
        };
        assert!(wait(Duration::from_secs(600)).hurried_by(older).locks(&short));
    }

    #[test]
    fn nothing_waits_for_a_short_file_for_ever_or_for_a_copy_that_ends() {
        let (_holder, short) = held("short", WORTH - 1);
        assert!(!wait(Duration::from_secs(600)).locks(&short));
        let (_holder, long) = held("long", WORTH);
        assert!(!LockWait::new(Duration::from_secs(600), || true).locks(&long));
        let few = LockWait { looks: 3, ends: Box::new(|| false), older: Box::new(|| false) };
        assert!(!few.locks(&long));
    }
}
