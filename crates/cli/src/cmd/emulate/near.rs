//! The command on the near host. It has the terminal, gets the signals, and its end is the end of the emulation.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, getpgrp, getpid, kill_process, kill_process_group, waitid};
use signal_hook::consts::SIGTERM;

use super::Hosts;
use crate::cmd::Context;
use crate::exit::{Code, Fault};
use crate::sys;

/// Time for a command to end after SIGTERM.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

/// A command to run, and its kind.
pub(super) struct CommandLine {
    program: OsString,
    arguments: Vec<OsString>,
    /// An interactive shell on a terminal.
    pub(super) is_interactive: bool,
}

impl CommandLine {
    /// The command of the arguments, or the user's shell.
    pub(super) fn of(typed: &[OsString]) -> Self {
        let (program, arguments) = match typed {
            [] => {
                (env::var_os("SHELL").filter(|shell| !shell.is_empty()).unwrap_or_else(|| "/bin/sh".into()), Vec::new())
            }
            [program, arguments @ ..] => (program.clone(), arguments.to_vec()),
        };
        let is_interactive = arguments.is_empty() && is_shell(&program) && io::stdin().is_terminal();
        Self { program, arguments, is_interactive: is_interactive && sys::has_terminal() }
    }

    /// All words of the command, for records.
    pub(super) fn words(&self) -> Vec<String> {
        let words = std::iter::once(&self.program).chain(&self.arguments);
        words.map(|word| word.to_string_lossy().into_owned()).collect()
    }
}

/// `sh`, `bash`, `zsh`, `fish` and their relatives.
fn is_shell(program: &OsStr) -> bool {
    Path::new(program).file_name().is_some_and(|name| name.as_encoded_bytes().ends_with(b"sh"))
}

/// The running command.
pub(super) struct Near {
    child: Child,
    is_interactive: bool,
    target: Target,
    /// Dropped when the command ends.
    lives: SyncSender<()>,
}

/// The target of signals.
#[derive(Clone)]
pub(super) struct Target {
    /// `None` once the command has ended.
    process: Arc<Mutex<Option<Pid>>>,
    /// Carries no messages. Its sender is dropped when the command ends.
    ended: Arc<Mutex<Receiver<()>>>,
}

/// The exit status of a command.
pub(super) struct Ended(ExitStatus);

impl Near {
    pub(super) fn start(hosts: &Hosts<'_>, context: &Context, line: &CommandLine) -> Result<Self, Fault> {
        let near = hosts.near();
        let mut command = Command::new(&line.program);
        near.introduce(command.args(&line.arguments));
        if line.is_interactive {
            sys::give_terminal(&mut command);
        }
        // An earlier signal is meant for the whole emulation. The terminal did not send it to this command.
        if let Some(fault) = context.interrupt.fault() {
            return Err(fault);
        }
        let child =
            hosts.emulation.spawn(near.host, &mut command).map_err(|error| cannot_run(&line.program, &error))?;
        let (lives, ended) = sync_channel::<()>(0);
        let process = Arc::new(Mutex::new(Some(Pid::from_child(&child))));
        let target = Target { process, ended: Arc::new(Mutex::new(ended)) };
        let its = target.clone();
        context.interrupt.passes_on(move |signal, came_before| {
            if signal != SIGTERM {
                // The terminal itself sends SIGINT to its foreground, but the command may have started later.
                if came_before || !sys::has_terminal() {
                    its.send(Signal::INT);
                }
                return;
            }
            its.end();
        });
        Ok(Self { child, is_interactive: line.is_interactive, target, lives })
    }

    /// The target of signals, for other senders.
    pub(super) fn target(&self) -> Target {
        self.target.clone()
    }

    /// Waits for the end of the command.
    pub(super) fn wait(mut self) -> Result<Ended, Fault> {
        let id = Pid::from_child(&self.child);
        // Do not reap it before signals know of its end: its id could be reused.
        let stops = if self.is_interactive { WaitIdOptions::STOPPED } else { WaitIdOptions::empty() };
        loop {
            match waitid(WaitId::Pid(id), WaitIdOptions::EXITED | stops | WaitIdOptions::NOWAIT) {
                Err(Errno::INTR) => {}
                Ok(Some(status)) if status.stopped() => stop_with(id).map_err(io::Error::from)?,
                other => break other.map(drop).map_err(io::Error::from)?,
            }
        }
        *self.target.process.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let status = self.child.wait()?;
        drop(self.lives);
        if self.is_interactive {
            sys::set_terminal(getpgrp());
        }
        Ok(Ended(status))
    }
}

/// Stops with a shell that was suspended. The parent of this program has the terminal until both continue.
fn stop_with(shell: Pid) -> rustix::io::Result<()> {
    waitid(WaitId::Pid(shell), WaitIdOptions::STOPPED | WaitIdOptions::NOHANG)?;
    sys::set_terminal(getpgrp());
    // In an orphaned process group this does nothing.
    kill_process(getpid(), Signal::TSTP)?;
    sys::set_terminal(shell);
    kill_process_group(shell, Signal::CONT)
}

impl Target {
    /// Ends the command with SIGTERM, and after a while with SIGKILL.
    pub(super) fn end(&self) {
        self.send(Signal::TERM);
        self.send(Signal::CONT);
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        if ended.recv_timeout(EXIT_TIMEOUT) == Err(RecvTimeoutError::Timeout) {
            self.send(Signal::KILL);
        }
    }

    fn send(&self, signal: Signal) {
        if let Some(process) = *self.process.lock().unwrap_or_else(PoisonError::into_inner) {
            // The command may have ended just now.
            let _ = kill_process(process, signal);
        }
    }
}

impl Ended {
    /// The exit code by the shells' convention.
    pub(super) fn exit_code(&self) -> u8 {
        let Self(status) = self;
        let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
        code.and_then(|code| u8::try_from(code).ok()).unwrap_or(Code::Failed.exit())
    }

    /// The signal that ended the command.
    pub(super) fn signal(&self) -> Option<i32> {
        self.0.signal()
    }
}

/// An exit status in words.
pub(super) fn ending(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("with exit code {code}"),
        (None, Some(signal)) => format!("by signal {signal}"),
        (None, None) => "somehow".into(),
    }
}

fn cannot_run(program: &OsStr, error: &io::Error) -> Fault {
    let program = program.to_string_lossy();
    match error.kind() {
        io::ErrorKind::NotFound => Fault::new(
            Code::CommandNotFound,
            format!("cannot run {program}: there is no such command; a line for a shell needs `-- sh -c 'LINE'`"),
        ),
        _ => Fault::new(Code::CommandNotRun, format!("cannot run {program}: {}", crate::output::human::reason(error))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_those_that_shells_give() {
        let of = |raw| Ended(ExitStatus::from_raw(raw)).exit_code();
        assert_eq!((of(0), of(3 << 8), of(255 << 8)), (0, 3, 255));
        assert_eq!((of(2), of(15), of(9)), (130, 143, 137));
    }

    #[test]
    fn shells_are_known_by_their_names() {
        assert!(["sh", "/bin/bash", "zsh", "/usr/bin/fish"].iter().all(|name| is_shell(OsStr::new(name))));
        assert!(["ping", "/bin/sh/", "shutdown", ""].iter().filter(|name| is_shell(OsStr::new(name))).count() == 1);
    }
}
