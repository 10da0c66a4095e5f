//! `farhaul relay`: a long path between two ports of this machine.

use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};

use super::super::process::Process;
use super::free_port;

/// Both directions of a path; its queue is one bandwidth-delay product.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Path {
    /// Bits per second.
    pub(in super::super) rate: u64,
    /// There and back.
    pub(in super::super) round_trip: Duration,
    /// Probability of each packet, in each direction.
    pub(in super::super) loss: f64,
}

impl Path {
    pub(in super::super) const fn bdp_bytes(&self) -> u64 {
        self.rate / 8 * self.round_trip.as_millis() as u64 / 1_000
    }
}

/// A running relay.
#[derive(Debug)]
pub(in super::super) struct Relay {
    process: Process,
    address: SocketAddr,
}

impl Relay {
    pub(super) fn start(farhaul: &std::path::Path, path: &Path, to: SocketAddr) -> Result<Self> {
        let address = free_port()?;
        let mut command = Command::new(farhaul);
        command.args(["relay", "--json", "--listen", &address.to_string(), "--to", &to.to_string()]);
        command.args(["--rate", &format!("{}bit", path.rate)]);
        command.args(["--delay", &format!("{}us", path.round_trip.as_micros() / 2), "--queue", "bdp"]);
        if path.loss > 0.0 {
            command.args(["--loss", &format!("{}%", path.loss * 1e2)]);
        }
        Ok(Self { process: Process::start(&mut command)?, address })
    }

    /// Where clients connect.
    pub(in super::super) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends it.
    ///
    /// # Errors
    /// It says that it and not the path was the limit: the figures of this run are worth nothing.
    pub(super) fn stop(self) -> Result<()> {
        let report = self.process.interrupt("valid");
        let is_valid = report.as_ref().is_none_or(|report| report["valid"] != false);
        ensure!(is_valid, "the relay was late, not the path: {}", report.unwrap_or_default()["flaws"]);
        Ok(())
    }
}
