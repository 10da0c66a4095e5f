//! Senders without any protocol: at full speed, and paced over a path.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::super::process::Process;
use super::super::quantity::Quantity;
use super::super::samples::Measured;
use super::host_cost::Transfer;
use super::libudt::address;
use super::relay::Path;
use super::{Amount, OPENING, Tools, needed, patience};

/// The payload of a UDT data packet of 1500 bytes, so that the packets compare.
pub(super) const PAYLOAD: u32 = 1_456;
/// Idle time after which the receiver ends, twice over.
pub(super) const SILENCE: Duration = Duration::from_secs(5);

impl Tools {
    /// An unpaced sender for `seconds` seconds (the raw example of crates/udp).
    pub(in super::super) fn raw(&self, seconds: u64) -> Result<Measured> {
        let mut command: Command = self.example("raw");
        command.args([format!("seconds={seconds}"), format!("size={PAYLOAD}")]);
        parse(&Process::start(&mut command)?.finish(patience(Amount::Seconds(seconds)))?.text())
    }

    /// A sender of `rate` payload bits per second through a relay (the paced_raw example of crates/farhaul).
    pub(in super::super) fn paced_raw(&self, rate: f64, seconds: u64, path: &Path) -> Result<Measured> {
        let mut receiver = Process::start(self.example("paced_raw").args(["recv", "127.0.0.1:0"]))?;
        let relay = self.relay(path, address(&receiver.wait_for_line("listening ", OPENING)?)?)?;
        let mut sender = self.example("paced_raw");
        sender.args(["send", &relay.address().to_string(), &format!("{rate:.0}bit"), &seconds.to_string()]);
        let sent = Process::start(sender.arg(PAYLOAD.to_string()))?.finish(patience(Amount::Seconds(seconds)))?;
        let received = receiver.finish(SILENCE)?;
        relay.stop()?;
        Ok(paced(&sent.record("sent_bytes")?, &received.record("received_bytes")?)?.measured())
    }
}

/// Reads the reports of both ends of the paced sender, one a line.
pub(super) fn paced_transfer(output: &str) -> Result<Transfer> {
    let records: Vec<Value> = output.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let report = |name: &str| records.iter().find(|record| record.get(name).is_some());
    let (sent, received) = report("sent_bytes").zip(report("received_bytes")).context("a report is missing")?;
    paced(sent, received)
}

fn paced(sent: &Value, received: &Value) -> Result<Transfer> {
    let (bytes, seconds) = (needed(received, &["received_bytes"])?, needed(received, &["seconds"])?);
    ensure!(bytes > 0.0 && seconds > 0.0, "nothing arrived");
    let processor = needed(sent, &["cpu_seconds"])? + needed(received, &["cpu_seconds"])?;
    Ok(Transfer { goodput: bytes * 8.0 / seconds, bytes, processor })
}

/// `received  63.3 Gbit/s, …` and `cpu  0.298 s/GB received …`.
fn parse(output: &str) -> Result<Measured> {
    let words = |name: &str| {
        let line = output.lines().find(|line| line.starts_with(name));
        line.map(|line| line.split_whitespace().skip(1).collect::<Vec<_>>())
            .with_context(|| format!("no line '{name}'"))
    };
    let [rate, unit, ..] = words("received")?[..] else { bail!("'received' without a rate") };
    let factor = match unit.trim_end_matches(',') {
        "Gbit/s" => 1e9,
        "Mbit/s" => 1e6,
        "kbit/s" => 1e3,
        "bit/s" => 1.0,
        other => bail!("unknown unit of a rate: '{other}'"),
    };
    let [cpu, ..] = words("cpu")?[..] else { bail!("'cpu' without a figure") };
    Ok(Measured::of([(Quantity::Goodput, rate.parse::<f64>()? * factor), (Quantity::CpuPerGb, cpu.parse()?)]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_examples_output_becomes_figures() {
        let output = "sent      39.3 Gbit/s, 0.996 cores\nreceived  39.1 Gbit/s, 0.465 cores\ncpu       0.298 s/GB received (0.2)\n";
        let figures = parse(output).unwrap().figures;
        assert_eq!(figures, [(Quantity::Goodput, 39.1e9), (Quantity::CpuPerGb, 0.298)]);
    }

    #[test]
    fn processor_time_of_both_sides_is_per_received_byte() {
        let received = json!({ "received_bytes": 500_000_000, "seconds": 4.0, "cpu_seconds": 0.5 });
        let sent = json!({ "sent_bytes": 600_000_000, "cpu_seconds": 0.25 });
        let transfer = paced_transfer(&format!("listening 127.0.0.1:9\n{received}\n{sent}")).unwrap();
        assert_eq!(transfer.measured().figures, [(Quantity::Goodput, 1e9), (Quantity::CpuPerGb, 1.5)]);
    }
}
