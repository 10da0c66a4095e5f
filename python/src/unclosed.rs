//! Warnings of objects that are dropped.

use std::ffi::CString;

use pyo3::exceptions::{PyResourceWarning, PyRuntimeWarning};
use pyo3::prelude::*;

use crate::attach::attach;

/// Warns of an object that nobody closed, as Python does for its sockets and files. `shown` is its `repr`.
pub(crate) fn warn_unclosed(shown: &str) {
    attach(|py| warn(py, &py.get_type::<PyResourceWarning>(), &format!("unclosed {shown}")));
}

/// Warns of a call that nobody awaited, as Python does for its coroutines, if `is_one`.
pub(crate) fn warn_never_awaited(is_one: impl FnOnce() -> bool) {
    attach(|py| {
        if is_one() {
            warn(py, &py.get_type::<PyRuntimeWarning>(), "a call of farhaul was never awaited");
        }
    });
}

/// Keeps an exception that is on its way: a warning runs code of Python.
fn warn(py: Python<'_>, kind: &Bound<'_, PyAny>, text: &str) {
    let current = PyErr::take(py);
    let warned = CString::new(text).map_err(PyErr::from).and_then(|text| PyErr::warn(py, kind, &text, 1));
    if let Err(error) = warned {
        error.write_unraisable(py, None);
    }
    if let Some(current) = current {
        current.restore(py);
    }
}
