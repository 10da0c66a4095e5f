//! The raw example of crates/udp: what the machine can do without any protocol.

use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::super::samples::{Figures, Quantity};
use super::Tools;

/// The payload of a UDT data packet of 1500 bytes, so that the packets compare.
const PAYLOAD: u32 = 1_456;

impl Tools {
    /// An unpaced sender for so many seconds.
    pub(in super::super) fn raw(&self, seconds: u64) -> Result<Figures> {
        let mut command = Command::new(&self.raw);
        command.args([format!("seconds={seconds}"), format!("size={PAYLOAD}")]);
        // It runs for as long as it is told and needs no guard.
        let output = command.output().context("the raw example")?;
        ensure!(output.status.success(), "raw: {}", String::from_utf8_lossy(&output.stderr));
        parse(&String::from_utf8_lossy(&output.stdout))
    }
}

/// `received  63.3 Gbit/s, …` and `cpu  0.298 s/GB received …`.
fn parse(output: &str) -> Result<Figures> {
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
        other => bail!("'{other}' is no unit of a rate"),
    };
    let [cpu, ..] = words("cpu")?[..] else { bail!("'cpu' without a figure") };
    Ok(vec![(Quantity::Goodput, rate.parse::<f64>()? * factor), (Quantity::CpuPerGb, cpu.parse()?)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_words_become_figures() {
        let output = "sent      39.3 Gbit/s, 0.996 cores\nreceived  39.1 Gbit/s, 0.465 cores\ncpu       0.298 s/GB received (0.2)\n";
        let figures = parse(output).unwrap();
        assert_eq!(figures, [(Quantity::Goodput, 39.1e9), (Quantity::CpuPerGb, 0.298)]);
    }
}
