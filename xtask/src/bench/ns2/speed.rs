//! Real time for the same simulated minute.

use anyhow::{Result, ensure};

use super::statistics::median;
use super::tools::{Case, CaseResult, Simulator, Tools};

/// A window that fills the path without loss, so that both simulators deliver the same number of packets.
const WINDOW: u32 = 8_400;
const CASE: Case = Case {
    recovery: "sack",
    rate_mbit: 1_000,
    delay_ms: 50,
    queue: 10_000,
    loss: "0",
    seed: 1,
    seconds: 60,
    cut: 0,
    window: WINDOW,
    second: None,
};
/// Enough for a median that one disturbed run does not change.
const RUNS: usize = 5;
/// Our largest share of ns-2's time.
const MOST: f64 = 1.0 / 3.0;
/// Largest relative difference of the delivered packets.
const SAME: f64 = 0.001;

/// Measures, prints, and returns the number of requirements that do not hold.
pub(super) fn run(tools: &Tools, quick: bool) -> Result<usize> {
    let case = if quick { Case { seconds: 5, ..CASE } } else { CASE };
    println!(
        "\nreal time: one SACK flow, 1 Gbit/s, 100 ms round trip, {} s, window {WINDOW}; at most a third of ns-2's\n",
        case.seconds
    );
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for run in 1..=if quick { 1 } else { RUNS } {
        // In turn, so that a disturbance of the machine affects both.
        let (one, other) = (tools.simulate(Simulator::Ours, &case)?, tools.simulate(Simulator::Ns2, &case)?);
        same_packets(one, other)?;
        println!("run {run}: farhaul {:.2} s, ns-2 {:.2} s; {} packets", one.seconds, other.seconds, one.segments);
        ours.push(one.seconds);
        theirs.push(other.seconds);
    }
    let (ours, theirs) = (median(&ours), median(&theirs));
    let holds = ours <= MOST * theirs;
    let verdict = if holds { "holds" } else { "DOES NOT HOLD" };
    println!("median: farhaul {ours:.2} s, ns-2 {theirs:.2} s, ratio {:.3}: {verdict}", ours / theirs);
    Ok(usize::from(!holds))
}

fn same_packets(ours: CaseResult, theirs: CaseResult) -> Result<()> {
    let (one, other) = (ours.segments as f64, theirs.segments as f64);
    ensure!(
        (one / other - 1.0).abs() <= SAME,
        "the simulators delivered {one} and {other} packets, so their times cannot be compared"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unequal_work_is_no_comparison() {
        let result = |segments| CaseResult { segments, of_last: segments, seconds: 1.0 };
        assert!(same_packets(result(1_000_000), result(1_000_500)).is_ok());
        assert!(same_packets(result(1_000_000), result(1_002_000)).is_err());
    }
}
