//! What a receiver does while its disk is full and its copy waits for space.

use std::thread;

use farhaul_session::{Rules, WAITS_FOR_SPACE};

use crate::bond::BondedStream;
use crate::disk::Patience;
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
    let (session, its, cancellation) = (thread::current().id(), stream.clone(), environment.cancellation.clone());
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
    let stream = stream.clone();
    let ends = move || cancellation.is_cancelled() || !matches!(stream.ending(), Ok(None));
    Some(Patience::new(waits, ends))
}
