//! `farhaul bench`: two processes of ours and their final record.

use std::net::SocketAddr;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::super::machine::PACKET_SIZE;
use super::super::process::Process;
use super::super::quantity::Quantity;
use super::super::samples::Measured;
use super::relay::{Path, Relay};
use super::{Amount, OPENING, Tools, cpu_per_gb, needed, number, patience, retransmitted};

/// A field that only the last record of `farhaul bench --json` has.
pub(super) const END: &str = "loss_ratio";
/// Interval of the receiver's records, in seconds.
const INTERVAL: &str = "0.25";
/// Beginnings and ends of the parts in warnings about socket buffers.
const WARNINGS: [(&str, &str); 2] = [("the ", " of the socket is "), (" instead of ", ",")];

impl Tools {
    /// One plain transfer under `controller`, directly over loopback or through a relay that emulates `path`.
    pub(in super::super) fn farhaul(&self, controller: &str, amount: Amount, path: Option<&Path>) -> Result<Measured> {
        self.transfer(&|| self.bench(Some("--plain")), controller, amount, path)
    }

    /// The same over loopback with a cap on the rate that is sent.
    pub(in super::super) fn farhaul_capped(&self, controller: &str, rate: &str, seconds: u64) -> Result<Measured> {
        let bench = || {
            let mut bench = self.bench(Some("--plain"));
            bench.env("FARHAUL_RATE", rate);
            bench
        };
        self.transfer(&bench, controller, Amount::Seconds(seconds), None)
    }

    /// The same with encryption, the default of the program.
    pub(in super::super) fn farhaul_encrypted(
        &self,
        controller: &str,
        amount: Amount,
        path: Option<&Path>,
    ) -> Result<Measured> {
        self.transfer(&|| self.bench(None), controller, amount, path)
    }

    fn transfer(
        &self,
        bench: &dyn Fn() -> Command,
        controller: &str,
        amount: Amount,
        path: Option<&Path>,
    ) -> Result<Measured> {
        let mut listener = Process::start(bench().args(["--listen", "127.0.0.1:0", "--interval", INTERVAL]))?;
        let address: SocketAddr = listener.wait_for_text("local", OPENING)?.parse().context("its address")?;
        let relay = path.map(|path| self.relay(path, address)).transpose()?;
        let to = relay.as_ref().map_or(address, Relay::address);
        let mut client = bench();
        client.args(["--connect", &to.to_string(), "--controller", controller, "--mtu", &PACKET_SIZE.to_string()]);
        match amount {
            Amount::Bytes(bytes) => client.args(["--bytes", &format!("{bytes}B")]),
            Amount::Seconds(seconds) => client.args(["--seconds", &seconds.to_string()]),
        };
        let sending = Process::start(&mut client)?.finish_beside(patience(amount), Some(&mut listener))?;
        let receiving = listener.interrupt();
        relay.map_or(Ok(()), Relay::stop)?;
        let record = sending.record(END)?;
        let bytes = needed(&record, &["bytes"])?;
        ensure!(bytes > 0.0, "nothing was transferred");
        let mut figures = vec![
            (Quantity::Goodput, needed(&record, &["goodput_bps"])?),
            (Quantity::Completion, needed(&record, &["seconds"])?),
            cpu_per_gb(cpu(&record, &[])? + cpu(&record, &["peer"])?, bytes),
            retransmitted(needed(&record, &["packets_retransmitted"])?, needed(&record, &["packets_sent"])?),
        ];
        figures.extend(sending.peak_memory.map(|bytes| (Quantity::SenderMemory, bytes)));
        figures.extend(receiving.peak_memory.map(|bytes| (Quantity::ReceiverMemory, bytes)));
        if let (Some(one), Some(other)) = (sending.context_switches, receiving.context_switches) {
            let switches = [(Quantity::SenderSwitches, one), (Quantity::ReceiverSwitches, other)];
            figures.extend(switches.map(|(quantity, count)| (quantity, count / (bytes / 1e9))));
        }
        if let Amount::Seconds(seconds) = amount {
            let (half, end) = (seconds as f64 / 2.0, seconds as f64);
            figures.extend(steady(&receiving.records(), half, end).map(|rate| (Quantity::Steady, rate)));
        }
        let notes = vec![buffers("receiving", &receiving.records()), buffers("sending", &sending.records())];
        Ok(Measured { figures, notes })
    }

    /// Both sides have the same user's key, so that they trust each other.
    pub(super) fn bench(&self, protection: Option<&str>) -> Command {
        let mut command = self.measured(&self.farhaul_path());
        command.args(["bench", "--json", "--no-path-memory"]).args(protection);
        command.env("XDG_CONFIG_HOME", self.release.join("bench-user"));
        command
    }
}

/// Processor time of a side in seconds: this one, or its `peer`.
pub(super) fn cpu(record: &Value, side: &[&str]) -> Result<f64> {
    let part = |name| needed(record, &[side, &["cpu_seconds", name]].concat());
    Ok(part("user")? + part("system")?)
}

/// Payload bits per second in the intervals between `from` and `to` seconds of the receiver's time, which starts half
/// an RTT after the sender's. `None` if the intervals cover too little of it.
fn steady(records: &[Value], from: f64, to: f64) -> Option<f64> {
    let (mut bytes, mut seconds) = (0.0, 0.0);
    for record in records.iter().filter(|record| record["event"] == "interval") {
        let (start, end) = (number(record, &["start_seconds"])?, number(record, &["end_seconds"])?);
        if start >= from && end <= to {
            bytes += number(record, &["bytes"])?;
            seconds += end - start;
        }
    }
    (seconds >= 0.8 * (to - from)).then(|| bytes * 8.0 / seconds)
}

/// The difference between requested and granted buffers of a side, from its warnings.
fn buffers(side: &str, records: &[Value]) -> String {
    let [(the, is), (instead, comma)] = WARNINGS;
    let clamped = records.iter().filter(|record| record["event"] == "warning").filter_map(|record| {
        let text = record["message"].as_str()?.strip_prefix(the)?;
        let (buffer, rest) = text.split_once(is)?;
        let (got, rest) = rest.split_once(instead)?;
        let (asked, _) = rest.split_once(comma)?;
        Some(format!("{buffer} {got} for {asked}"))
    });
    let clamped: Vec<String> = clamped.collect();
    if clamped.is_empty() {
        return format!("{side}: socket got the requested buffers, 33.6 MB to receive and 4.2 MB to send");
    }
    format!("{side}: socket got smaller buffers than requested: {}", clamped.join(", "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn interval(start: f64, end: f64, bytes: u64) -> Value {
        json!({ "event": "interval", "start_seconds": start, "end_seconds": end, "bytes": bytes })
    }

    #[test]
    fn only_intervals_within_the_window_count() {
        let records = [
            interval(0.0, 5.1, 1),
            interval(5.1, 7.0, 1_900),
            interval(7.0, 9.9, 2_900),
            interval(9.9, 10.2, 7_000),
            json!({ "event": "end" }),
        ];
        let rate = steady(&records, 5.0, 10.0).unwrap();
        assert!((rate - 8_000.0).abs() < 1e-6, "{rate}");
    }

    #[test]
    fn too_few_intervals_are_no_figure() {
        assert_eq!(steady(&[interval(5.0, 7.0, 1_000)], 5.0, 10.0), None);
        assert_eq!(steady(&[], 5.0, 10.0), None);
    }

    #[test]
    fn socket_buffers_are_quoted_from_the_warnings() {
        let warning =
            "the receive buffer of the socket is 213 kB instead of 33.6 MB, which reduces throughput: sysctl -w x=1";
        let records =
            [json!({ "event": "warning", "message": warning }), json!({ "event": "warning", "message": "x" })];
        let note = "receiving: socket got smaller buffers than requested: receive buffer 213 kB for 33.6 MB";
        assert_eq!(buffers("receiving", &records), note);
        assert!(buffers("sending", &[]).contains("the requested buffers"));
    }
}
