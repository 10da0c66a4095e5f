//! QUIC by quinn, the peer of encrypted transfers.

use anyhow::{Context, Result, anyhow, ensure};

use super::super::process::Process;
use super::super::quantity::Quantity;
use super::super::samples::Measured;
use super::libudt::address;
use super::{Amount, OPENING, Tools, cpu_per_gb, needed, patience};
use crate::workspace::Workspace;

/// Builds the peer, whose dependencies are its own. The reason if it does not build, for instance without a network.
pub(super) fn build(workspace: &Workspace) -> Result<std::path::PathBuf, String> {
    let target = workspace.target.join("quinn-peer");
    let mut command = workspace.cargo();
    command.args(["build", "--release", "--locked", "--quiet", "--manifest-path", "interop/quinn/Cargo.toml"]);
    let built = command.env("CARGO_TARGET_DIR", &target).stdout(std::process::Stdio::null()).status();
    match built {
        Ok(status) if status.success() => Ok(target.join("release/quinn-peer")),
        _ => Err("interop/quinn does not build".to_owned()),
    }
}

impl Tools {
    /// One transfer over loopback.
    pub(in super::super) fn quinn(&self, seconds: u64) -> Result<Measured> {
        let program = self.quinn.as_ref().map_err(|why| anyhow!("{why}"))?;
        let mut listener = Process::start(self.measured(program).arg("serve"))?;
        let to = address(&listener.wait_for_line("listening ", OPENING)?)?;
        let mut client = self.measured(program);
        client.args(["send", &to.to_string(), &seconds.to_string()]);
        let sending = Process::start(&mut client)?.finish(patience(Amount::Seconds(seconds)))?;
        listener.interrupt();
        let record = sending.record("peer_cpu_seconds").context("the report of the peer")?;
        let bytes = needed(&record, &["bytes"])?;
        ensure!(bytes > 0.0, "nothing was transferred");
        let cpu = needed(&record, &["cpu_seconds"])? + needed(&record, &["peer_cpu_seconds"])?;
        let goodput = bytes * 8.0 / needed(&record, &["seconds"])?;
        Ok(Measured { figures: vec![(Quantity::Goodput, goodput), cpu_per_gb(cpu, bytes)], notes: Vec::new() })
    }
}
