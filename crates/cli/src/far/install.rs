//! A copy of this program in the cache folder of the far user, if this program can run there.

use std::fs::File;
use std::io::{self, Read, Write};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use super::lifeline::SSH_FAILED;
use super::messages::printable;
use super::program::end;
use super::ssh::SshOptions;
use crate::exit::{Code, Fault};
use crate::interrupt::Interrupt;
use crate::output::Output;

/// Prints the kind of the machine between two marks, since login shells may print as well.
const KIND: &str =
    "sh -c 'echo \"[farhaul $(uname -s) $(uname -m) $(getconf GNU_LIBC_VERSION 2>/dev/null || echo other) ]\"'";
/// Most that a far shell may print, bytes.
const MOST_ANSWER: u64 = 64 << 10;

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

/// Copies this program to `host`.
pub(super) fn install(options: &SshOptions, host: &str, interrupt: &Interrupt, output: &Output) -> Result<(), Fault> {
    let here = Command::new("sh").args(["-c", KIND]).output()?;
    let here = Kind::read(&String::from_utf8_lossy(&here.stdout));
    let far = run((options, interrupt), host, KIND, None)?;
    let unknown = || {
        Fault::new(
            Code::FarProgramMissing,
            format!("the kind of the machine {host} cannot be found out: install farhaul there"),
        )
    };
    let (here, far) = here.zip(Kind::read(&far.text)).ok_or_else(unknown)?;
    if let Some(why) = here.obstacle(&far) {
        return Err(Fault::new(
            Code::FarProgramMissing,
            format!("this program does not run on {host}: {}; build farhaul there", printable(&why)),
        ));
    }
    output.say(&format!("copying this program to the cache folder on {host}"));
    let program = std::env::current_exe().and_then(File::open)?;
    let size = program.metadata()?.len();
    let stored = run((options, interrupt), host, &storing(size), Some(&program))?;
    if stored.has_succeeded && stored.text.contains("[farhaul stored ]") {
        return Ok(());
    }
    if stored.text.contains("[farhaul idle ]") {
        return Err(Fault::new(
            Code::FarProgramMissing,
            format!(
                "{host} stores this program in the cache folder and does not start it; its reason is above. If that folder permits no \
                 programs (noexec), install farhaul elsewhere there, and give its place with --remote-path"
            ),
        ));
    }
    Err(Fault::new(Code::FarProgramMissing, format!("{host} did not store the program; its reason is above")))
}

/// The command that stores a program of `size` bytes, if it starts there. The new file gets its name once it is whole, since the end of
/// a lost SSH connection looks like the end of the program. Until then, whatever ends the shell removes it.
fn storing(size: u64) -> String {
    let place = SshOptions::INSTALLED;
    format!(
        "sh -c 'umask 077; p=\"{place}\"; t=\"$p.$$\"; forget() {{ rm -f \"$t\"; }}; trap forget EXIT; trap \"exit 1\" HUP INT PIPE \
         TERM; mkdir -p \"${{p%/*}}\" && cat > \"$t\" && test $(wc -c < \"$t\") -eq {size} && chmod 700 \"$t\" && \
         {{ \"$t\" --version > /dev/null || {{ echo \"[farhaul idle ]\"; exit 1; }}; }} && mv \"$t\" \"$p\" && \
         echo \"[farhaul stored ]\"'"
    )
}

/// What a command on the far host said.
struct Said {
    text: String,
    has_succeeded: bool,
}

/// Runs a command on `host` with this input. A signal to this program ends it.
fn run(
    (options, interrupt): (&SshOptions, &Interrupt),
    host: &str,
    command: &str,
    input: Option<&File>,
) -> Result<Said, Fault> {
    let mut ssh = options.command(host, Some(command))?;
    if input.is_none() {
        ssh.stdin(Stdio::null());
    }
    let mut ssh = ssh.stderr(Stdio::inherit()).spawn()?;
    let (stdin, stdout) = (ssh.stdin.take(), ssh.stdout.take());
    let ssh = Arc::new(Mutex::new(ssh));
    let its = Arc::clone(&ssh);
    interrupt.on_stop(move || end(&its));
    let written =
        stdin.zip(input).map(|(mut stdin, mut input)| io::copy(&mut input, &mut stdin).and_then(|_| stdin.flush()));
    let mut text = Vec::new();
    if let Some(stdout) = stdout {
        // A shell may print anything.
        let _ = stdout.take(MOST_ANSWER).read_to_end(&mut text);
    }
    let status = ssh.lock().unwrap_or_else(PoisonError::into_inner).wait()?;
    if status.code() == Some(SSH_FAILED) {
        return Err(Fault::new(Code::SshFailed, format!("ssh to {host} failed while farhaul was installed there")));
    }
    let has_succeeded = status.success() && written.is_none_or(|written| written.is_ok());
    Ok(Said { text: String::from_utf8_lossy(&text).into_owned(), has_succeeded })
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
