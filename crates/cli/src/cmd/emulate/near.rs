//! The command on the near host. It has the terminal, gets the signals, and its end is the end of the emulation.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal};
use std::mem;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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
    process: Arc<Mutex<Process>>,
    /// Carries no messages. Its sender is dropped when the command ends.
    ended: Arc<Mutex<Receiver<()>>>,
}

/// The process of a command, as far as signals can reach it.
enum Process {
    /// It is not started yet. The first signal for it is kept until then.
    Awaited(Option<Signal>),
    Running(Pid),
    /// Its id may belong to another process.
    Ended,
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
        let (target, lives) = Target::awaited();
        let its = target.clone();
        // An earlier signal is meant for the whole emulation, and a later one for the command, even if it only begins to start.
        context.interrupt.passes_on(move |signal| {
            if signal == SIGTERM {
                its.end();
            } else if its.is_awaited() || !sys::has_terminal() {
                // Otherwise the terminal itself sends SIGINT to its foreground.
                its.send(Signal::INT);
            }
        })?;
        let child =
            hosts.emulation.spawn(near.host, &mut command).map_err(|error| cannot_run(&line.program, &error))?;
        target.starts(Pid::from_child(&child));
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
        *self.target.process() = Process::Ended;
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
    /// The target of signals to a command that is not started yet. The sender is dropped when the command ends.
    fn awaited() -> (Self, SyncSender<()>) {
        let (lives, ended) = sync_channel(0);
        let process = Arc::new(Mutex::new(Process::Awaited(None)));
        (Self { process, ended: Arc::new(Mutex::new(ended)) }, lives)
    }

    fn process(&self) -> MutexGuard<'_, Process> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_awaited(&self) -> bool {
        matches!(*self.process(), Process::Awaited(_))
    }

    /// The command has started. It gets the signal that was kept for it.
    fn starts(&self, id: Pid) {
        let before = mem::replace(&mut *self.process(), Process::Running(id));
        if let Process::Awaited(Some(signal)) = before {
            self.send(signal);
        }
    }

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
        match &mut *self.process() {
            Process::Awaited(first) => drop(first.get_or_insert(signal)),
            // The command may have ended just now.
            Process::Running(id) => drop(kill_process(*id, signal)),
            Process::Ended => {}
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

    #[test]
    fn a_command_that_only_begins_to_start_gets_the_first_signal_that_came_for_it() {
        let (target, _lives) = Target::awaited();
        assert!(target.is_awaited());
        // An interrupt would be ignored where the tests run in the background of a shell.
        target.send(Signal::TERM);
        target.send(Signal::CONT);
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        target.starts(Pid::from_child(&child));
        assert_eq!(child.wait().unwrap().signal(), Some(Signal::TERM.as_raw()));
        assert!(!target.is_awaited());
    }
}
