//! Copies over SSH, with a script in the place of ssh whose remote host is this machine.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::Outcome;
use super::bed::Bed;
use super::process::{Running, has, signal};
use crate::clock::{Stopwatch, pause};

/// The time in which both ends go.
const PROMPT: Duration = Duration::from_secs(5);
/// From the start of the remote program to the kill: in the middle of a copy of 9 MB.
const MIDDLE: Duration = Duration::from_millis(900);
const RATE: [&str; 2] = ["--rate", "30mbit"];

/// The remote host.
struct Far<'a> {
    bed: &'a Bed,
}

impl<'a> Far<'a> {
    /// The script notes its processes in `ssh.pid`, and the remote program its own in `far.pid`.
    fn new(bed: &'a Bed) -> Result<Self> {
        let far = Self { bed };
        let (at, program) = (bed.at(""), bed.command(&[], &[]).get_program().to_string_lossy().into_owned());
        far.script("there", &format!("echo $$ > '{at}/far.pid'\nexec '{program}' \"$@\""))?;
        far.script(
            "ssh",
            &format!(
                "case \"$*\" in *-G*) exit 0;; esac\nfor C; do :; done\nexport SSH_CONNECTION='127.0.0.1 1 127.0.0.1 22'\n\
                 D='{at}'/ssh.$$; mkdir \"$D\"; mkfifo \"$D/in\" \"$D/out\"; exec 3<&0\n\
                 setsid sh -c \"$C\" < \"$D/in\" > \"$D/out\" 2> /dev/null 3<&- &\n\
                 cat <&3 > \"$D/in\" & echo $$ $! >> '{at}/ssh.pid'\nexec cat \"$D/out\""
            ),
        )?;
        Ok(far)
    }

    fn script(&self, name: &str, text: &str) -> Result<()> {
        fs::write(self.bed.path(name), format!("#!/bin/sh\n{text}\n"))?;
        Ok(fs::set_permissions(self.bed.path(name), Permissions::from_mode(0o755))?)
    }

    /// Starts to copy the tree there, or from there.
    fn copy(&self, is_push: bool, options: &[&str]) -> Result<Running> {
        for old in ["ssh.pid", "far.pid"] {
            let _ = fs::remove_file(self.bed.path(old));
        }
        let (ssh, there) = (self.bed.at("ssh"), self.bed.at("there"));
        let (tree, target) = (self.bed.at("root/t"), self.bed.at("to/"));
        let (from, to) = if is_push { (tree, format!("far:{target}")) } else { (format!("far:{tree}"), target) };
        let copy = ["copy", "-a", "--json", "--ssh", &ssh, "--remote-path", &there];
        Running::begin(self.bed.command(&[], &[&copy[..], options, &[&from, &to]].concat()))
    }

    /// Kills ssh once the remote program runs, and returns the number of that program.
    fn kills_ssh(&self) -> Result<u32> {
        let began = Stopwatch::start();
        let far = loop {
            let number = fs::read_to_string(self.bed.path("far.pid")).unwrap_or_default();
            if let Ok(number) = number.trim().parse() {
                break number;
            }
            ensure!(began.elapsed() < PROMPT * 2, "the remote program does not start");
            pause(Duration::from_millis(10));
        };
        pause(MIDDLE);
        let processes = fs::read_to_string(self.bed.path("ssh.pid"))?;
        let killed = processes.split_whitespace().filter_map(|number| signal(number.parse().ok()?, "KILL").ok());
        ensure!(killed.count() >= 2, "ssh had ended before it was killed");
        Ok(far)
    }
}

/// Whether a process runs. One that nobody waits for has no program any more.
fn runs(process: u32) -> bool {
    fs::read_link(format!("/proc/{process}/exe")).is_ok()
}

/// Waits for the end of a process.
fn is_gone(process: u32, time: Duration) -> bool {
    let began = Stopwatch::start();
    while runs(process) && began.elapsed() < time {
        pause(Duration::from_millis(10));
    }
    !runs(process)
}

pub(super) fn without_ssh(bed: &Bed) -> Result<Outcome> {
    if !has("setsid") || !has("mkfifo") {
        return Ok(Outcome::Impossible("setsid or mkfifo is missing".into()));
    }
    let far = Far::new(bed)?;
    let mut seen = Vec::new();
    for is_push in [true, false] {
        let case = if is_push { "push" } else { "pull" };
        bed.empty_target()?;
        let copy = far.copy(is_push, &RATE)?;
        let program = far.kills_ssh()?;
        let began = Stopwatch::start();
        let run = copy.end()?;
        let seconds = began.elapsed();
        ensure!(run.code == Some(5), "{case}: exit code {:?}: {}", run.code, run.stderr);
        ensure!(seconds < PROMPT, "{case}: it ended after {seconds:?}");
        ensure!(is_gone(program, began.left_of(PROMPT)), "{case}: the remote program still runs");
        bed.fails_cleanly(&run, &[5], || far.copy(is_push, &[])).context(case)?;
        seen.push(format!("{:.1} s", seconds.as_secs_f64()));
        bed.empty_target()?;
        let copy = far.copy(is_push, &[&RATE[..], &["--detach"]].concat())?;
        let program = far.kills_ssh()?;
        let run = copy.end()?;
        ensure!(run.code == Some(0), "{case} with --detach: exit code {:?}: {}", run.code, run.stderr);
        bed.is_whole().context(case)?;
        ensure!(is_gone(program, PROMPT), "{case} with --detach: the remote program still runs");
    }
    Ok(Outcome::Right(format!("both ends gone after {}, exit 5, then whole; with --detach whole", seen.join(" and "))))
}
