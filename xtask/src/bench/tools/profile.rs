//! Samples of both ends of a transfer over an emulated path, by `perf` with software events, which need no counters of the
//! processor.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::super::process::Process;
use super::farhaul::END;
use super::{Emulated, Tools, ensure_installed, needed};
use crate::clock::pause;

/// Period of the samples of each processor.
const PERIOD: Duration = Duration::from_micros(250);
/// Time until `perf` samples.
const START: Duration = Duration::from_millis(500);

/// An end of the transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum End {
    Sending,
    Receiving,
}

/// A look at what a processor did.
#[derive(Clone, Debug)]
pub(in super::super) struct Sample {
    pub(in super::super) end: End,
    /// The innermost function.
    pub(in super::super) function: String,
    /// The file with the function, or the kernel in brackets.
    pub(in super::super) object: String,
}

/// A profiled transfer.
#[derive(Debug)]
pub(in super::super) struct Profiled {
    pub(in super::super) samples: Vec<Sample>,
    pub(in super::super) nanoseconds_a_sample: f64,
    /// Packets that the sending end sent.
    pub(in super::super) sent: f64,
    /// Packets that the receiving end received.
    pub(in super::super) received: f64,
}

impl Profiled {
    /// The data packets of an end.
    pub(in super::super) const fn packets(&self, end: End) -> f64 {
        match end {
            End::Sending => self.sent,
            End::Receiving => self.received,
        }
    }
}

impl End {
    /// The name of the program at this end. Samples tell ends apart by it.
    const fn program(self) -> &'static str {
        match self {
            Self::Sending => "farhaul-sending",
            Self::Receiving => "farhaul-receiving",
        }
    }
}

impl Tools {
    /// Builds `farhaul` with symbols.
    ///
    /// # Errors
    /// [`Skipped`](super::super::samples::Skipped) without `perf`.
    pub(in super::super) fn build_for_profile(workspace: &crate::workspace::Workspace) -> Result<Self> {
        ensure_installed("perf", "linux-perf (Debian) or linux-tools-generic (Ubuntu)")?;
        // Its files are those of the release profile.
        Self::build_programs(workspace, &[&["-p", "farhaul-cli"]], "bench")?;
        let needless = || Err("a profile does not need it".to_owned());
        let release = workspace.target.join("release");
        Ok(Self { release, libudt: needless(), quinn: needless(), drops_rights: false })
    }

    /// One transfer with the default law. `protection` is the option for it, if any.
    pub(in super::super) fn profiled(
        &self,
        path: &Emulated,
        protection: Option<&str>,
        seconds: u64,
    ) -> Result<Profiled> {
        let links = [End::Receiving, End::Sending].map(|end| Link(self.release.join(end.program())));
        for link in &links {
            // One that an interrupted profile left.
            let _ = fs::remove_file(&link.0);
            fs::hard_link(self.farhaul_path(), &link.0).with_context(|| link.0.display().to_string())?;
        }
        let ours = self.farhaul_path().display().to_string();
        let bench = |link: &Link| self.bench_line(protection).replacen(&ours, &link.0.display().to_string(), 1);
        let [listen, connect] = [&links[0], &links[1]].map(bench);
        let serve = format!("exec env {listen} --listen 0.0.0.0:9000 >/dev/null");
        let client = format!("{connect} --connect $FARHAUL_PEER:9000 --seconds {seconds}");
        let data = Link(self.release.join("bench-perf.data"));
        let mut record = Command::new("perf");
        record.args(["record", "--all-cpus", "--event=cpu-clock", "--no-buildid", "--no-buildid-cache"]);
        record.arg(format!("--count={}", PERIOD.as_nanos())).arg("--output").arg(&data.0);
        let perf = Process::start(&mut record)?;
        pause(START);
        let heard = self.emulate(path, &[&serve], &client, seconds)?;
        perf.interrupt();
        let mut records = heard.output.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let end = records.rfind(|record| record.get(END).is_some()).context("no record of the transfer")?;
        Ok(Profiled {
            samples: samples(&script(&data.0)?),
            nanoseconds_a_sample: PERIOD.as_nanos() as f64,
            sent: needed(&end, &["packets_sent"])?,
            received: needed(&end, &["peer", "packets_received"])?,
        })
    }
}

/// A file that is removed with its handle.
struct Link(PathBuf);

impl Drop for Link {
    fn drop(&mut self) {
        // The next profile removes what is left.
        let _ = fs::remove_file(&self.0);
    }
}

/// The samples as text: process, address, function, and in parentheses the object.
fn script(data: &Path) -> Result<String> {
    let mut script = Command::new("perf");
    script.args(["script", "--fields=pid,ip,sym,dso", "--no-inline", "--input"]).arg(data);
    let output = script.output().context("perf script")?;
    ensure!(output.status.success(), "perf script: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The samples of both ends. A process belongs to an end if one of its samples lies in the program of that end.
fn samples(script: &str) -> Vec<Sample> {
    let lines = || script.lines().filter_map(sample);
    let mut ends = HashMap::new();
    for (process, _, object) in lines() {
        let end = [End::Sending, End::Receiving].into_iter().find(|end| object.ends_with(end.program()));
        ends.extend(end.map(|end| (process, end)));
    }
    let of_an_end = |(process, function, object): (u32, &str, &str)| {
        let end = *ends.get(&process)?;
        Some(Sample { end, function: function.to_owned(), object: object.to_owned() })
    };
    lines().filter_map(of_an_end).collect()
}

/// `  4711  ffffffff816ad458 skb_segment ([kernel.kallsyms])`. Names of Rust may have spaces.
fn sample(line: &str) -> Option<(u32, &str, &str)> {
    let (process, rest) = line.trim_start().split_once(char::is_whitespace)?;
    let (_, rest) = rest.trim_start().split_once(' ')?;
    let (function, object) = rest.rsplit_once(" (")?;
    Some((process.parse().ok()?, function.trim(), object.strip_suffix(')')?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_belong_to_the_end_whose_program_ran() {
        let script = "  7  55d0 <a::B as c::D>::e (/t/release/farhaul-sending)\n  \
              7  ffffffff816ad458 skb_segment ([kernel.kallsyms])\n  \
              8  ffffffff816ad458 skb_segment ([kernel.kallsyms])\n\n  \
              9  7f00 [unknown] (/lib/libc.so.6)\n  9  55d0 f (/t/release/farhaul-receiving)\n";
        let found: Vec<_> = samples(script).into_iter().map(|sample| (sample.end, sample.function)).collect();
        let expected = [
            (End::Sending, "<a::B as c::D>::e"),
            (End::Sending, "skb_segment"),
            (End::Receiving, "[unknown]"),
            (End::Receiving, "f"),
        ];
        assert_eq!(found, expected.map(|(end, function)| (end, function.to_owned())));
    }
}
