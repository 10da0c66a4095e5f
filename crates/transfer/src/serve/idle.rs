//! Sessions whose peers do nothing. Each would hold its place for ever, so it ends after a while.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use farhaul_bond::BondedStream;
use farhaul_session::{AbortCode, refusal};
use farhaul_units::{ByteSize, Instant};

use crate::error::{Code, Error};
use crate::session::file::Working;
use crate::text::time;

/// Bytes that a session must move within the limit, in both directions together. Any line in use moves them in minutes, and a
/// peer that sends a byte now and then does not.
const LEAST: u64 = 64_000;

/// The running sessions of a listener, and the time in which each must move some bytes.
#[derive(Debug)]
pub(super) struct Sessions {
    running: Mutex<Vec<Weak<Running>>>,
    limit: Option<Duration>,
}

/// A running session.
#[derive(Debug)]
pub(super) struct Running {
    stream: BondedStream,
    working: Working,
    progress: Mutex<Progress>,
    limit: Option<Duration>,
    was_idle: AtomicBool,
}

/// Bytes moved, and when the session had moved that many.
#[derive(Clone, Copy, Debug)]
struct Progress {
    since: Instant,
    moved: u64,
}

impl Sessions {
    /// Sessions without `limit` may be idle for ever.
    pub(super) fn new(limit: Option<Duration>) -> Self {
        Self { running: Mutex::default(), limit }
    }

    /// A session on this stream begins.
    pub(super) fn begin(&self, stream: BondedStream, now: Instant) -> Arc<Running> {
        let progress = Mutex::new(Progress { since: now, moved: moved(&stream).unwrap_or(0) });
        let (working, was_idle) = (Working::default(), AtomicBool::new(false));
        let running = Arc::new(Running { stream, working, progress, limit: self.limit, was_idle });
        self.running.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(&running));
        running
    }

    /// Ends the sessions that have been idle for too long.
    pub(super) fn look(&self, now: Instant) {
        let mut all = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|running| running.strong_count() > 0);
        let running: Vec<_> = all.iter().filter_map(Weak::upgrade).collect();
        drop(all);
        running.iter().for_each(|running| running.look(now));
    }
}

impl Running {
    /// Shared with the work of this side: while that takes its time, nobody waits for the peer.
    pub(super) fn working(&self) -> Working {
        self.working.clone()
    }

    /// The fault of the session, if it was ended for want of progress.
    pub(super) fn error(&self, peer: &dyn std::fmt::Display) -> Option<Error> {
        let limit = self.limit.filter(|_| self.was_idle.load(Ordering::Acquire))?;
        Some(Error::new(Code::PeerLost, format!("{peer} was idle: {}", words(limit))))
    }

    /// Time since the peer was heard; `None` once the connection is gone.
    pub(super) fn silence(&self) -> Option<Duration> {
        self.stream.stats().ok()?.silence
    }

    /// Ends the session, whose peer is taken for dead.
    pub(super) fn give_up(&self) {
        self.stream.abort();
        self.stream.cancel();
    }

    fn look(&self, now: Instant) {
        // A connection that is gone ends its session.
        let (Some(limit), Some(moved)) = (self.limit, moved(&self.stream)) else { return };
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        if self.working.is_working() {
            *progress = Progress { since: now, moved };
        }
        if progress.is_overdue(now, moved, limit) && !self.was_idle.swap(true, Ordering::AcqRel) {
            self.stream.part(&refusal(AbortCode::Busy, &format!("this session was idle: {}", words(limit))));
            self.stream.cancel();
        }
    }
}

impl Progress {
    /// Notes the bytes moved so far. Returns whether they are too few for the time.
    fn is_overdue(&mut self, now: Instant, moved: u64, limit: Duration) -> bool {
        if moved >= self.moved + LEAST {
            *self = Self { since: now, moved };
        }
        now.saturating_since(self.since) >= limit
    }
}

/// Bytes that a connection has moved.
fn moved(stream: &BondedStream) -> Option<u64> {
    stream.stats().ok().map(|stats| stats.totals.bytes_read + stats.totals.bytes_acked)
}

fn words(limit: Duration) -> String {
    format!("less than {} moved in {} (--idle-timeout of the server)", ByteSize(LEAST), time(limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(900);

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn a_session_that_moves_nothing_or_drips_is_overdue_after_the_limit() {
        for drip in [0, 1, 70] {
            let mut progress = Progress { since: at(0), moved: 0 };
            let overdue = (1..=2_000).find(|&second| progress.is_overdue(at(second), second * drip, LIMIT));
            assert_eq!(overdue, Some(900), "{drip} bytes a second");
        }
    }

    #[test]
    fn a_session_that_moves_some_bytes_within_the_limit_goes_on() {
        let mut progress = Progress { since: at(0), moved: 0 };
        assert!((1..=100_000).all(|second| !progress.is_overdue(at(second), second * 80, LIMIT)));
        // A burst after a long pause counts as well.
        assert!(
            !progress.is_overdue(at(100_800), 9_000_000, LIMIT) && !progress.is_overdue(at(101_000), 9_000_000, LIMIT)
        );
    }
}
