//! What became of each file of a copy.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use farhaul::units::{Duration, Instant};
use farhaul_session::{Failure, escape};
use farhaul_transfer::Event;
use farhaul_transfer::internal::code_of;
use farhaul_udp::Clock;
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::error::in_python;
use crate::report::as_object;

/// The files of a copy that have ended. Clones share everything.
///
/// They are kept until the program takes them, so a copy without such a program has none.
#[derive(Clone)]
pub(crate) struct FileRecords {
    clock: Clock,
    state: Arc<Mutex<RecordsState>>,
}

#[derive(Default)]
struct RecordsState {
    /// When the files began that are moving.
    begun: HashMap<Vec<u8>, Instant>,
    ended: Vec<Value>,
}

impl FileRecords {
    /// None yet.
    pub(crate) fn start() -> Self {
        Self { clock: Clock::start(), state: Arc::default() }
    }

    /// Notes what an event says about a file.
    pub(crate) fn note(&self, event: &Event<'_>) {
        let now = self.clock.now();
        let mut state = self.state();
        match event {
            Event::Begun(entry) => drop(state.begun.insert(entry.path.to_bytes(), now)),
            Event::Placed(entry, digest, _) => {
                state.end(
                    now,
                    &entry.path.to_bytes(),
                    "verified",
                    json!({ "bytes": entry.size, "digest": digest.to_string() }),
                );
            }
            Event::Kept(entry, ..) => state.end(now, &entry.path.to_bytes(), "kept", json!({ "bytes": entry.size })),
            Event::Failed(path, failure, _) => {
                state.end(now, path.as_bytes(), "failed", why(failure));
            }
            Event::LeftOut(path, failure) => {
                state.end(now, path.as_bytes(), "left_out", why(failure));
            }
            // What is there counts anew.
            Event::Retrying(_) => *state = RecordsState::default(),
            _ => {}
        }
    }

    /// Takes those that have ended since the last call, as objects.
    pub(crate) fn take<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let ended = std::mem::take(&mut self.state().ended);
        ended.iter().map(|record| as_object(py, record)).collect()
    }

    /// The content, even after a panic: each record is one value.
    fn state(&self) -> MutexGuard<'_, RecordsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RecordsState {
    fn end(&mut self, now: Instant, path: &[u8], status: &str, mut record: Value) {
        let seconds = self.begun.remove(path).map_or(Duration::ZERO, |begun| now.saturating_since(begun));
        record["path"] = escape(path).into();
        record["status"] = status.into();
        record["seconds"] = seconds.as_secs_f64().into();
        self.ended.push(record);
    }
}

fn why(failure: &Failure) -> Value {
    json!({ "error": in_python(&failure.to_string()), "code": code_of(failure.code).symbol() })
}
