//! Figures of a running session, for other threads.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Figures that a session updates and any thread may read. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Progress(Arc<Mutex<Figures>>);

/// What a session has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Figures {
    /// Bytes of all files whose sizes are known.
    pub announced: u64,
    /// Bytes that arrived and were new, or that the peer has.
    pub bytes: u64,
    /// Datagrams of the peer that arrived.
    pub packets_received: u64,
    /// Datagrams that were sent.
    pub packets_sent: u64,
    /// Datagrams of them that were sent again.
    pub packets_retransmitted: u64,
}

impl Progress {
    /// The figures of now.
    pub fn figures(&self) -> Figures {
        *self.now()
    }

    /// The figures of now, to be updated.
    pub(super) fn now(&self) -> MutexGuard<'_, Figures> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
