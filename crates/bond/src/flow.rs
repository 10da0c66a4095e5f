//! One of the flows of a stream, and why a stream broke.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use farhaul::{ConnectionLost, Error, Stats, Stream};

/// A flow that has joined.
pub(crate) struct Flow {
    pub(crate) stream: Stream,
    /// The peer has taken it as well, so it may carry bytes. A side that accepts knows that at once.
    pub(crate) is_confirmed: AtomicBool,
    /// Its connection is over without the end of the stream.
    pub(crate) is_lost: AtomicBool,
    /// It was given bytes of the stream, or brought some, which are lost with it.
    pub(crate) has_sent: AtomicBool,
    pub(crate) has_brought: AtomicBool,
    /// The last figures, once the connection is gone.
    pub(crate) stats: Mutex<Stats>,
}

/// Why a stream broke, for each call from then on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cause {
    Lost(ConnectionLost),
    Cancelled,
    Finished,
    Stopped,
}

impl From<&Error> for Cause {
    fn from(error: &Error) -> Self {
        match error {
            Error::Lost(lost) => Self::Lost(*lost),
            Error::Cancelled => Self::Cancelled,
            Error::Finished => Self::Finished,
            Error::DriverStopped => Self::Stopped,
            _ => Self::Lost(ConnectionLost::Aborted),
        }
    }
}

impl From<Cause> for Error {
    fn from(cause: Cause) -> Self {
        match cause {
            Cause::Lost(lost) => Self::Lost(lost),
            Cause::Cancelled => Self::Cancelled,
            Cause::Finished => Self::Finished,
            Cause::Stopped => Self::DriverStopped,
        }
    }
}

impl Flow {
    /// Whether its loss is that of the stream. A flow without bytes may go, also because the peer never took it. If the peer had given it
    /// some, the peer finds the loss.
    pub(crate) fn has_bytes(&self) -> bool {
        self.has_sent.load(Ordering::Acquire) || self.has_brought.load(Ordering::Acquire)
    }

    /// Whether the peer waits for its end.
    pub(crate) fn is_awaited(&self) -> bool {
        self.is_confirmed.load(Ordering::Acquire) || self.has_bytes()
    }

    pub(crate) fn stats(&self) -> Stats {
        last_stats(self.stream.stats(), &self.stats)
    }
}

/// The figures of a connection, or the last ones of one that is gone.
pub(crate) fn last_stats(stats: Result<Stats, Error>, last: &Mutex<Stats>) -> Stats {
    let mut last = lock(last);
    *last = stats.unwrap_or(*last);
    *last
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
