//! The measured programs, each behind a function that runs one transfer and returns its figures.

mod calls;
mod copies;
mod emulator;
mod farhaul;
mod flood;
mod host_cost;
mod idle;
mod laws;
mod libudt;
mod namespaces;
mod profile;
mod quinn;
mod quota;
mod raw;
mod relay;
mod shares;
mod simulator;
mod ssh;

use std::path::{Path as FilePath, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::Value;

use super::buffers;
use super::quantity::Quantity;
use super::samples::Skipped;
use crate::interop;
use crate::workspace::Workspace;

pub(super) use copies::{Copier, Source};
pub(super) use emulator::Emulated;
pub(super) use host_cost::BusyLoops;
pub(super) use laws::{Law, LawPath, Quotas};
pub(super) use namespaces::Wire;
#[cfg(test)]
pub(super) use profile::Sample;
pub(super) use profile::{End, Profiled};
pub(super) use quota::Quota;
pub(super) use relay::Path;
pub(super) use shares::Side;
pub(super) use ssh::SshTimes;

/// How long a program may take to report its port.
const OPENING: Duration = Duration::from_secs(10);

/// Size or duration of one transfer.
#[derive(Clone, Copy, Debug)]
pub(super) enum Amount {
    Bytes(u64),
    Seconds(u64),
}

/// Locations of the programs.
#[derive(Debug)]
pub(super) struct Tools {
    release: PathBuf,
    /// The peer program, or why there is none.
    libudt: Result<PathBuf, String>,
    /// The peer of encrypted transfers, or why there is none.
    quinn: Result<PathBuf, String>,
    /// Whether measured programs run without the right to override the limits of socket buffers.
    drops_rights: bool,
}

impl Tools {
    /// Builds them, optimised; without `peers` only `farhaul` itself and the paced sender without a protocol.
    pub(super) fn build(workspace: &Workspace, peers: bool) -> Result<Self> {
        let all = [
            &["-p", "farhaul-cli"][..],
            &["-p", "farhaul", "--example", "paced_raw"],
            &["-p", "farhaul-emu", "--example", "raw"],
            &["-p", "farhaul", "--example", "idle_connections", "--example", "sink", "--example", "initial_flood"],
            &["-p", "farhaul-sim", "--example", "speed", "--example", "hops"],
        ];
        Self::build_programs(workspace, if peers { &all } else { &all[..2] }, "release")?;
        let needless = || Err("no chosen row needs it".to_owned());
        let libudt = if peers { interop::peer(workspace)?.map(PathBuf::from) } else { needless() };
        let quinn = if peers { quinn::build(workspace) } else { needless() };
        Ok(Self { release: workspace.target.join("release"), libudt, quinn, drops_rights: false })
    }

    fn build_programs(workspace: &Workspace, programs: &[&[&str]], profile: &str) -> Result<()> {
        for arguments in programs {
            let mut command = workspace.cargo();
            command.args(["build", "--profile", profile, "--quiet"]).args(*arguments);
            // stdout is for figures.
            let status = command.stdout(Stdio::null()).status()?;
            ensure!(status.success(), "the programs to be measured do not build");
        }
        Ok(())
    }

    /// Sets whether programs run without the right to override the limits of socket buffers. A relay always keeps the
    /// right, because it stands for a path.
    pub(super) fn drop_rights(&mut self, drops: bool) {
        self.drops_rights = drops;
    }

    fn farhaul_path(&self) -> PathBuf {
        self.release.join("farhaul")
    }

    fn example(&self, name: &str) -> Command {
        self.measured(&self.release.join("examples").join(name))
    }

    fn libudt_peer(&self, arguments: &[&str]) -> Result<Command> {
        let mut command = self.measured(self.libudt.as_ref().map_err(|why| anyhow!("{why}"))?);
        command.args(arguments);
        Ok(command)
    }

    /// A program to measure.
    fn measured(&self, program: &FilePath) -> Command {
        if self.drops_rights { buffers::without_rights(program) } else { Command::new(program) }
    }
}

/// # Errors
/// [`Skipped`] if no folder of programs has `program`, with the package that brings it.
pub(super) fn ensure_installed(program: &str, package: &str) -> Result<()> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    // Servers lie where only root looks.
    let mut folders = std::env::split_paths(&folders).chain(["/usr/sbin".into()]);
    let has = folders.any(|folder: PathBuf| folder.join(program).is_file());
    ensure!(has, Skipped(format!("{program} is not installed: apt install {package}")));
    Ok(())
}

/// Time limit of a transfer, far longer than any working program needs.
fn patience(amount: Amount) -> Duration {
    match amount {
        Amount::Bytes(bytes) => Duration::from_secs(60 + bytes / 5_000_000),
        Amount::Seconds(seconds) => Duration::from_secs(60 + 2 * seconds),
    }
}

fn number(record: &Value, path: &[&str]) -> Option<f64> {
    path.iter().try_fold(record, |value, name| value.get(name))?.as_f64()
}

fn needed(record: &Value, path: &[&str]) -> Result<f64> {
    number(record, path).with_context(|| format!("the record has no number '{}'", path.join(".")))
}

/// Processor time per GB received.
fn cpu_per_gb(seconds: f64, bytes: f64) -> (Quantity, f64) {
    (Quantity::CpuPerGb, seconds / (bytes / 1e9))
}

fn retransmitted(again: f64, sent: f64) -> (Quantity, f64) {
    (Quantity::Retransmitted, if sent > 0.0 { again / sent } else { 0.0 })
}
