//! A command on a remote host: ssh logs in and starts the program there, and the standard streams of the command go over UDP.
//!
//! ```text
//! this process                                      `farhaul bootstrap`, started by ssh
//! input  ─▶ thread ─▶ frames ─┐                  ┌─▶ thread ─▶ stdin   of the command
//! output ◀─ this thread ◀─────┤ one connection   ├─◀ thread ◀─ stdout
//! error  ◀─ thread ◀──────────┘                  └─◀ thread ◀─ stderr
//! ```
//!
//! | part | owns |
//! | --- | --- |
//! | `client` | the streams of this process |
//! | `server` | the command itself, on the remote host |
//! | `frames` | the frames that several threads of one side write |
//! | `diagnostics` | stderr of the command, whose reader may be late |
//! | `login` | the login shell, and what it is to run |
//! | `subsystem` | the programs of subsystems |

mod client;
mod diagnostics;
mod frames;
pub(crate) mod login;
pub(crate) mod server;
mod subsystem;

use std::ffi::OsString;
use std::fmt;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;

use farhaul_session::{CommandExit, CommandFrame, escape};

pub use self::login::CommandHost;
use crate::environment::Environment;
use crate::error::{Code, Error, Trouble};
use crate::location::SshPlace;
use crate::remote::messages::Task;
use crate::remote::reach::{ONE_FLOW, Opening, OverSsh, Reached};
use crate::remote::scope::PathText;
use crate::remote::{RemoteProgram, Ssh};
use crate::settings::Settings;
use crate::throttle::{Capped, Change};

/// A command on a remote host.
///
/// ```no_run
/// use farhaul_transfer::{Environment, Rsh, Streams};
///
/// let streams = Streams::new(std::io::empty(), std::io::stdout(), std::io::stderr());
/// let exit = Rsh::command("far.example", &["df".into(), "-h".into()])?.run(&Environment::default(), streams)?;
/// println!("{exit:?}");
/// # Ok::<(), farhaul_transfer::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Rsh {
    host: String,
    task: Task,
    settings: Settings,
    ssh: Ssh,
}

/// The ends of the command's standard streams on this side. They are closed one by one, as those of the command end.
pub struct Streams {
    input: Box<dyn Read + Send>,
    output: Box<dyn Write + Send>,
    error: Box<dyn Write + Send>,
}

impl Streams {
    /// These streams: what the command reads, and what takes its stdout and its stderr. A thread of its own reads `input`, and
    /// another one writes `error`. A call of `read` that never returns keeps the first one, and nothing else.
    pub fn new(
        input: impl Read + Send + 'static,
        output: impl Write + Send + 'static,
        error: impl Write + Send + 'static,
    ) -> Self {
        Self { input: Box::new(input), output: Box::new(output), error: Box::new(error) }
    }
}

impl fmt::Debug for Streams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Streams").finish_non_exhaustive()
    }
}

impl Rsh {
    /// A command on `host`, which is `[user@]name` as ssh takes it. As with ssh, the words are joined by blanks, and the login shell
    /// there reads them.
    ///
    /// # Errors
    /// Ssh would not take the host for one, or there is no word.
    pub fn command(host: &str, words: &[OsString]) -> Result<Self, Error> {
        let command = joined(words);
        if command.iter().all(u8::is_ascii_whitespace) {
            let ssh = format!("use `ssh {}` for a login", escape(host.as_bytes()));
            return Err(Error::usage("there is no command to run, and rsh gives no login shell").remedy(ssh));
        }
        Self::of(host, Task::Run { command: PathText::new(&command), is_subsystem: false })
    }

    /// A subsystem of the sshd on `host`, such as `sftp`.
    ///
    /// # Errors
    /// As for [`command`](Self::command).
    pub fn subsystem(host: &str, words: &[OsString]) -> Result<Self, Error> {
        let name = joined(words);
        if name.is_empty() {
            return Err(Error::usage("-s needs the name of a subsystem").remedy("write `-s HOST sftp`"));
        }
        Self::of(host, Task::Run { command: PathText::new(&name), is_subsystem: true })
    }

    fn of(host: &str, task: Task) -> Result<Self, Error> {
        let host = SshPlace::host_of(host.as_bytes()).map_err(Error::usage)?;
        Ok(Self { host, task, settings: Settings::default(), ssh: Ssh::default() })
    }

    /// The same with these settings of its connection.
    #[must_use]
    pub fn with(self, settings: Settings) -> Self {
        Self { settings, ..self }
    }

    /// The same with these settings of ssh.
    #[must_use]
    pub fn over(self, ssh: Ssh) -> Self {
        Self { ssh, ..self }
    }

    /// Runs it until it has ended, and all of its output was written. There is no limit of time: only a peer that is silent for the
    /// time-out of the settings counts as lost.
    ///
    /// A cancellation, the loss of the connection and the end of ssh send SIGHUP to the process group of the command.
    ///
    /// # Errors
    /// The command did not begin, or it is unknown how it ended.
    pub fn run(&self, environment: &Environment, streams: Streams) -> Result<CommandExit, Error> {
        if self.settings.security.plain {
            return Err(Error::usage("commands over SSH are always encrypted").remedy("leave out ‹plain›"));
        }
        let ssh = self.ssh.clone().for_commands();
        // It would come with each run of a script, and `doctor` says the same.
        let warns_of_buffers = false;
        let (settings, only_sends) = (&self.settings, !warns_of_buffers);
        let (needs_udp, flows, opening) = (false, ONE_FLOW, Opening::None);
        let over = OverSsh { environment, settings, ssh: &ssh, only_sends, needs_udp, flows, opening };
        // The command starts with the program, if it need not wait for UDP.
        let (request, is_early) = (CommandFrame::Open.to_bytes(), over.takes_opening());
        let over = if is_early { OverSsh { opening: Opening::Request(&request), ..over } } else { over };
        let mut reached = over.connect(&self.host, self.task.clone())?;
        let _capped = self.throttled(environment, &reached);
        let request = if is_early { &[][..] } else { &request };
        client::run((&reached.stream, request), streams, environment).map_err(|unfinished| match unfinished {
            client::Unfinished::Unread => Error::new(
                Code::LocalIo,
                format!(
                    "nobody reads the output any more, and the command on {} went on for {} s: it was ended",
                    self.host,
                    client::UNREAD.as_secs()
                ),
            ),
            client::Unfinished::Failed(error) => error,
            client::Unfinished::Trouble(trouble) => self.explained(&mut reached, environment, &trouble),
        })
    }

    /// Has the throttle cap what this side sends, and the remote program what the command does.
    fn throttled(&self, environment: &Environment, reached: &Reached) -> Capped {
        let (host, there) = (self.host.clone(), reached.far.as_ref().and_then(RemoteProgram::throttle));
        environment.throttle.reaches(move |change| match (change, &there) {
            // This side stops to read and to write. The transport holds the command back.
            (Change::Paused(_), _) => Ok(()),
            (Change::Rate(_), Some(there)) => there.tell(change, &host),
            (Change::Rate(_), None) => Err(format!("farhaul on {host} is too old for that: give ‹rate› at the start")),
        });
        environment.throttle.caps(&reached.stream)
    }

    /// The error of a command that `trouble` has ended: what the remote program or ssh say explains more.
    fn explained(&self, reached: &mut Reached, environment: &Environment, trouble: &Trouble) -> Error {
        let error = environment.error(trouble, &self.host);
        let explained = reached.far.as_mut().map_or_else(|| error.clone(), |far| far.explained(error.clone()));
        match explained.code {
            Code::SshFailed => Error::new(
                Code::SshFailed,
                format!("ssh to {} ended before the command did, which ends the command: {error}", self.host),
            ),
            _ => explained,
        }
    }
}

/// The words as ssh sends them.
fn joined(words: &[OsString]) -> Vec<u8> {
    words.iter().map(|word| word.as_bytes()).collect::<Vec<_>>().join(&b' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<OsString> {
        words.iter().map(Into::into).collect()
    }

    #[test]
    fn words_are_joined_by_single_blanks_and_nothing_is_quoted() {
        let Task::Run { command, is_subsystem } = Rsh::command("me@far", &words(&["a  b", "", "$c"])).unwrap().task
        else {
            panic!("it is a command")
        };
        assert_eq!((command.bytes().unwrap(), is_subsystem), (b"a  b  $c".to_vec(), false));
    }

    #[test]
    fn a_host_without_a_command_is_for_ssh() {
        for none in [words(&[]), words(&[""]), words(&[" ", " "])] {
            let error = Rsh::command("far", &none).unwrap_err();
            assert!(error.to_string().contains("`ssh far`"), "{error}");
        }
        assert!(Rsh::subsystem("far", &[]).is_err());
        for host in ["-oProxyCommand=x", "me@-x", "", "a b"] {
            assert!(Rsh::command(host, &words(&["x"])).is_err(), "{host}");
        }
    }
}
