//! The login shell of this user, and what it is to run: as sshd starts the commands of its clients.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::subsystem;
use crate::error::{Code, Error};

/// Set by sshd if a key or its settings fix the command (sshd(8), `command=`, and sshd_config(5), `ForceCommand`).
const FORCED: &str = "SSH_ORIGINAL_COMMAND";
/// Variables that a shell sets for itself and its children. Sshd gave the login shell none of them.
const OF_SHELLS: [&str; 3] = ["SHLVL", "OLDPWD", "_"];

/// What a program has to bring along that runs commands of a peer.
pub trait CommandHost {
    /// Whether ssh started this program to run commands: with the word [`RUNS_COMMANDS`](crate::remote::RUNS_COMMANDS).
    fn may_run_commands(&self) -> bool;

    /// The login shell of this user.
    ///
    /// # Errors
    /// The system does not tell.
    fn login_shell(&self) -> io::Result<PathBuf>;

    /// What makes a command end with the thread that starts it: for the death of this program, which can tell nobody.
    fn at_start_of_command(&self) -> fn(&mut Command);
}

/// A command for the login shell.
#[derive(Debug)]
pub(crate) struct LoginCommand {
    shell: PathBuf,
    command: OsString,
    at_start: fn(&mut Command),
}

impl LoginCommand {
    /// The command itself, or the subsystem of this name.
    ///
    /// # Errors
    /// This user may run no commands of his choice, or sshd has no such subsystem.
    pub(crate) fn of(command: OsString, is_subsystem: bool, host: &dyn CommandHost) -> Result<Self, Error> {
        Self::check(host, std::env::var_os(FORCED).is_some())?;
        let shell = host.login_shell().map_err(|error| {
            Error::new(Code::LocalIo, format!("the system does not say which login shell this user has: {error}"))
        })?;
        let command = match is_subsystem {
            true => subsystem::command(&command)?,
            false => command,
        };
        Ok(Self { shell, command, at_start: host.at_start_of_command() })
    }

    /// Fails closed: where sshd lets a key or a user start this program alone, it must not start others.
    fn check(host: &dyn CommandHost, is_forced: bool) -> Result<(), Error> {
        match host.may_run_commands() && !is_forced {
            true => Ok(()),
            false => Err(Error::new(
                Code::AccessDenied,
                "this login may only copy files: a fixed command (command= in authorized_keys, or ForceCommand) runs nothing else",
            )),
        }
    }

    /// Its shell, for messages.
    pub(super) fn shell(&self) -> String {
        self.shell.display().to_string()
    }

    /// The process to start: in a process group of its own, with pipes for its standard streams. Folder and variables are those that
    /// ssh gave this program.
    pub(super) fn process(&self) -> Command {
        let mut process = Command::new(&self.shell);
        process.arg0(self.shell.file_name().unwrap_or(OsStr::new("sh"))).arg("-c").arg(&self.command).process_group(0);
        OF_SHELLS.iter().for_each(|name| {
            process.env_remove(name);
        });
        process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        (self.at_start)(&mut process);
        process
    }
}
