//! Clocks that begin elsewhere.

use std::fs::{self, File};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, ensure};

use super::Outcome;
use super::bed::Bed;
use crate::packages::is_root;

/// Ten years.
const LATE: i64 = 10 * 365 * 86_400;
/// Modification times of files, in seconds from 1970.
const TIMES: [(&str, i64); 4] = [("a", -3_600), ("b", 0), ("d/c", 1 << 32), ("z", 1_700_000_000)];

/// Starts a program in a time namespace. The system refuses a clock before its zero.
fn wrapper(offset: i64) -> Vec<String> {
    let offset = offset.to_string();
    let rights: &[&str] = if is_root() { &[] } else { &["--user", "--map-root-user"] };
    let clocks = ["--time", "--monotonic", &offset, "--boottime", &offset, "--fork", "--kill-child"];
    [&["unshare"], rights, &clocks].concat().into_iter().map(str::to_owned).collect()
}

pub(super) fn elsewhere(bed: &Bed) -> Result<Outcome> {
    let [program, words @ ..] = &wrapper(1)[..] else { return Ok(Outcome::Impossible(String::new())) };
    let made = Command::new(program).args(words).arg("true").stderr(Stdio::null()).status();
    if !made.is_ok_and(|status| status.success()) {
        return Ok(Outcome::Impossible(
            "this machine gives no time namespace: root or a user namespace, and Linux 5.6, are needed".into(),
        ));
    }
    for (name, seconds) in TIMES {
        let (step, nanos) = (Duration::from_secs(seconds.unsigned_abs()), Duration::from_nanos(123_456_789));
        let time = if seconds < 0 { SystemTime::UNIX_EPOCH - step } else { SystemTime::UNIX_EPOCH + step };
        File::options().write(true).open(bed.path(&format!("root/t/{name}")))?.set_modified(time + nanos)?;
    }
    // A clock that begins with zero, as of a machine that has just started.
    let uptime = fs::read_to_string("/proc/uptime")?;
    let uptime: f64 = uptime.split_whitespace().next().context("it has two numbers")?.parse()?;
    let zero = -(uptime as i64);
    for (source, client) in [(zero, LATE), (LATE, zero)] {
        bed.empty_target()?;
        let (source, client) = (wrapper(source), wrapper(client));
        let [source, client] = [&source, &client].map(|words| words.iter().map(String::as_str).collect::<Vec<_>>());
        let server = bed.server(&source, "root", &["--any-client"])?;
        let run = bed.pull(&client, &server.address, &["--host-key-policy", "accept-new"])?.end()?;
        ensure!(run.code == Some(0), "exit code {:?}: {}", run.code, run.stderr);
        bed.is_whole()?;
    }
    Ok(Outcome::Right(
        "whole with right times, clocks ten years apart and one at zero; no namespace has a wall clock of its own: its steps are \
         tests of farhaul-udp (timeline)"
            .into(),
    ))
}
