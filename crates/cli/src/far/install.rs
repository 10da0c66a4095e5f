//! A copy of this program in the cache folder of the far user, if this program can run there.

use std::fs::File;
use std::io::{self, Read, Write};
use std::process::{Command, Stdio};

use super::messages::printable;
use super::ssh::SshOptions;
use crate::exit::{Code, Fault};
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
pub(super) fn install(options: &SshOptions, host: &str, output: &Output) -> Result<(), Fault> {
    let here = Command::new("sh").args(["-c", KIND]).output()?;
    let here = Kind::read(&String::from_utf8_lossy(&here.stdout));
    let far = Kind::read(&answer(options, host, KIND)?);
    let unknown = || {
        Fault::new(
            Code::FarProgramMissing,
            format!("the kind of the machine {host} cannot be found out: install farhaul there"),
        )
    };
    let (here, far) = here.zip(far).ok_or_else(unknown)?;
    if let Some(why) = here.obstacle(&far) {
        return Err(Fault::new(
            Code::FarProgramMissing,
            format!("this program does not run on {host}: {}; build farhaul there", printable(&why)),
        ));
    }
    let place = SshOptions::INSTALLED;
    // The new file gets its name once it is whole.
    let store = format!(
        "sh -c 'umask 077; p=\"{place}\"; mkdir -p \"${{p%/*}}\" && cat > \"$p.$$\" && chmod 700 \"$p.$$\" && mv \"$p.$$\" \"$p\" && \
         echo \"[farhaul stored ]\"'"
    );
    output.say(&format!("copying this program to the cache folder on {host}"));
    let program = std::env::current_exe().and_then(File::open)?;
    let mut ssh = options.command(host, Some(&store))?.stderr(Stdio::inherit()).spawn()?;
    let (stdin, stdout) = (ssh.stdin.take(), ssh.stdout.take());
    let written = stdin.map(|mut stdin| io::copy(&mut &program, &mut stdin).and_then(|_| stdin.flush()));
    let mut text = String::new();
    if let Some(stdout) = stdout {
        // A shell may print anything.
        let _ = stdout.take(MOST_ANSWER).read_to_string(&mut text);
    }
    let done = ssh.wait()?.success() && written.is_some_and(|written| written.is_ok());
    if done && text.contains("[farhaul stored ]") {
        return Ok(());
    }
    Err(Fault::new(Code::FarProgramMissing, format!("{host} did not store the program; its reason is above")))
}

fn answer(options: &SshOptions, host: &str, command: &str) -> Result<String, Fault> {
    let output = options.command(host, Some(command))?.stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
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
