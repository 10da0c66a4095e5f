//! The examples `speed` and `hops` of crates/sim.

use anyhow::{Context, Result};

use super::super::process::Process;
use super::super::quantity::Quantity;
use super::super::samples::Measured;
use super::{Amount, Tools, patience};

impl Tools {
    /// Virtual seconds per real second over `seconds` virtual seconds.
    pub(in super::super) fn simulator(&self, seconds: u64) -> Result<Measured> {
        let process = Process::start(self.example("speed").arg(seconds.to_string()))?;
        parse(&process.finish(patience(Amount::Seconds(seconds)))?.text())
    }

    /// Price of a packet-hop, processor time and memory of `flows` flows over `seconds` virtual seconds.
    pub(in super::super) fn packet_hops(&self, flows: u32, seconds: u64) -> Result<Measured> {
        let process = Process::start(self.example("hops").args([&flows.to_string(), &seconds.to_string(), "union"]))?;
        parse_hops(&process.finish(patience(Amount::Seconds(20 * seconds)))?.text())
    }
}

/// `0.512 µs a packet-hop, 2.48 s, 30.1 MiB (…)`.
fn parse_hops(output: &str) -> Result<Measured> {
    let figure = |place: usize| {
        let number = output.split(", ").nth(place).and_then(|part| part.split_whitespace().next()?.parse::<f64>().ok());
        number.with_context(|| format!("no figure {place} in '{output}'"))
    };
    let memory = figure(2)? * f64::from(1 << 20);
    Ok(Measured::of([
        (Quantity::HopTime, figure(0)? / 1e6),
        (Quantity::CpuTime, figure(1)?),
        (Quantity::PeakMemory, memory),
    ]))
}

/// `12.3 virtual seconds per real second (…)`.
fn parse(output: &str) -> Result<Measured> {
    let line = output.lines().find(|line| line.contains(" virtual seconds per real second"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    Ok(Measured::of([(Quantity::Speed, number.with_context(|| format!("no speed in '{output}'"))?)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_output_becomes_a_figure() {
        let measured = parse("13.5 virtual seconds per real second (913.2 Mbit/s of goodput simulated)").unwrap();
        assert_eq!(measured.figure(Quantity::Speed), Some(13.5));
        assert!(parse("nothing of the kind").is_err());
    }

    #[test]
    fn a_line_of_the_hops_becomes_three_figures() {
        let measured = parse_hops("0.500 µs a packet-hop, 2.48 s, 30.0 MiB (4960000 packet-hops, trace 0)").unwrap();
        let figures = [Quantity::HopTime, Quantity::CpuTime, Quantity::PeakMemory].map(|which| measured.figure(which));
        assert_eq!(figures, [Some(0.5e-6), Some(2.48), Some(30.0 * f64::from(1 << 20))]);
        assert!(parse_hops("0.5 µs a packet-hop").is_err());
    }
}
