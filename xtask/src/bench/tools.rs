//! The programs that are measured, each behind a function that runs one transfer and gives its figures.

mod farhaul;
mod libudt;
mod raw;
mod relay;

use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use serde_json::Value;

use super::samples::{Figures, Quantity};
use crate::interop;
use crate::workspace::Workspace;

pub(super) use relay::Path;

/// How much one transfer carries.
#[derive(Clone, Copy, Debug)]
pub(super) enum Amount {
    Bytes(u64),
    Seconds(u64),
}

/// Where the programs are.
#[derive(Debug)]
pub(super) struct Tools {
    farhaul: PathBuf,
    raw: PathBuf,
    /// Or why there is none.
    libudt: Result<PathBuf, String>,
}

impl Tools {
    /// Builds them, optimised.
    pub(super) fn build(workspace: &Workspace) -> Result<Self> {
        let cargo = |arguments: &[&str]| {
            let mut command = workspace.cargo();
            command.args(["build", "--release", "--quiet"]).args(arguments);
            command
        };
        // stdout is for figures.
        let run = |mut command: std::process::Command| -> Result<()> {
            let status = command.stdout(std::process::Stdio::null()).status()?;
            anyhow::ensure!(status.success(), "the programs to be measured do not build");
            Ok(())
        };
        run(cargo(&["-p", "farhaul-cli"]))?;
        run(cargo(&["-p", "farhaul-udp", "--example", "raw"]))?;
        let release = workspace.target.join("release");
        Ok(Self {
            farhaul: release.join("farhaul"),
            raw: release.join("examples/raw"),
            libudt: interop::peer(workspace)?.map(PathBuf::from),
        })
    }

    fn libudt(&self) -> Result<&PathBuf> {
        self.libudt.as_ref().map_err(|why| anyhow!("{why}"))
    }
}

/// How long a transfer may take before it is given up: far longer than any program that works at all.
fn patience(amount: Amount) -> Duration {
    match amount {
        Amount::Bytes(bytes) => Duration::from_secs(60 + bytes / 5_000_000),
        Amount::Seconds(seconds) => Duration::from_secs(60 + 2 * seconds),
    }
}

/// A port that was free a moment ago, for programs that cannot say which one they took.
fn free_port() -> Result<SocketAddr> {
    Ok(UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr())?)
}

fn number(record: &Value, path: &[&str]) -> Option<f64> {
    path.iter().try_fold(record, |value, name| value.get(name))?.as_f64()
}

fn needed(record: &Value, path: &[&str]) -> Result<f64> {
    number(record, path).with_context(|| format!("the record has no number '{}'", path.join(".")))
}

/// The figures of which a program knows the parts.
fn cpu_per_gb(seconds: f64, bytes: f64) -> (Quantity, f64) {
    (Quantity::CpuPerGb, seconds / (bytes / 1e9))
}

fn retransmitted(again: f64, sent: f64) -> (Quantity, f64) {
    (Quantity::Retransmitted, if sent > 0.0 { again / sent } else { 0.0 })
}

/// What all programs give.
fn figures(parts: impl IntoIterator<Item = Option<(Quantity, f64)>>) -> Figures {
    parts.into_iter().flatten().collect()
}
