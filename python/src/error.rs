//! Failures as exceptions.

use std::borrow::Cow;
use std::fmt::Display;
use std::io;

use farhaul::{Error as ConnectionError, units::Duration};
use farhaul_transfer::internal::text::worded;
use farhaul_transfer::{Code, Error, Report as Figures};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::controller::failure_of;
use crate::gate::hold;
use crate::report::Report;

/// The code of an object that belongs to the parent process.
const FORKED: &str = "FORKED";
/// The code of a call from a controller's callback.
const IN_CALLBACK: &str = "IN_CALLBACK";

/// The exception for `error`.
pub(crate) fn raised(error: Error) -> PyErr {
    with_failures(error, Vec::new())
}

/// The same with the files that failed, and their reasons.
pub(crate) fn with_failures(error: Error, failures: Vec<(String, String)>) -> PyErr {
    let Error { code, message, remedy, controller, report, .. } = error;
    // The exception of a controller in Python says more than its end.
    if let Some(failure) = controller.as_deref().and_then(failure_of) {
        return failure.raised();
    }
    exception(code.symbol(), &message, remedy.as_deref(), (report.map(|report| *report), failures))
}

/// The exception for an argument that is wrong.
pub(crate) fn usage(message: impl Into<String>) -> PyErr {
    raised(Error::usage(message))
}

/// The exception for a call of the library that concerned `peer`.
pub(crate) fn of_connection(error: &ConnectionError, peer: &dyn Display) -> PyErr {
    match error {
        ConnectionError::TimedOut(after) => timed_out(*after),
        ConnectionError::Cancelled => raised(Error::new(error.code(), "it was cancelled")),
        error => raised(Error::of_connection(error, peer)),
    }
}

/// The same for an error in the clothes of the standard library.
pub(crate) fn of_io(error: &io::Error, peer: &dyn Display) -> PyErr {
    let typed = error.get_ref().and_then(|inner| inner.downcast_ref::<ConnectionError>());
    match typed {
        Some(typed) => of_connection(typed, peer),
        None => raised(Error::new(Code::Failed, format!("{peer}: {error}"))),
    }
}

/// The exception for a call that had no result within its time-out.
pub(crate) fn timed_out(after: Duration) -> PyErr {
    exception(Code::TimedOut.symbol(), &format!("no result within {} s", after.as_secs_f64()), None, (None, Vec::new()))
}

/// The exception for the use of an object of the parent process.
pub(crate) fn forked() -> PyErr {
    let message = "this object belongs to the parent process, whose threads a fork does not copy";
    exception(
        FORKED,
        message,
        Some("open a new one in this process, or start it by the method 'spawn'"),
        (None, Vec::new()),
    )
}

/// The exception for a controller that raised one. Its cause has the traceback.
pub(crate) fn controller_failed(message: &str) -> PyErr {
    exception(Code::ControllerFailed.symbol(), message, None, (None, Vec::new()))
}

/// The exception for a call from a controller's callback.
pub(crate) fn in_callback() -> PyErr {
    let message = "a controller's callback cannot call the library: it holds the port that the call would wait for";
    exception(IN_CALLBACK, message, Some("note what to do, and let another thread do it"), (None, Vec::new()))
}

fn exception(
    code: &str,
    message: &str,
    remedy: Option<&str>,
    (report, failures): (Option<Figures>, Vec<(String, String)>),
) -> PyErr {
    static MAKE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    Python::attach(|py| {
        let _passing = hold(py);
        let made = MAKE.import(py, "farhaul._errors", "_error").and_then(|make| {
            let report = report.map(|report| Report::of(py, &report)).transpose()?;
            let failures: Vec<_> = failures.iter().map(|(path, why)| (path, in_python(why))).collect();
            make.call1((code, in_python(message), remedy.map(in_python), report, failures))
        });
        made.map_or_else(|error| error, PyErr::from_value)
    })
}

/// Words for people who call functions: the option ‹host-key› is their `host_key=`.
pub(crate) fn in_python(words: &str) -> Cow<'_, str> {
    worded(words, |name| format!("{}=", name.replace('-', "_")))
}
