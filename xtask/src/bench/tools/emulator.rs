//! `farhaul emulate`, measured by other programs. Its own report only decides whether a run counts.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::super::buffers::Limits;
use super::super::process::Process;
use super::super::quantity::Quantity;
use super::super::samples::{Invalid, Measured};
use super::{Amount, Tools, needed, patience};

/// Bytes of IPv4 and UDP headers.
const HEADERS: u64 = 28;
/// Queue length of paths without another one, in seconds of their rate. It bridges the time for which a sender lacks a processor, when
/// programs outnumber processors. The link then never idles, and arrivals measure its rate and not the sender's.
const QUEUE: f64 = 0.05;
/// Socket buffers of `iperf3`, in bytes. The kernel's default holds 13 packets of 9000 bytes. Its receiver would lose
/// packets whenever it waits a fifth of a millisecond for a processor.
const IPERF_BUFFER: u64 = 8 << 20;

/// An emulated path. Both directions are equal, except for loss, which is on the forward path.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Emulated {
    /// Bits per second.
    pub(in super::super) rate: u64,
    pub(in super::super) delay: Duration,
    pub(in super::super) loss: f64,
    /// Size of the largest packet in bytes.
    pub(in super::super) mtu: u64,
    /// Room of the queue in packets. `None`: a length that bridges the time for which a sender lacks a processor.
    pub(in super::super) queue: Option<u64>,
    /// Seed of the losses.
    pub(in super::super) seed: usize,
}

impl Tools {
    /// Half of the excess of ping's RTT over the path's delays, which one echo in a hundred exceeds.
    pub(in super::super) fn emulated_delay(&self, path: &Emulated, echoes: u64) -> Result<Measured> {
        let said = self.emulate(path, &[], &format!("ping -n -i 0.01 -c {echoes} $FARHAUL_PEER"), echoes / 100)?;
        let mut excess = round_trips(&said.output)?;
        excess.iter_mut().for_each(|trip| *trip -= 2.0 * path.delay.as_secs_f64());
        ensure!(excess.len() as u64 >= echoes * 9 / 10, "only {} of {echoes} echoes came back", excess.len());
        excess.sort_by(f64::total_cmp);
        let late = excess[(excess.len() * 99).div_ceil(100) - 1] / 2.0;
        // A path that is too fast is as wrong as one that is too slow.
        let early = (-excess[0] / 2.0).max(0.0);
        Ok(Measured::of([(Quantity::Lateness, late.max(early))]))
    }

    /// Sends `excess` times the path's rate with `iperf3 -u`. Returns the received share with headers, the deviation of
    /// the losses, and the emulator's processor share.
    pub(in super::super) fn emulated_rate(&self, path: &Emulated, excess: f64, seconds: u64) -> Result<Measured> {
        let length = path.mtu - HEADERS;
        let rate = (path.rate as f64 * excess * length as f64 / path.mtu as f64) as u64;
        // Linux grants no more than the limit, and iperf3 insists on the requested size.
        let _limits = Limits::set(IPERF_BUFFER)?;
        let client = format!("iperf3 -c $FARHAUL_PEER -u -b {rate} -l {length} -w {IPERF_BUFFER} -t {seconds} --json");
        let said = self.emulate(path, &["iperf3 -s -1 >/dev/null"], &client, seconds)?;
        let report: Value = serde_json::from_str(&said.output).context("iperf3's report")?;
        let at = |name| needed(&report, &["end", "sum_received", name]);
        let arrived = at("bits_per_second")? * path.mtu as f64 / length as f64 / path.rate as f64;
        let mut figures = vec![(Quantity::RateShare, arrived), (Quantity::CpuShare, said.processor_share)];
        if path.loss > 0.0 {
            let off = deviation(at("lost_packets")?, at("packets")?, path.loss);
            figures.push((Quantity::Deviation, off));
        }
        Ok(Measured::of(figures))
    }

    /// The rate of the kernel's TCP by `iperf3`, and the emulator's processor share.
    pub(in super::super) fn emulated_tcp(&self, path: &Emulated, seconds: u64) -> Result<Measured> {
        let client = format!("iperf3 -c $FARHAUL_PEER -t {seconds} --json");
        let said = self.emulate(path, &["iperf3 -s -1 >/dev/null"], &client, seconds)?;
        let report: Value = serde_json::from_str(&said.output).context("iperf3's report")?;
        let goodput = needed(&report, &["end", "sum_received", "bits_per_second"])?;
        Ok(Measured::of([(Quantity::Goodput, goodput), (Quantity::CpuShare, said.processor_share)]))
    }

    /// Runs `command` on the near host and returns its output. The far host runs the lines of `serve`.
    pub(super) fn emulate(&self, path: &Emulated, serve: &[&str], command: &str, seconds: u64) -> Result<Heard> {
        let file = Temporary::new("out");
        // Records go to stderr, which the process module reserves for errors. Here they are the result.
        let mut emulate = Command::new("sh");
        emulate.args(["-c", "exec \"$@\" 2>&1", "emulate"]).arg(self.farhaul_path());
        emulate.args(["emulate", "--json", "--rate", &format!("{}bit", path.rate)]);
        emulate.args(["--delay", &format!("{}us", path.delay.as_micros()), "--mtu", &path.mtu.to_string()]);
        let queue = path.queue.unwrap_or((QUEUE * path.rate as f64 / (8 * path.mtu) as f64) as u64);
        emulate.args(["--seed", &path.seed.to_string(), "--queue", &queue.to_string()]);
        if path.loss > 0.0 {
            emulate.args(["--up", &format!("loss={}%", path.loss * 1e2)]);
        }
        for line in serve {
            emulate.args(["--serve", line]);
        }
        emulate.args(["--", "sh", "-c", &format!("exec 2>/dev/null; {command} > {}", file.0.display())]);
        let said = Process::start(&mut emulate)?.finish(patience(Amount::Seconds(seconds)))?;
        let record = said.record("valid").context("the emulator's report")?;
        let output = file.text()?;
        let flaws = || record["flaws"].as_array().into_iter().flatten().filter_map(Value::as_str).collect::<Vec<_>>();
        ensure!(
            record["valid"] == true,
            Invalid(format!("the emulator, not the path, was the limit: {}", flaws().join("; ")))
        );
        let processor_share = needed(&record, &["processor_share"])?;
        Ok(Heard { output, processor_share, processor_seconds: processor_share * needed(&record, &["seconds"])? })
    }
}

/// The output of a program behind the path, and the cost of the path.
pub(super) struct Heard {
    pub(super) output: String,
    processor_share: f64,
    /// Processor time of the emulator's thread.
    pub(super) processor_seconds: f64,
}

/// A file that is removed with its handle.
pub(super) struct Temporary(pub(super) PathBuf);

impl Temporary {
    /// The name of a file that does not exist yet. One of each `kind` at a time.
    pub(super) fn new(kind: &str) -> Self {
        Self(std::env::temp_dir().join(format!("farhaul-bench-{}.{kind}", std::process::id())))
    }

    fn text(&self) -> Result<String> {
        fs::read_to_string(&self.0).with_context(|| self.0.display().to_string())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // A file left in the folder for temporary files does no harm.
        let _ = fs::remove_file(&self.0);
    }
}

/// `… time=20.3 ms`, in seconds.
fn round_trips(output: &str) -> Result<Vec<f64>> {
    output
        .lines()
        .filter_map(|line| line.split_once("time=")?.1.strip_suffix(" ms"))
        .map(|milliseconds| Ok(milliseconds.parse::<f64>().context("ping's milliseconds")? / 1e3))
        .collect()
}

/// The difference between `lost` and the expectation for `packets` at a loss of `share`, in standard deviations.
fn deviation(lost: f64, packets: f64, share: f64) -> f64 {
    let expected = packets * share;
    ((lost - expected) / (expected * (1.0 - share)).sqrt()).abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_are_read_from_pings_lines() {
        let output = "PING 10.77.0.2\n64 bytes from 10.77.0.2: icmp_seq=1 ttl=64 time=20.3 ms\n\n5 packets, time 4ms\n";
        let trips = round_trips(output).unwrap();
        assert!(trips.len() == 1 && (trips[0] - 0.0203).abs() < 1e-9);
    }

    #[test]
    fn loss_deviation_is_in_standard_deviations() {
        assert!((deviation(130.0, 10_000.0, 0.01) - 3.015).abs() < 0.001);
    }
}
