//! A copy of the program in the cache folder of the remote user, if it can run there.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use super::frames::MOST_NOISE;
use super::messages::printable;
use super::process::{LONGEST_END, end, wait_within};
use super::refusal::Refusal;
use super::ssh::Ssh;
use super::ssh_monitor::SSH_FAILED;
use super::words::Words;
use crate::environment::Environment;
use crate::error::{Code, Error};

/// Prints the kind of the machine between two marks, since login shells may print as well.
const KIND: &str =
    "sh -c 'echo \"[farhaul $(uname -s) $(uname -m) $(getconf GNU_LIBC_VERSION 2>/dev/null || echo other) ]\"'";
/// Time between two looks whether ssh has ended.
const LOOK: Duration = Duration::from_millis(50);
/// Time for the rest of the output once ssh has ended.
const LAST_OUTPUT: Duration = Duration::from_secs(1);
/// Most that a remote shell may print, bytes.
const MOST_ANSWER: u64 = MOST_NOISE as u64;

/// Kind of a machine: system, processor, C library and its version.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Kind {
    system: String,
    processor: String,
    libc: String,
    libc_version: Vec<u32>,
}

impl Kind {
    /// Reads what [`KIND`] printed.
    fn read(text: &str) -> Option<Self> {
        let (_, text) = text.split_once("[farhaul ")?;
        let mut words = text.split_once(" ]")?.0.split_ascii_whitespace();
        let (system, processor) = (words.next()?.to_owned(), words.next()?.to_owned());
        let libc = words.next().unwrap_or("other").to_owned();
        let libc_version = words.next().unwrap_or_default().split('.').filter_map(|part| part.parse().ok()).collect();
        Some(Self { system, processor, libc, libc_version })
    }

    /// Why a program of this kind does not run on `far`.
    fn obstacle(&self, far: &Self) -> Option<String> {
        let of = |kind: &Self| format!("{} on {}", kind.system, kind.processor);
        if (&self.system, &self.processor) != (&far.system, &far.processor) {
            return Some(format!("it has {}, and this host {}", of(far), of(self)));
        }
        if self.libc != far.libc {
            return Some("its C library is another one".to_owned());
        }
        let version = |kind: &Self| kind.libc_version.iter().map(u32::to_string).collect::<Vec<_>>().join(".");
        (self.libc_version > far.libc_version)
            .then(|| format!("its C library has version {}, and this host {}", version(far), version(self)))
    }
}

/// Copies the program of `options` to `host`.
pub(super) fn install(options: &Ssh, host: &str, environment: &Environment) -> Result<(), Error> {
    let here = Command::new("sh").args(["-c", KIND]).output()?;
    let here = Kind::read(&String::from_utf8_lossy(&here.stdout));
    let at = Installing { options, host, environment };
    let far = at.run(KIND, None)?;
    let is_noise = far.text.len() >= MOST_NOISE;
    let unknown = || match is_noise {
        true => Refusal::of_noise(host).fault,
        false => Error::new(
            Code::RemoteProgramMissing,
            format!("the kind of the machine {host} cannot be found out: install farhaul there"),
        ),
    };
    let (here, far) = here.zip(Kind::read(&far.text)).ok_or_else(unknown)?;
    if let Some(why) = here.obstacle(&far) {
        return Err(Error::new(
            Code::RemoteProgramMissing,
            format!("this program does not run on {host}: {}; build farhaul there", printable(&why)),
        ));
    }
    environment.events.note(&format!("copying this program to the cache folder on {host}"));
    let program = options.install.as_deref().unwrap_or_else(|| Path::new("farhaul"));
    let program = File::open(program)?;
    let size = program.metadata()?.len();
    let stored = at.run(&storing(size), Some(&program))?;
    if stored.has_succeeded && stored.text.contains("[farhaul stored ]") {
        return Ok(());
    }
    if stored.text.contains("[farhaul idle ]") {
        return Err(Error::new(
            Code::RemoteProgramMissing,
            format!(
                "{host} stores this program in the cache folder and does not start it{}. If that folder permits no programs \
                 (noexec), install farhaul elsewhere there, and give its place with ‹remote-path›",
                stored.reason()
            ),
        ));
    }
    Err(Error::new(Code::RemoteProgramMissing, format!("{host} did not store the program{}", stored.reason())))
}

/// The command that stores a program of `size` bytes, if it starts there. The new file gets its name once it is whole, since the end of
/// a lost SSH connection looks like the end of the program. Until then, whatever ends the shell removes it.
fn storing(size: u64) -> String {
    let place = Ssh::INSTALLED;
    format!(
        "sh -c 'umask 077; p=\"{place}\"; t=\"$p.$$\"; forget() {{ rm -f \"$t\"; }}; trap forget EXIT; trap \"exit 1\" HUP INT PIPE \
         TERM; mkdir -p \"${{p%/*}}\" && cat > \"$t\" && test $(wc -c < \"$t\") -eq {size} && chmod 700 \"$t\" && \
         {{ \"$t\" --version > /dev/null || {{ echo \"[farhaul idle ]\"; exit 1; }}; }} && mv \"$t\" \"$p\" && \
         echo \"[farhaul stored ]\"'"
    )
}

/// What a command on the remote host said.
struct Said {
    text: String,
    /// The last line of its stderr.
    complaint: String,
    has_succeeded: bool,
}

impl Said {
    /// Why it failed, if it said so.
    fn reason(&self) -> String {
        if self.complaint.is_empty() { String::new() } else { format!(": {}", self.complaint) }
    }
}

/// The host to install on.
#[derive(Clone, Copy)]
struct Installing<'a> {
    options: &'a Ssh,
    host: &'a str,
    environment: &'a Environment,
}

impl Installing<'_> {
    /// Runs a command there with this input. A signal to this program ends it.
    fn run(self, command: &str, input: Option<&File>) -> Result<Said, Error> {
        let mut ssh = self.options.command(self.host, Some(command))?;
        if input.is_none() {
            ssh.stdin(Stdio::null());
        }
        let mut ssh = ssh.spawn()?;
        let (stdin, stdout, stderr) = (ssh.stdin.take(), ssh.stdout.take(), ssh.stderr.take());
        let ssh = Arc::new(Mutex::new(ssh));
        let its = Arc::clone(&ssh);
        self.environment.cancellation.on_cancel(move || end(&its));
        let words = stderr.map(|stderr| Words::show(stderr, &self.environment.events)).transpose()?;
        let (told, heard) = sync_channel(1);
        // A shell that prints a lot may read nothing until that is read.
        let written = match (stdin, input) {
            (Some(stdin), Some(input)) => Some(write(stdin, input.try_clone()?)?),
            _ => None,
        };
        if let Some(stdout) = stdout {
            thread::Builder::new().name("answer".into()).spawn(move || {
                let mut text = Vec::new();
                // A shell may print anything.
                let _ = stdout.take(MOST_ANSWER).read_to_end(&mut text);
                let _ = told.send(text);
            })?;
        }
        let text = self.await_output(&ssh, &heard).unwrap_or_default();
        let is_written = written.is_none_or(|written| written.recv_timeout(LAST_OUTPUT).unwrap_or_default());
        let Some(status) = wait_within(&ssh, LONGEST_END) else {
            end(&ssh);
            let message = format!("ssh to {} does not end, though its output has ended", self.host);
            return Err(Error::new(Code::SshFailed, message));
        };
        if let Some(words) = &words {
            words.wait();
        }
        if status.code() == Some(SSH_FAILED) {
            let message = format!("ssh to {} failed while farhaul was installed there", self.host);
            return Err(Error::new(Code::SshFailed, message));
        }
        let complaint = words.map(|words| words.last()).unwrap_or_default();
        let (text, has_succeeded) = (String::from_utf8_lossy(&text).into_owned(), status.success() && is_written);
        Ok(Said { text, complaint, has_succeeded })
    }

    /// What ssh printed. A process that ssh leaves behind may keep its output open: it is not awaited. Nor is an ssh that goes on
    /// after a signal to this program, which ends it.
    fn await_output(self, ssh: &Mutex<Child>, heard: &Receiver<Vec<u8>>) -> Option<Vec<u8>> {
        let mut left = LONGEST_END;
        while !left.is_zero() {
            match heard.recv_timeout(LOOK) {
                Ok(text) => return Some(text),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) if wait_within(ssh, Duration::ZERO).is_some() => {
                    return heard.recv_timeout(LAST_OUTPUT).ok();
                }
                Err(RecvTimeoutError::Timeout) if self.environment.cancellation.is_requested() => {
                    left = left.saturating_sub(LOOK)
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        None
    }
}

/// Writes a file on a thread, and tells whether all of it went. The end of ssh ends the thread.
fn write(mut stdin: ChildStdin, mut input: File) -> io::Result<Receiver<bool>> {
    let (told, written) = sync_channel(1);
    thread::Builder::new().name("program".into()).spawn(move || {
        let _ = told.send(io::copy(&mut input, &mut stdin).is_ok());
    })?;
    Ok(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> Kind {
        Kind::read(&format!("Welcome!\n[farhaul {text} ]\n")).unwrap()
    }

    #[test]
    fn a_program_runs_where_system_processor_and_a_newer_libc_are() {
        let here = kind("Linux x86_64 glibc 2.36");
        assert_eq!(here.obstacle(&here), None);
        assert_eq!(here.obstacle(&kind("Linux x86_64 glibc 2.39")), None);
        for (far, word) in [
            ("Linux aarch64 glibc 2.36", "aarch64"),
            ("Darwin arm64 other", "Darwin"),
            ("Linux x86_64 glibc 2.17", "2.17"),
            ("Linux x86_64 other", "another one"),
        ] {
            assert!(here.obstacle(&kind(far)).unwrap().contains(word), "{far}");
        }
        assert_eq!(Kind::read("no such thing"), None);
    }
}
