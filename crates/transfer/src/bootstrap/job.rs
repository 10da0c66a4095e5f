//! The task of a remote program, with its paths as this host has them.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use farhaul_session::{CopyScope, FailCode, Failure, NameList, Rules, escape};

use super::{Host, UPDATE};
use crate::error::{Code, Error};
use crate::remote::messages::Task;
use crate::remote::scope::PathText;
use crate::rsh::login::LoginCommand;

/// A task whose homes exist.
#[derive(Debug)]
pub(super) enum Job {
    Receive {
        target: PathBuf,
        is_directory: bool,
        /// Nothing else is taken.
        scope: CopyScope,
    },
    Send {
        paths: Vec<PathBuf>,
    },
    Forward {
        paths: Vec<PathBuf>,
        recursive: bool,
        /// The only names that are sent of the content of the only path.
        names: Option<NameList>,
        rules: Rules,
    },
    /// Every copy is refused.
    Answer,
    /// A command, which is not started yet.
    Run(LoginCommand),
    Files,
}

impl Job {
    /// Finds the homes before the other side connects.
    pub(super) fn of(task: &Task, host: &dyn Host) -> Result<Self, Error> {
        let all = |paths: &[PathText]| paths.iter().map(|path| self::local(path, host)).collect::<Result<Vec<_>, _>>();
        Ok(match task {
            Task::Receive { target, is_directory, scope } => {
                let target = local(target, host)?;
                let takes_one = !is_directory && !target.is_dir();
                let scope = scope.scope(takes_one).map_err(malformed)?;
                Self::Receive { target, is_directory: *is_directory, scope }
            }
            Task::Send { paths } => Self::Send { paths: all(paths)? },
            Task::Answer => Self::Answer,
            Task::Run { command, is_subsystem } => {
                let command = OsString::from_vec(command.bytes().map_err(malformed)?);
                Self::Run(LoginCommand::of(command, *is_subsystem, host)?)
            }
            Task::Files => Self::Files,
            Task::Forward(scope) => {
                let (paths, names) = (all(&scope.paths)?, scope.names().map_err(malformed)?);
                if names.is_some() && paths.len() != 1 {
                    return Err(malformed("a list of names is for the content of one directory"));
                }
                let rules = scope.rules().map_err(malformed)?;
                Self::Forward { paths, recursive: scope.recursive, names, rules }
            }
        })
    }

    /// Whether its target takes one entry.
    pub(super) const fn takes_one(&self) -> bool {
        matches!(self, Self::Receive { scope: CopyScope { single: true, .. }, .. })
    }
}

/// The path of a request of the file service on this host.
pub(super) fn local_place(path: &[u8], host: &dyn Host) -> Result<PathBuf, Failure> {
    // Ssh starts the program in the home directory.
    let path = if path.is_empty() { b".".to_vec() } else { path.to_vec() };
    with_home(path, |user| home_of(user, host)).map_err(|error| Failure::new(FailCode::NotFound, error.message))
}

/// A path on this host.
fn local(path: &PathText, host: &dyn Host) -> Result<PathBuf, Error> {
    with_home(path.bytes().map_err(malformed)?, |user| home_of(user, host))
}

fn malformed(why: &str) -> Error {
    Error::new(Code::Protocol, format!("the task from the local program is malformed: {why}")).remedy(UPDATE)
}

/// The path, in which `~` at the front is this user's home directory, and `~user` that of another user. A home directory alone
/// has no name that the local program could know, so it stands for its content.
fn with_home(path: Vec<u8>, home_of: impl FnOnce(&OsStr) -> Result<PathBuf, Error>) -> Result<PathBuf, Error> {
    let Some(rest) = path.strip_prefix(b"~") else { return Ok(PathBuf::from(OsString::from_vec(path))) };
    let slash = rest.iter().position(|&byte| byte == b'/').unwrap_or(rest.len());
    let home = home_of(OsStr::from_bytes(&rest[..slash]))?;
    // More slashes would make the rest an absolute path.
    let below = rest[slash..].iter().position(|&byte| byte != b'/').map(|at| &rest[slash + at..]);
    Ok(home.join(OsStr::from_bytes(below.unwrap_or(b"."))))
}

/// The home directory of a user; of this one for an empty name.
fn home_of(user: &OsStr, host: &dyn Host) -> Result<PathBuf, Error> {
    if user.is_empty() {
        // Ssh starts the program in it.
        return Ok(std::env::var_os("HOME").map_or_else(|| ".".into(), PathBuf::from));
    }
    let shown = escape(user.as_bytes());
    match host.home_of(user) {
        Ok(Some(home)) => Ok(home),
        Ok(None) => Err(Error::new(Code::FilesFailed, format!("there is no user {shown}; nothing was copied"))
            .remedy(format!("write ./~{shown} for a file of that name"))),
        Err(error) => Err(no_answer(&shown, &error)),
    }
}

fn no_answer(user: &str, error: &io::Error) -> Error {
    Error::new(Code::LocalIo, format!("the system does not say whether there is a user {user}: {error}"))
}

#[cfg(test)]
mod tests {
    use farhaul_session::own_name;

    use super::*;

    fn found(path: &str) -> PathBuf {
        with_home(path.into(), |user| {
            Ok(PathBuf::from("/home").join(if user.is_empty() { OsStr::new("me") } else { user }))
        })
        .unwrap()
    }

    #[test]
    fn a_tilde_at_the_front_is_a_home_directory() {
        for (path, expected) in [
            ("~", "/home/me"),
            ("~/", "/home/me"),
            ("~/a/b", "/home/me/a/b"),
            ("~//etc", "/home/me/etc"),
            ("~bob", "/home/bob"),
            ("~bob/a", "/home/bob/a"),
            ("./~bob", "./~bob"),
            ("a/~", "a/~"),
            ("/~bob", "/~bob"),
        ] {
            assert_eq!(found(path), PathBuf::from(expected), "{path}");
        }
        for path in ["~", "~/", "~bob//"] {
            assert_eq!(
                own_name(found(path).as_os_str().as_bytes()),
                None,
                "{path}: its name would be news to the local program"
            );
        }
    }
}
