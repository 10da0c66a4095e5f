//! What every call from C passes: the check for a fork, the end of panics, and its error object.

use std::any::Any;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::FarhaulError;
use crate::fault::Fault;
use crate::result::FarhaulResult;

/// Where a call leaves its error object, if C wants one.
pub(crate) type ErrorOut<'a> = Option<&'a mut MaybeUninit<*mut FarhaulError>>;

/// This process was forked off one that had handles. The threads behind them exist in the parent alone.
static FORKED: AtomicBool = AtomicBool::new(false);

extern "C" fn note_fork() {
    FORKED.store(true, Ordering::Relaxed);
}

/// Notes forks of this process from now on. Called before the first thread of this library exists.
fn watch_forks() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handler has the type that is asked for, lives as long as the program, and only stores to an atomic, which is
        // permitted in the child of a program with threads. Without memory for it, forks stay unnoticed.
        unsafe { libc::pthread_atfork(None, None, Some(note_fork)) };
    });
}

/// Runs the body of an exported function. No panic crosses it. A body without a result of its own has succeeded at its end.
pub(crate) fn border<T: Into<FarhaulResult>>(
    error: ErrorOut<'_>,
    call: impl FnOnce() -> Result<T, Fault>,
) -> FarhaulResult {
    watch_forks();
    let done = if FORKED.load(Ordering::Relaxed) {
        Err(Fault::new(
            FarhaulResult::Forked,
            "this process was forked: handles belong to its parent; open new ones after exec",
        ))
    } else {
        // The states behind handles have locks of their own, which note a panic.
        catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| Err(of_panic(panic.as_ref())))
    };
    let (result, object) = match done {
        Ok(done) => (done.into(), std::ptr::null_mut()),
        Err(fault) if error.is_some() => (fault.result, Box::into_raw(Box::new(FarhaulError::of(fault)))),
        Err(fault) => (fault.result, std::ptr::null_mut()),
    };
    if let Some(error) = error {
        error.write(object);
    }
    result
}

/// The same for functions that change the settings behind a handle.
pub(crate) fn change<H>(
    handle: Option<&mut H>,
    argument: &str,
    error: ErrorOut<'_>,
    change: impl FnOnce(&mut H) -> Result<(), Fault>,
) -> FarhaulResult {
    border(error, || change(handle.ok_or_else(|| Fault::null(argument))?))
}

/// The same for functions that return a value of their own, which is `otherwise` after a fork or a panic.
pub(crate) fn border_of<T>(otherwise: T, call: impl FnOnce() -> T) -> T {
    watch_forks();
    if FORKED.load(Ordering::Relaxed) {
        return otherwise;
    }
    catch_unwind(AssertUnwindSafe(call)).unwrap_or(otherwise)
}

/// Drops a handle. In a forked process it stays, because its threads are gone and its locks may be held for ever.
pub(crate) fn leave<T>(handle: Option<Box<T>>) {
    if FORKED.load(Ordering::Relaxed) {
        std::mem::forget(handle);
    } else {
        let _ = catch_unwind(AssertUnwindSafe(|| drop(handle)));
    }
}

/// Gives C what it owns from now on.
pub(crate) fn give<T>(out: Option<&mut MaybeUninit<*mut T>>, value: T) -> Result<(), Fault> {
    let out = out.ok_or_else(|| Fault::null("out"))?;
    out.write(Box::into_raw(Box::new(value)));
    Ok(())
}

fn of_panic(panic: &(dyn Any + Send)) -> Fault {
    let words = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let words = words.unwrap_or("without a message");
    Fault::new(FarhaulResult::Panic, format!("a defect of this library: {words}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_result_with_its_words() {
        let mut error = MaybeUninit::uninit();
        assert_eq!(
            border(Some(&mut error), || -> Result<(), Fault> { panic!("a broken promise") }),
            FarhaulResult::Panic
        );
        // SAFETY: every call writes it, and this one has failed.
        let error = unsafe { Box::from_raw(error.assume_init()) };
        assert!(format!("{error:?}").contains("a broken promise"), "{error:?}");
        assert_eq!(border(None, || -> Result<(), Fault> { panic!("again") }), FarhaulResult::Panic);
        assert_eq!(border_of(7, || panic!("and again")), 7);
    }

    #[test]
    fn a_call_that_succeeds_leaves_no_error() {
        let mut error = MaybeUninit::new(std::ptr::dangling_mut());
        assert_eq!(border(Some(&mut error), || Ok(FarhaulResult::WouldBlock)), FarhaulResult::WouldBlock);
        // SAFETY: every call writes it.
        assert!(unsafe { error.assume_init() }.is_null());
    }
}
