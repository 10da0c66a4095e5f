//! Forks of the process: handles belong to the parent, because the threads behind them exist there alone.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

/// This process was forked off one that had handles.
static FORKED: AtomicBool = AtomicBool::new(false);

extern "C" fn note_fork() {
    FORKED.store(true, Ordering::Relaxed);
}

/// Notes forks of this process from now on. Called before the first thread of this library exists.
pub(crate) fn watch_forks() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handler has the type that is asked for, lives as long as the program, and only stores to an atomic, which is
        // permitted in the child of a program with threads. Without memory for it, forks stay unnoticed.
        unsafe { libc::pthread_atfork(None, None, Some(note_fork)) };
    });
}

/// Whether the handles of this process are those of its parent.
pub(crate) fn is_forked() -> bool {
    FORKED.load(Ordering::Relaxed)
}

/// Drops a handle. In a forked process it stays, because its threads are gone and its locks may be held for ever.
pub(crate) fn leave<T>(handle: Option<Box<T>>) {
    if is_forked() {
        std::mem::forget(handle);
    } else {
        let _ = catch_unwind(AssertUnwindSafe(|| drop(handle)));
    }
}
