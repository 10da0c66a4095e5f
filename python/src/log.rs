//! What the package tells Python's `logging`.
//!
//! Threads of Farhaul note lines, and never wait for the interpreter's lock to do so. Threads of Python pass them on when they come back
//! from a wait or a call.

use std::process;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{LazyLock, Mutex, TryLockError};

use farhaul_transfer::{Environment, Event};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

use crate::error::in_python;

/// Lines that wait for a thread of Python, at most. Further ones are lost.
const MOST: usize = 1000;

/// Levels, by the numbers of `logging`.
#[derive(Clone, Copy)]
pub(crate) enum Level {
    Debug = 10,
    Info = 20,
    Warning = 30,
}

struct Lines {
    /// The process that made it. A child that was forked meanwhile has a copy that nobody completes, and logs nothing.
    process: u32,
    waiting: AtomicUsize,
    says: Sender<(Level, String)>,
    heard: Mutex<Receiver<(Level, String)>>,
}

static LINES: LazyLock<Lines> = LazyLock::new(|| {
    let (says, heard) = channel();
    Lines { process: process::id(), waiting: AtomicUsize::new(0), says, heard: Mutex::new(heard) }
});

/// An environment whose events are noted.
pub(crate) fn environment() -> Environment {
    Environment::reporting_to(note)
}

/// Notes what an event says about connections.
pub(crate) fn note(event: &Event<'_>) {
    match event {
        Event::Connecting { peer: Some(peer), carrier: None, .. } => say(Level::Debug, format!("connecting to {peer}")),
        Event::Connecting { carrier: Some(carrier), .. } => say(Level::Info, format!("connecting over {carrier}")),
        Event::Lost(error) => say(Level::Warning, error.to_string()),
        Event::Warning(text) => say(Level::Warning, in_python(text).into_owned()),
        Event::Note(text) => say(Level::Info, in_python(text).into_owned()),
        _ => {}
    }
}

/// Notes a line.
pub(crate) fn say(level: Level, line: String) {
    if LINES.process != process::id() {
        return;
    }
    if LINES.waiting.fetch_add(1, Ordering::AcqRel) < MOST {
        let _ = LINES.says.send((level, line));
    } else {
        LINES.waiting.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Passes on what was noted.
///
/// # Errors
/// A signal's handler ran meanwhile and raised, or what the program does with lines did.
pub(crate) fn pass_on(py: Python<'_>) -> PyResult<()> {
    if LINES.waiting.load(Ordering::Acquire) == 0 || LINES.process != process::id() {
        return Ok(());
    }
    let lines: Vec<_> = match LINES.heard.try_lock() {
        Ok(heard) => heard.try_iter().collect(),
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner().try_iter().collect(),
        Err(TryLockError::WouldBlock) => return Ok(()),
    };
    LINES.waiting.fetch_sub(lines.len(), Ordering::AcqRel);
    let lines: Vec<_> = lines.into_iter().map(|(level, line)| (level as i32, line)).collect();
    let current = PyErr::take(py);
    let passed = py.import("farhaul._log").and_then(|log| log.call_method1("pass_on", (lines,)));
    if let Some(current) = current {
        current.restore(py);
    }
    passed.map(drop)
}

/// The same, where a result must not be lost. An interrupt comes again at the next chance.
pub(crate) fn pass_on_beside_result(py: Python<'_>) {
    if let Err(error) = pass_on(py) {
        postpone(py, error);
    }
}

/// Keeps an interrupt for later, and prints any other error.
fn postpone(py: Python<'_>, error: PyErr) {
    let is_kept = error.is_instance_of::<PyKeyboardInterrupt>(py)
        && py.import("_thread").and_then(|thread| thread.call_method0("interrupt_main")).is_ok();
    if !is_kept {
        error.write_unraisable(py, None);
    }
}
