//! System calls and context switches of a transfer. Calls are counted by `strace`, context switches by the kernel.

use std::fs;
use std::path::{Path as FilePath, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::super::process::Process;
use super::super::quantity::Quantity;
use super::super::samples::Measured;
use super::farhaul::END;
use super::relay::Path;
use super::{OPENING, Tools, needed, patience};
use crate::bench::tools::Amount;

/// The counted calls. The others run at full speed.
const COUNTED: [(Quantity, &[&str]); 3] = [
    (Quantity::FutexCalls, &["futex"]),
    (Quantity::SendCalls, &["sendmsg", "sendmmsg", "sendto"]),
    (Quantity::OpenCalls, &["openat", "statx"]),
];

impl Tools {
    /// One transfer through a relay that emulates `path`, with both sides under `strace`. `protection` is the option for it,
    /// if any. The figures are sums of both sides per GB.
    pub(in super::super) fn counted_calls(
        &self,
        path: &Path,
        protection: Option<&str>,
        seconds: u64,
    ) -> Result<Measured> {
        let summaries = ["listen", "connect"].map(|side| self.release.join(format!("bench-calls-{side}")));
        let [at_listener, at_client] = &summaries;
        let mut listen = traced(&self.bench(protection), at_listener);
        let mut listener = Process::start(listen.args(["--listen", "127.0.0.1:0"]))?;
        let address = listener.wait_for_text("local", OPENING)?.parse().context("its address")?;
        let relay = self.relay(path, address)?;
        let mut connect = traced(&self.bench(protection), at_client);
        connect.args(["--connect", &relay.address().to_string(), "--seconds", &seconds.to_string()]);
        let sending = Process::start(&mut connect)?.finish(patience(Amount::Seconds(seconds)))?;
        drop(listener.interrupt());
        relay.stop()?;
        let gigabytes = needed(&sending.record(END)?, &["bytes"])? / 1e9;
        ensure!(gigabytes > 0.0, "nothing was transferred");
        let summaries: Vec<String> = summaries.iter().map(read).collect::<Result<_>>()?;
        let sum = |names: &[&str]| summaries.iter().map(|summary| calls(summary, names)).sum::<f64>() / gigabytes;
        Ok(Measured::of(COUNTED.map(|(quantity, names)| (quantity, sum(names)))))
    }
}

/// The command under `strace`, which stays in the background, so that the command itself gets the signals.
fn traced(command: &Command, summary: &FilePath) -> Command {
    let names: Vec<&str> = COUNTED.iter().flat_map(|(_, names)| *names).copied().collect();
    let mut strace = Command::new("strace");
    strace.args(["-D", "-f", "-c", "--seccomp-bpf", "-U", "name,calls", "-e", &format!("trace={}", names.join(","))]);
    strace.arg("-o").arg(summary).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            strace.env(name, value);
        }
    }
    strace
}

fn read(summary: &PathBuf) -> Result<String> {
    let text = fs::read_to_string(summary).with_context(|| summary.display().to_string())?;
    ensure!(text.contains("total"), "strace wrote no summary");
    Ok(text)
}

/// The calls of these names in a summary of `strace`: a line for each, with its name and its count.
fn calls(summary: &str, names: &[&str]) -> f64 {
    let counts = summary.lines().filter_map(|line| {
        let (name, count) = line.trim().split_once(char::is_whitespace)?;
        names.contains(&name).then(|| count.trim().parse::<f64>().ok())?
    });
    counts.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_read_from_the_summary_of_strace() {
        let summary = "syscall              calls\n---------------- ---------\nfutex                 1200\nsendmsg                 34\n\
            ---------------- ---------\ntotal                 1234\n";
        assert_eq!((calls(summary, &["futex"]), calls(summary, &["sendmsg", "sendto"])), (1_200.0, 34.0));
        assert_eq!(calls(summary, &["statx"]), 0.0);
    }
}
