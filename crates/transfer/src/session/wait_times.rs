//! Waiting times of a session's thread.

use std::cell::Cell;
use std::time::Duration;

use farhaul_bond::Threads;

/// Waiting times of the writing thread while a session runs.
#[derive(Debug)]
pub struct WaitTimes {
    threads: Threads,
    room: Cell<f64>,
    peer: Cell<f64>,
}

impl WaitTimes {
    /// Starts on the thread that runs the session.
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

    /// The times so far.
    pub fn waits(&self) -> Waits {
        Waits { room: self.room.get(), peer: self.peer.get(), busy: self.threads.busy().as_secs_f64() }
    }
}

/// Times of the writing thread, in seconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Waits {
    /// Waiting for the send buffer.
    pub room: f64,
    /// Waiting for an answer of the peer.
    pub peer: f64,
    /// Needing a processor.
    pub busy: f64,
}
