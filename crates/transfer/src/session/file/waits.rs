//! What a receiver waits for: space on a full disk, and incomplete files of copies that are likely to be dead.

use std::thread;
use std::time::Duration;

use farhaul_bond::BondedStream;
use farhaul_disk::{LockWait, Patience};
use farhaul_session::{Ends, Rules, WAITS_FOR_SPACE};

use crate::environment::Environment;
use crate::event::Events;

/// What this side says.
const FULL: &str = "the disk is full: the copy waits up to 9 min for space; make room, or stop it";

/// Waits as the rules have it, for the session of this thread over `stream`.
pub(crate) fn patience(
    rules: &Rules,
    stream: &BondedStream,
    environment: &Environment,
    events: Events,
) -> Option<Patience> {
    if !rules.wait_for_space {
        return None;
    }
    let (session, its) = (thread::current().id(), stream.clone());
    let waits = move || {
        events.warn(FULL);
        // Between two inputs of the session, all of its frames are written. Another thread would write into one.
        if thread::current().id() == session {
            let mut rest = &WAITS_FOR_SPACE[..];
            while let Ok(len @ 1..) = its.send(rest) {
                rest = &rest[len..];
            }
        }
    };
    Some(Patience::new(waits, end_of(stream, environment)))
}

/// A wait for incomplete files that other copies hold, for the session over `stream`. `silence` is how long a session waits for a
/// dead peer.
pub(crate) fn lock_wait(silence: Duration, stream: &BondedStream, environment: &Environment) -> LockWait {
    LockWait::new(silence, end_of(stream, environment))
}

/// Whether the session over `stream` ends, for its store.
pub(crate) fn ends(stream: &BondedStream, environment: &Environment) -> Ends {
    Ends::when(end_of(stream, environment))
}

/// Whether the session over `stream` ends.
fn end_of(stream: &BondedStream, environment: &Environment) -> impl Fn() -> bool + Send + Sync + 'static {
    let (stream, cancellation) = (stream.clone(), environment.cancellation.clone());
    move || cancellation.is_cancelled() || !matches!(stream.ending(), Ok(None))
}
