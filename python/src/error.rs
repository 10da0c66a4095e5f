//! Failures as exceptions.

use farhaul_transfer::{Error, Report as Figures};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::report::Report;

/// The code of an object that belongs to the parent process.
const FORKED: &str = "FORKED";

/// The exception for `error`.
pub(crate) fn raised(error: Error) -> PyErr {
    let Error { code, message, remedy, report, .. } = error;
    exception(code.symbol(), &message, remedy.as_deref(), report.map(|report| *report))
}

/// The exception for an argument that is wrong.
pub(crate) fn usage(message: impl Into<String>) -> PyErr {
    raised(Error::usage(message))
}

/// The exception for the use of an object of the parent process.
pub(crate) fn forked() -> PyErr {
    let message = "this object belongs to the parent process, whose threads a fork does not copy";
    exception(FORKED, message, Some("open a new one in this process, or start it by the method 'spawn'"), None)
}

fn exception(code: &str, message: &str, remedy: Option<&str>, report: Option<Figures>) -> PyErr {
    static MAKE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    Python::attach(|py| {
        let made = MAKE.import(py, "farhaul._errors", "_error").and_then(|make| {
            let report = report.map(|report| Report::of(py, &report)).transpose()?;
            make.call1((code, in_python(message), remedy.map(in_python), report))
        });
        made.map_or_else(|error| error, PyErr::from_value)
    })
}

/// Words for people who call functions: `--host-key` is their `host_key=`. Commands between backticks stay as they are.
fn in_python(words: &str) -> String {
    let mut text = String::with_capacity(words.len());
    for (index, part) in words.split('`').enumerate() {
        if index > 0 {
            text.push('`');
        }
        if index % 2 == 1 {
            text.push_str(part);
            continue;
        }
        let mut pieces = part.split("--");
        text.push_str(pieces.next().unwrap_or_default());
        for piece in pieces {
            let end = piece.find(|c: char| !(c.is_ascii_lowercase() || c == '-')).unwrap_or(piece.len());
            match piece.split_at(end) {
                ("", rest) => text.extend(["--", rest]),
                (name, rest) => text.extend([&*name.replace('-', "_"), "=", rest]),
            }
        }
    }
    text
}
