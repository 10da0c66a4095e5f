//! Waiting for space on a full disk, as a copy with `--wait-for-space` wants it.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use farhaul_session::Failure;

/// Interval of looks for an end of the copy.
const LOOK: Duration = Duration::from_millis(100);
/// Looks between two attempts: a second.
const LOOKS_PER_ATTEMPT: u32 = 10;
/// Attempts until a wait is given up: 9 min. A daemon that sends ends connections on which nothing is read for 10 min.
const ATTEMPTS: u32 = 540;

/// Tries again while a disk is full. Several threads of a store may wait at the same time.
pub struct Patience {
    /// Hears of each wait as it begins.
    waits: Box<dyn Fn() + Send + Sync>,
    /// Whether the copy ends.
    ends: Box<dyn Fn() -> bool + Send + Sync>,
    attempts: u32,
    /// A wait was in vain. Then nothing waits any more.
    is_over: AtomicBool,
}

impl Patience {
    /// `waits` hears of each wait as it begins, on the thread that waits. A wait ends early once `ends` says that the copy does.
    pub fn new(waits: impl Fn() + Send + Sync + 'static, ends: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self { waits: Box::new(waits), ends: Box::new(ends), attempts: ATTEMPTS, is_over: AtomicBool::new(false) }
    }

    fn retry<T>(&self, full: Failure, mut attempt: impl FnMut() -> Result<T, Failure>) -> Result<T, Failure> {
        if self.is_over.load(Ordering::Acquire) {
            return Err(full);
        }
        (self.waits)();
        for _ in 0..self.attempts {
            for _ in 0..LOOKS_PER_ATTEMPT {
                if (self.ends)() || self.is_over.load(Ordering::Acquire) {
                    return Err(full);
                }
                thread::park_timeout(LOOK);
            }
            match attempt() {
                Err(failure) if failure.code.is_out_of_space() => {}
                done => return done,
            }
        }
        self.is_over.store(true, Ordering::Release);
        Err(full)
    }
}

impl fmt::Debug for Patience {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Patience").field("is_over", &self.is_over).finish_non_exhaustive()
    }
}

/// The result of an attempt. With patience, it is repeated while the disk is full.
pub(super) fn patiently<T>(
    patience: Option<&Patience>,
    mut attempt: impl FnMut() -> Result<T, Failure>,
) -> Result<T, Failure> {
    match (attempt(), patience) {
        (Err(full), Some(patience)) if full.code.is_out_of_space() => patience.retry(full, attempt),
        (done, _) => done,
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::Arc;
    use std::sync::atomic::AtomicU32;

    use farhaul_session::FailCode;

    use super::*;

    /// The result of an attempt that succeeds at this time, the number of attempts, and that of waits.
    fn tried(patience: &Patience, succeeds_at: u32, failure: FailCode) -> (bool, u32) {
        let attempts = Cell::new(0);
        let done = patiently(Some(patience), || {
            attempts.set(attempts.get() + 1);
            if attempts.get() == succeeds_at { Ok(()) } else { Err(failure.into()) }
        });
        (done.is_ok(), attempts.get())
    }

    #[test]
    fn a_full_disk_is_tried_again_and_given_up_once_for_all() {
        let waits = Arc::<AtomicU32>::default();
        let its = Arc::clone(&waits);
        let counts = move || {
            its.fetch_add(1, Ordering::Relaxed);
        };
        let patience = Patience { attempts: 1, ..Patience::new(counts, || false) };
        assert_eq!(tried(&patience, 1, FailCode::NoSpace), (true, 1));
        assert_eq!(tried(&patience, 9, FailCode::Io), (false, 1), "another failure is none of its business");
        assert_eq!(waits.load(Ordering::Relaxed), 0);
        assert_eq!(tried(&patience, 2, FailCode::Quota), (true, 2));
        assert_eq!(tried(&patience, 9, FailCode::NoSpace), (false, 2));
        assert_eq!(tried(&patience, 2, FailCode::NoSpace), (false, 1), "nothing waits any more");
        assert_eq!(waits.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn nothing_waits_for_a_copy_that_ends_or_without_patience() {
        assert_eq!(tried(&Patience::new(|| (), || true), 2, FailCode::NoSpace), (false, 1));
        assert!(patiently(None, || Err::<(), _>(FailCode::NoSpace.into())).is_err());
    }
}
