//! Cost of a transfer for its hosts: beside kernel TCP behind one emulated path, on quiet and on busy processors.

use std::process::{Child, Command};

use anyhow::{Context, Result};
use serde_json::Value;

use super::super::quantity::Quantity;
use super::super::samples::Measured;
use super::farhaul::{END, cpu};
use super::{Emulated, Tools, cpu_per_gb, needed};

/// Larger socket buffers of TCP than any path here needs, in both hosts. The default maximum would be the limit.
pub(super) const TCP_BUFFERS: &str =
    "sysctl -qw net.ipv4.tcp_rmem='4096 131072 134217728' net.ipv4.tcp_wmem='4096 65536 134217728'";

/// Processes that each keep one processor busy, until dropped.
pub(in super::super) struct BusyLoops(Vec<Child>);

impl BusyLoops {
    /// Starts one for each processor.
    pub(in super::super) fn start() -> Result<Self> {
        let mut loops = Self(Vec::new());
        for _ in 0..std::thread::available_parallelism()?.get() {
            // A loop has no end of its own, so it is killed if this program ends.
            let mut command = Command::new("setpriv");
            let child = command.args(["--pdeathsig", "KILL", "sh", "-c", "while :; do :; done"]).spawn();
            loops.0.push(child.context("a busy loop cannot be started")?);
        }
        Ok(loops)
    }
}

impl Drop for BusyLoops {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // A kill of a child that has ended fails, which is harmless.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Tools {
    /// One transfer of ours, memory to memory. `protection` is the option for it, if any.
    pub(in super::super) fn emulated_farhaul(
        &self,
        path: &Emulated,
        protection: Option<&str>,
        seconds: u64,
    ) -> Result<Measured> {
        let bench = self.bench_line(protection);
        let serve = format!("{bench} --listen 0.0.0.0:9000 >/dev/null");
        let client = format!("{bench} --connect $FARHAUL_PEER:9000 --seconds {seconds}");
        let heard = self.emulate(path, &[&serve], &client, seconds)?;
        Ok(Transfer::of_farhaul(&heard.output)?.measured())
    }

    /// `farhaul bench` as the beginning of a line for a shell.
    pub(super) fn bench_line(&self, protection: Option<&str>) -> String {
        let bench = self.bench(protection);
        let words: Vec<_> = std::iter::once(bench.get_program()).chain(bench.get_args()).collect();
        let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
        format!("XDG_CONFIG_HOME={} {}", self.release.join("bench-user").display(), words.join(" "))
    }

    /// The same with the kernel's TCP under BBR, by `iperf3`.
    pub(in super::super) fn emulated_bbr(&self, path: &Emulated, seconds: u64) -> Result<Measured> {
        let serve = format!("{TCP_BUFFERS}; exec iperf3 -s -1 >/dev/null");
        let client = format!("{TCP_BUFFERS}; iperf3 -c $FARHAUL_PEER -C bbr -t {seconds} --json");
        let heard = self.emulate(path, &[&serve], &client, seconds)?;
        Ok(Transfer::of_iperf3(&heard.output)?.measured())
    }
}

/// A transfer and its price for both hosts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Transfer {
    /// Payload received, bit/s.
    pub(super) goodput: f64,
    /// Payload received, bytes.
    pub(super) bytes: f64,
    /// Processor time of both ends in seconds.
    pub(super) processor: f64,
}

impl Transfer {
    /// Reads the output of a client of `farhaul bench`.
    pub(super) fn of_farhaul(output: &str) -> Result<Self> {
        let mut records = output.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let record = records.rfind(|record| record.get(END).is_some()).context("no record of the transfer")?;
        Ok(Self {
            goodput: needed(&record, &["goodput_bps"])?,
            bytes: needed(&record, &["bytes"])?,
            processor: cpu(&record, &[])? + cpu(&record, &["peer"])?,
        })
    }

    /// Reads the report of a client of `iperf3`.
    pub(super) fn of_iperf3(output: &str) -> Result<Self> {
        let report: Value = serde_json::from_str(output).context("iperf3's report")?;
        let received = |name| needed(&report, &["end", "sum_received", name]);
        let percent = |side| needed(&report, &["end", "cpu_utilization_percent", side]);
        Ok(Self {
            goodput: received("bits_per_second")?,
            bytes: received("bytes")?,
            processor: (percent("host_total")? + percent("remote_total")?) / 100.0 * received("seconds")?,
        })
    }

    /// Goodput, and processor time of both ends.
    pub(super) fn measured(&self) -> Measured {
        Measured::of([(Quantity::Goodput, self.goodput), cpu_per_gb(self.processor, self.bytes)])
    }

    /// The same, and processor time with the `emulator` seconds of the path.
    pub(super) fn with_emulator(&self, emulator: f64) -> Measured {
        let mut measured = self.measured();
        let (_, sum) = cpu_per_gb(self.processor + emulator, self.bytes);
        measured.figures.push((Quantity::CpuWithPath, sum));
        measured
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_emulator_counts_like_an_end() {
        let transfer = Transfer { goodput: 8e8, bytes: 5e8, processor: 1.0 };
        let measured = transfer.with_emulator(0.5);
        assert_eq!(measured.figure(Quantity::CpuPerGb), Some(2.0));
        assert_eq!(measured.figure(Quantity::CpuWithPath), Some(3.0));
    }
}
