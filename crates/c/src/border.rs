//! What every call from C passes: the check for a fork, the end of panics, its error object, and its results.

use std::any::Any;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::argument::put;
use crate::error::FarhaulError;
use crate::fault::Fault;
use crate::fork::{is_forked, watch_forks};
use crate::result::FarhaulResult;

/// Where a call leaves its error object, if C wants one.
pub(crate) type ErrorOut<'a> = Option<&'a mut MaybeUninit<*mut FarhaulError>>;

/// Runs the body of an exported function. No panic crosses it. A body without a result of its own has succeeded at its end.
pub(crate) fn border<T: Into<FarhaulResult>>(
    error: ErrorOut<'_>,
    call: impl FnOnce() -> Result<T, Fault>,
) -> FarhaulResult {
    watch_forks();
    let done = if is_forked() {
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

/// The same for functions that read a value, which C gets if it wants it.
pub(crate) fn tell<T>(
    out: Option<&mut MaybeUninit<T>>,
    error: ErrorOut<'_>,
    read: impl FnOnce() -> Result<T, Fault>,
) -> FarhaulResult {
    border(error, || read().map(|value| put(out, value)))
}

/// The same for functions that make a handle, which C owns from now on.
pub(crate) fn give<H>(
    out: Option<&mut MaybeUninit<*mut H>>,
    error: ErrorOut<'_>,
    make: impl FnOnce() -> Result<H, Fault>,
) -> FarhaulResult {
    border(error, || {
        // Before something exists that nobody would get.
        let out = out.ok_or_else(|| Fault::null("out"))?;
        own(out, make()?);
        Ok(())
    })
}

/// Writes a handle, which C owns from now on.
pub(crate) fn own<H>(out: &mut MaybeUninit<*mut H>, handle: H) {
    out.write(Box::into_raw(Box::new(handle)));
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
    if is_forked() {
        return otherwise;
    }
    catch_unwind(AssertUnwindSafe(call)).unwrap_or(otherwise)
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
