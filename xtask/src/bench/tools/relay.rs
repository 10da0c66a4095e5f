//! `farhaul relay`: a long path between two ports of this machine.

use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::super::process::Process;
use super::super::samples::Invalid;
use super::{OPENING, Tools};

/// Both directions of a path. Its queue is one BDP.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Path {
    /// Bits per second.
    pub(in super::super) rate: u64,
    /// RTT.
    pub(in super::super) round_trip: Duration,
    /// Loss probability of each packet, in each direction.
    pub(in super::super) loss: f64,
}

impl Path {
    pub(in super::super) const fn bdp_bytes(&self) -> u64 {
        self.rate / 8 * self.round_trip.as_millis() as u64 / 1_000
    }
}

/// A running relay.
#[derive(Debug)]
pub(super) struct Relay {
    process: Process,
    address: SocketAddr,
}

impl Tools {
    /// A relay in front of `to` for any number of clients, which share its path.
    pub(super) fn relay(&self, path: &Path, to: SocketAddr) -> Result<Relay> {
        let mut command = Command::new(self.farhaul_path());
        command.args(["relay", "--json", "--listen", "127.0.0.1:0", "--to", &to.to_string()]);
        command.args(["--rate", &format!("{}bit", path.rate)]);
        command.args(["--delay", &format!("{}us", path.round_trip.as_micros() / 2), "--queue", "bdp"]);
        if path.loss > 0.0 {
            command.args(["--loss", &format!("{}%", path.loss * 1e2)]);
        }
        let mut process = Process::start(&mut command)?;
        let address = process.wait_for_text("local", OPENING)?.parse().context("the relay's address")?;
        Ok(Relay { process, address })
    }
}

impl Relay {
    /// The address for clients.
    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends the relay.
    ///
    /// # Errors
    /// [`Invalid`] if the relay reports that it was the limit, not the path. Another error if it reports nothing.
    pub(super) fn stop(self) -> Result<()> {
        judge(&self.process.interrupt().record("valid").context("the relay's report")?)
    }
}

fn judge(report: &Value) -> Result<()> {
    let flaws = || report["flaws"].as_array().into_iter().flatten().filter_map(Value::as_str).collect::<Vec<_>>();
    ensure!(
        report["valid"] == true,
        Invalid(format!("the relay, not the path, was the limit: {}", flaws().join("; ")))
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_relay_that_was_late_makes_the_run_invalid() {
        let error = judge(&json!({ "valid": false, "flaws": ["a packet left 60 ms late"] })).unwrap_err();
        assert!(error.is::<Invalid>() && error.to_string().contains("60 ms late"), "{error}");
        assert!(judge(&json!({ "valid": true, "flaws": [] })).is_ok());
    }

    #[test]
    fn the_bandwidth_delay_product_is_in_bytes() {
        let path = Path { rate: 1_000_000_000, round_trip: Duration::from_millis(100), loss: 0.0 };
        assert_eq!(path.bdp_bytes(), 12_500_000);
    }
}
