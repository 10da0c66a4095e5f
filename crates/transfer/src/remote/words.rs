//! What ssh, and the remote side through it, say on stderr, before the terminal shows it.

use std::convert::Infallible;
use std::io::{self, BufRead, BufReader, Read};
use std::process::ChildStderr;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::messages::printable;
use crate::event::Events;

/// Longest line that is shown at once, bytes.
const LONGEST_LINE: u64 = 4096;
/// Time for the last lines after the end of ssh. A process in its background may keep the pipe.
const LAST_LINES: Duration = Duration::from_secs(1);

/// The words of one ssh.
#[derive(Debug)]
pub(super) struct Words {
    /// Ends once all is shown. Nothing is ever sent.
    all_shown: Receiver<Infallible>,
    last: Arc<Mutex<String>>,
}

impl Words {
    /// Shows them line by line without control characters, on a thread of its own. Leaves out that the shell there did not start the
    /// program, which this program says better.
    pub(super) fn show(stderr: ChildStderr, events: &Events) -> io::Result<Self> {
        let ((shown, all_shown), last) = (sync_channel(0), Arc::<Mutex<String>>::default());
        let (events, its) = (events.clone(), Arc::clone(&last));
        thread::Builder::new().name("ssh".into()).spawn(move || {
            show(stderr, |line| {
                events.note(&line);
                *its.lock().unwrap_or_else(PoisonError::into_inner) = line;
            });
            drop(shown);
        })?;
        Ok(Self { all_shown, last })
    }

    /// Waits until all of them are shown, but for a process that keeps the pipe.
    pub(super) fn wait(&self) {
        let _ = self.all_shown.recv_timeout(LAST_LINES);
    }

    /// The last line.
    pub(super) fn last(&self) -> String {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn show(stderr: impl Read, mut shown: impl FnMut(String)) {
    let mut lines = BufReader::new(stderr);
    loop {
        let mut line = Vec::new();
        match lines.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_end();
        if !is_of_shell(line) && !line.is_empty() {
            shown(printable(line));
        }
    }
}

/// Whether the shell that starts the program complains about it. Ssh speaks otherwise.
fn is_of_shell(line: &str) -> bool {
    let complaints = ["not found", "No such file", "Permission denied"];
    line.starts_with("sh:") && complaints.iter().any(|words| line.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_control_character_of_the_remote_side_is_shown() {
        let mut shown = Vec::new();
        show(&b"\x1b]0;mine\x07\x1b[2Jfine\r\nsecond \xc2\x9b31m\xff\n\n"[..], |line| shown.push(line));
        assert_eq!(shown, ["\\x1b]0;mine\\x07\\x1b[2Jfine", "second \\x9b31m\u{fffd}"]);
    }

    #[test]
    fn complaints_of_the_shell_are_told_from_those_of_ssh() {
        for line in [
            "sh: 1: exec: farhaul: not found",
            "sh: line 1: exec: farhaul: not found",
            "sh: line 1: /opt/farhaul: No such file or directory",
            "sh: 1: exec: /opt/farhaul: Permission denied",
        ] {
            assert!(is_of_shell(line), "{line}");
        }
        for line in [
            "farhaul@far: Permission denied (password).",
            "no such identity: /home/me/farhaul: No such file or directory",
            "ssh: Could not resolve hostname farhaul: Name or service not known",
            "/opt/farhaul: /lib/libc.so.6: version `GLIBC_2.39' not found (required by /opt/farhaul)",
        ] {
            assert!(!is_of_shell(line), "{line}");
        }
    }
}
