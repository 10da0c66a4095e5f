//! Sessions of a client that was killed: its server notices that by its silence alone, and a repeat of the same copy need not wait
//! so long.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use farhaul::security::PublicKey;
use farhaul_session::RelPath;

use super::idle::Running;

/// Silence after which a session that somebody repeats, for a file that it holds, counts as dead. A client that sends or waits for an answer
/// says something each 10 ms; one that its user has paused may be ended, and goes on with a later attempt.
const DEAD: Duration = Duration::from_secs(3);

/// The copies to this server that run, with their clients and targets.
#[derive(Debug, Default)]
pub(super) struct RunningCopies(Mutex<Vec<RunningCopy>>);

#[derive(Clone, Debug)]
struct RunningCopy {
    key: PublicKey,
    target: RelPath,
    session: Weak<Running>,
}

/// The copies of the same client to the same target that began before another one.
#[derive(Clone, Debug)]
pub(super) struct OlderCopies(Vec<Weak<Running>>);

impl RunningCopies {
    /// A copy begins.
    pub(super) fn begin(&self, key: PublicKey, target: &RelPath, session: &Arc<Running>) -> OlderCopies {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|copy| copy.session.strong_count() > 0);
        let is_same = |copy: &&RunningCopy| copy.key == key && copy.target == *target;
        let older = all.iter().filter(is_same).map(|copy| copy.session.clone()).collect();
        all.push(RunningCopy { key, target: target.clone(), session: Arc::downgrade(session) });
        OlderCopies(older)
    }
}

impl OlderCopies {
    /// Ends those whose client is silent. Returns whether there are any, which may hold files.
    pub(super) fn end_silent(&self) -> bool {
        let mut any = false;
        for session in self.0.iter().filter_map(Weak::upgrade) {
            any = true;
            if session.silence().is_some_and(|silence| silence >= DEAD) {
                session.give_up();
            }
        }
        any
    }
}
