//! Exceptions of callbacks, until somebody asks why a connection or an experiment ended.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;

use crate::error::controller_failed;
use crate::gate::hold;

/// Failures that are kept. The oldest is forgotten.
const KEPT: usize = 64;

/// Failures by the name of their controller, which no other one has.
static RECENT: Mutex<VecDeque<(String, Failure)>> = Mutex::new(VecDeque::new());

/// An exception in a callback.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The class.
    pub(super) controller: String,
    pub(super) callback: &'static str,
    pub(super) error: PyErr,
}

impl Failure {
    /// The exception for the user, with the exception of the callback as its cause.
    pub(crate) fn raised(self) -> PyErr {
        let Self { controller, callback, error } = self;
        Python::attach(|py| {
            let _passing = hold(py);
            let what = error.value(py).str().map(|text| text.to_string()).unwrap_or_default();
            let kind = error.get_type(py).name().map(|name| name.to_string()).unwrap_or_default();
            let message = format!("the controller {controller} raised {kind} in {callback}: {what}");
            let raised = controller_failed(&message);
            raised.set_cause(py, Some(error));
            raised
        })
    }
}

/// Keeps a failure under the controller's name.
pub(super) fn note(name: &str, failure: Failure) {
    let mut recent = lock(&RECENT);
    recent.push_back((name.to_owned(), failure));
    let oldest = if recent.len() > KEPT { recent.pop_front() } else { None };
    drop(recent);
    drop(oldest);
}

/// The failure of the controller of this name.
pub(crate) fn failure_of(name: &str) -> Option<Failure> {
    let mut recent = lock(&RECENT);
    let place = recent.iter().position(|(known, _)| known == name)?;
    recent.remove(place).map(|(_, failure)| failure)
}

/// The content, even after a panic: each is one value.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
