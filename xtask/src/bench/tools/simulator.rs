//! The speed example of crates/sim.

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
}
