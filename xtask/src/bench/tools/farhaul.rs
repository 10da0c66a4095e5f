//! `farhaul bench`: two processes of ours and the record at their end.

use std::net::SocketAddr;
use std::process::Command;

use anyhow::{Result, ensure};

use super::super::machine::PACKET_SIZE;
use super::super::process::Process;
use super::super::samples::{Figures, Quantity};
use super::relay::{Path, Relay};
use super::{Amount, Tools, cpu_per_gb, figures, free_port, needed, number, patience, retransmitted};

/// Of all records of `farhaul bench --json`, only the one at the end has it.
const END: &str = "loss_ratio";

impl Tools {
    /// One transfer under `controller`, straight over loopback or through a relay that behaves like `path`.
    pub(in super::super) fn farhaul(&self, controller: &str, amount: Amount, path: Option<&Path>) -> Result<Figures> {
        let address = free_port()?;
        let _listener = Process::start(self.bench().args(["--listen", &address.to_string()]))?;
        let relay = path.map(|path| self.relay(path, address)).transpose()?;
        let to = relay.as_ref().map_or(address, Relay::address);
        let mut client = self.bench();
        client.args(["--connect", &to.to_string(), "--controller", controller, "--mtu", &PACKET_SIZE.to_string()]);
        match amount {
            Amount::Bytes(bytes) => client.args(["--bytes", &format!("{bytes}B")]),
            Amount::Seconds(seconds) => client.args(["--seconds", &seconds.to_string()]),
        };
        let record = Process::start(&mut client)?.record(END, patience(amount))?;
        relay.map_or(Ok(()), Relay::stop)?;
        let cpu = |side: &[&str]| -> Option<f64> {
            let part = |name| number(&record, &[side, &["cpu_seconds", name]].concat());
            Some(part("user")? + part("system")?)
        };
        let both = || Some(cpu(&[])? + cpu(&["peer"])?);
        let bytes = needed(&record, &["bytes"])?;
        ensure!(bytes > 0.0, "nothing was transferred");
        Ok(figures([
            Some((Quantity::Goodput, needed(&record, &["goodput_bps"])?)),
            Some((Quantity::Completion, needed(&record, &["seconds"])?)),
            both().map(|seconds| cpu_per_gb(seconds, bytes)),
            number(&record, &["packets_retransmitted"])
                .zip(number(&record, &["packets_sent"]))
                .map(|(again, sent)| retransmitted(again, sent)),
        ]))
    }

    fn bench(&self) -> Command {
        let mut command = Command::new(&self.farhaul);
        command.args(["bench", "--plain", "--json"]);
        command
    }

    /// A relay of ours in front of `to`.
    pub(super) fn relay(&self, path: &Path, to: SocketAddr) -> Result<Relay> {
        Relay::start(&self.farhaul, path, to)
    }
}
