//! The SSH connection as the lifeline of a copy: its end ends the copy.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use farhaul::Canceller;

/// Time for the far program to end the copy by itself, which has the better reasons. Both ends are gone within 5 s of the end of
/// ssh.
const GRACE: Duration = Duration::from_secs(2);

/// Cancels the calls of a copy once ssh has ended. Clones share everything.
#[derive(Clone, Debug, Default)]
pub(super) struct Lifeline {
    shared: Arc<(Mutex<State>, Condvar)>,
}

#[derive(Debug, Default)]
struct State {
    calls: Option<Canceller>,
    has_ended: bool,
    is_over: bool,
}

impl Lifeline {
    /// Cancels `calls` at the end of ssh, or at once if that was before.
    pub(super) fn carries(&self, calls: Canceller) {
        self.change(|state| match state.has_ended {
            true => calls.cancel(),
            false => state.calls = Some(calls),
        });
    }

    /// Ssh has ended. Returns once the copy has ended, too, or is cancelled.
    pub(super) fn ends(&self) {
        let (state, changed) = &*self.shared;
        let state = state.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = changed.wait_timeout_while(state, GRACE, |state| !state.is_over);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.has_ended = true;
        if let Some(calls) = state.calls.take() {
            calls.cancel();
        }
    }

    /// The copy is over, so the end of ssh means nothing.
    pub(super) fn is_over(&self) {
        self.change(|state| {
            state.is_over = true;
            state.calls = None;
        });
    }

    fn change(&self, how: impl FnOnce(&mut State)) {
        let (state, changed) = &*self.shared;
        how(&mut state.lock().unwrap_or_else(PoisonError::into_inner));
        changed.notify_all();
    }
}
