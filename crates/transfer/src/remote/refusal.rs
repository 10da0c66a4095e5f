//! Remote programs that do not begin: what ssh and the shells there said, and the next step.

use std::time::Duration;

use super::frames::{MOST_NOISE, Silence};
use super::messages::printable;
use super::ssh::Ssh;
use super::ssh_monitor::SSH_FAILED;
use crate::error::{Code, Error};

/// Exit codes of shells for a program that does not exist, and for one that cannot be started (POSIX, section 2.8.2).
const NOT_FOUND: i32 = 127;
const NOT_STARTED: i32 = 126;

/// Why a program is not ready.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) fault: Error,
    /// Whether a copy of this program there would help.
    pub(super) is_mendable: bool,
}

impl Refusal {
    /// A program that was started and says nothing.
    pub(super) fn of_silence(waited: Duration, host: &str, options: &Ssh) -> Self {
        let step = match options.names_program() {
            true => "check ‹remote-path›",
            false => "name another one with ‹remote-path›",
        };
        let (program, seconds) = (options.program(), waited.as_secs());
        let message =
            format!("the program {program} on {host} was started and has said nothing for {seconds} s: {step}");
        Self { fault: Error::new(Code::ConnectTimeout, message), is_mendable: false }
    }

    /// A login shell whose output has no end, or as good as none.
    pub(super) fn of_noise(host: &str) -> Self {
        let message = format!(
            "the login shell on {host} prints more than {} KiB before it starts the program: let its start-up files (.bashrc, .profile) \
             print nothing in sessions without a terminal",
            MOST_NOISE >> 10
        );
        Self { fault: Error::new(Code::SshFailed, message), is_mendable: false }
    }

    /// The reason why nothing came from `host` before ssh ended with `code`; `None` for a signal.
    pub(super) fn of(silence: &Silence, code: Option<i32>, host: &str, options: &Ssh) -> Self {
        let (program, is_default) = (options.program(), !options.names_program());
        let step = match is_default {
            true => "install it there, and give its place with ‹remote-path›",
            false => "check ‹remote-path›",
        };
        let (code, message, is_mendable) = match code {
            _ if silence.has_begun => (Code::PeerLost, format!("the program on {host} ended early"), false),
            Some(SSH_FAILED) => (
                Code::SshFailed,
                format!("ssh cannot reach {host} or log in there; try `{}`", options.trial(host)),
                false,
            ),
            None => (Code::SshFailed, format!("ssh to {host} was killed before the program there began"), false),
            Some(code) if !silence.has_shell => (Code::SshFailed, no_shell(host, code, &silence.words, options), false),
            Some(_) if silence.is_copy => (
                Code::RemoteProgramMissing,
                format!(
                    "the copy of this program in the cache folder on {host} does not run: it is damaged, or that folder is shared with \
                     machines of another kind. Remove ~/.cache/farhaul/bin there, name another program with ‹remote-path›"
                ),
                true,
            ),
            Some(NOT_FOUND) => {
                (Code::RemoteProgramMissing, format!("{host} lacks the program {program}: {step}"), is_default)
            }
            Some(NOT_STARTED) => {
                (Code::RemoteProgramMissing, format!("{host} cannot start the program {program}: {step}"), is_default)
            }
            _ => (
                Code::Protocol,
                format!(
                    "the program {program} on {host} does not run there, or is no farhaul of this version: update it \
                     there, or name another with ‹remote-path›"
                ),
                is_default,
            ),
        };
        Self { fault: Error::new(code, message), is_mendable }
    }
}

/// The reason of a login shell that does not start programs. Its words may be on stdout, which is not shown.
fn no_shell(host: &str, code: i32, words: &str, options: &Ssh) -> String {
    let words = if words.is_empty() { String::new() } else { format!(": {}", printable(words)) };
    format!(
        "the login shell on {host} ended with code {code} without starting any program{words}; `{}` must work, so log in as a user who \
         may run commands there",
        options.trial(host)
    )
}
