//! The process of ssh: its pipes and its end.

use std::os::fd::AsFd;
use std::process::{Child, ExitStatus};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Size of the pipes, bytes: the most that Linux permits every user (`fs.pipe-max-size`).
const PIPE: usize = 1 << 20;
/// Time for ssh to end after it was asked to. Then it is killed.
pub(super) const LONGEST_END: Duration = Duration::from_secs(5);
/// Time of the first look at an ssh that was asked to end, which takes it a millisecond or two.
const FIRST_LOOK: Duration = Duration::from_millis(1);
/// Interval of looks at ssh.
pub(super) const LOOK: Duration = Duration::from_millis(10);

/// Makes a pipe hold more, so that its writer and its reader wake each other less often. What is no pipe stays as it is.
pub(crate) fn widen(pipe: impl AsFd) {
    let _ = rustix::pipe::fcntl_setpipe_size(pipe, PIPE);
}

/// Waits for the end of a child, at most for `time`. It holds no lock while it waits, so that an interrupt can end the child.
pub(super) fn wait_within(child: &Mutex<Child>, time: Duration) -> Option<ExitStatus> {
    let (mut left, mut pause) = (time, FIRST_LOOK);
    loop {
        let ended = child.lock().unwrap_or_else(PoisonError::into_inner).try_wait();
        match ended {
            Ok(None) if !left.is_zero() => {}
            ended => return ended.ok().flatten(),
        }
        pause = pause.min(left);
        thread::park_timeout(pause);
        left -= pause;
        pause = (2 * pause).min(LOOK);
    }
}

/// Ends ssh, which ends the remote program.
pub(super) fn end(child: &Mutex<Child>) {
    let mut child = child.lock().unwrap_or_else(PoisonError::into_inner);
    if child.try_wait().is_ok_and(|status| status.is_some()) {
        return;
    }
    if let Ok(process) = i32::try_from(child.id())
        && let Some(process) = rustix::process::Pid::from_raw(process)
    {
        // Ssh restores the terminal.
        let _ = rustix::process::kill_process(process, rustix::process::Signal::TERM);
    }
}
