//! Watches the SSH connection of a copy, whose loss ends the copy.

use std::fmt;
use std::process::Child;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Time for the remote program to end the copy by itself, which has the better reasons. Both ends are gone within 5 s of the loss of
/// ssh.
const GRACE: Duration = Duration::from_secs(2);

/// Exit code of ssh if ssh itself failed (ssh(1)).
pub(super) const SSH_FAILED: i32 = 255;

/// Shells add this to the number of the signal that ended a program (POSIX, section 2.8.2).
const SIGNALLED: i32 = 128;
/// Signals after which the remote program says goodbye by itself, with such codes of its own.
const POLITE: [i32; 2] = [SIGNALLED + 2, SIGNALLED + 15];

/// Cancels the calls of a copy once ssh is lost. Clones share everything.
#[derive(Clone)]
pub(super) struct SshMonitor {
    ssh: Arc<Mutex<Child>>,
    shared: Arc<(Mutex<MonitorState>, Condvar)>,
}

#[derive(Default)]
struct MonitorState {
    cancel: Option<Box<dyn Fn() + Send>>,
    is_lost: bool,
    is_over: bool,
}

impl fmt::Debug for SshMonitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SshMonitor").field("ssh", &self.ssh).finish_non_exhaustive()
    }
}

impl SshMonitor {
    /// For the copy which this ssh began.
    pub(super) fn of(ssh: Arc<Mutex<Child>>) -> Self {
        Self { ssh, shared: Arc::default() }
    }

    /// Calls `cancel` once ssh is lost, or at once if it is.
    pub(super) fn on_loss(&self, cancel: Box<dyn Fn() + Send>) {
        self.change(|state| match state.is_lost {
            true => cancel(),
            false => state.cancel = Some(cancel),
        });
    }

    /// Nothing comes from ssh any more. Returns once the copy has ended, too, or is cancelled.
    pub(super) fn output_ended(&self) {
        let (state, changed) = &*self.shared;
        let state = state.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = changed.wait_timeout_while(state, GRACE, |state| !state.is_over);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        // A program that ended has closed its connection, whose last bytes may still be in flight to the copy here.
        state.is_lost = self.has_lost_ssh() == Some(true);
        if state.is_lost
            && let Some(cancel) = state.cancel.take()
        {
            cancel();
        }
    }

    /// Whether ssh failed or was killed, or the remote program was. `None` while it runs. Otherwise the remote program ended by itself.
    pub(super) fn has_lost_ssh(&self) -> Option<bool> {
        let status = self.ssh.lock().unwrap_or_else(PoisonError::into_inner).try_wait().ok().flatten();
        status.map(|status| status.code().is_none_or(|code| code > SIGNALLED && !POLITE.contains(&code)))
    }

    /// The copy is over, so the end of ssh means nothing.
    pub(super) fn copy_ended(&self) {
        self.change(|state| {
            state.is_over = true;
            state.cancel = None;
        });
    }

    fn change(&self, how: impl FnOnce(&mut MonitorState)) {
        let (state, changed) = &*self.shared;
        how(&mut state.lock().unwrap_or_else(PoisonError::into_inner));
        changed.notify_all();
    }
}
