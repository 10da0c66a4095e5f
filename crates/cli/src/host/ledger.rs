//! Where the time of a session's thread goes.

use std::cell::Cell;
use std::time::Duration;

use crate::sys::Threads;

/// Keeps the writing thread's time while a session runs.
#[derive(Debug)]
pub(crate) struct Ledger {
    threads: Threads,
    room: Cell<f64>,
    peer: Cell<f64>,
}

impl Ledger {
    /// Begins, on the thread that runs the session.
    pub(super) fn begin() -> Self {
        Self { threads: Threads::begin(), room: Cell::new(0.0), peer: Cell::new(0.0) }
    }

    pub(super) fn add_room(&self, time: Duration) {
        self.room.set(self.room.get() + time.as_secs_f64());
    }

    /// The thread waited for this long for the peer to answer.
    pub(super) fn add_peer(&self, time: Duration) {
        self.peer.set(self.peer.get() + time.as_secs_f64());
    }

    /// So far.
    pub(crate) fn waits(&self) -> Waits {
        Waits { room: self.room.get(), peer: self.peer.get(), busy: self.threads.busy().as_secs_f64() }
    }
}

/// Where the writing thread spent its time, in seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Waits {
    /// In writing: the send buffer was full.
    pub(crate) room: f64,
    /// With nothing to write: the peer had to answer first.
    pub(crate) peer: f64,
    /// A processor was what it needed.
    pub(crate) busy: f64,
}
