//! A long fat path: 1 Gbit/s, 100 ms, a queue of one BDP, with and without random loss.

use std::time::Duration;

use super::{Measurement, Row, Run};
use crate::bench::quantity::Quantity;
use crate::bench::requirement::{Bound, Requirement};
use crate::bench::samples::{Measured, Samples};
use crate::bench::tools::{Amount, Path, Tools};

/// The path without random loss.
pub(super) const CLEAN_PATH: Path = Path { rate: 1_000_000_000, round_trip: Duration::from_millis(100), loss: 0.0 };

const NO_LOSS: &str = "10 s, loss 0";
const RARE: &str = "10 s, loss 1e-4";
const FREQUENT: &str = "10 s, loss 1e-3";

/// Loss probabilities in each direction, their names, and the rate of UDT's own law in equilibrium, bit/s. The rate is
/// the integral of the law on this path (`udt_throughput_under_random_loss` in crates/cc/tests/cc/curves.rs).
const LOSSES: [(f64, &str, f64); 2] = [(1e-4, RARE, 362e6), (1e-3, FREQUENT, 128e6)];
const LAW: &str = "the law of udt";

/// 2 × BDP + 32 MiB.
const MOST_MEMORY: f64 = 2.0 * CLEAN_PATH.bdp_bytes() as f64 + 32.0 * 1_048_576.0;
/// Usual rate of the paced raw sender, bit/s, if nothing else was measured.
const USUAL_RATE: f64 = 930e6;

pub(super) const CLEAN: Row = Row {
    name: "wan-goodput",
    what: "goodput over 10 s including the start, and from the 5th to the 10th second, no loss",
    shows: &[Quantity::Goodput, Quantity::Steady, Quantity::Retransmitted],
    must: &[
        require(NO_LOSS, Quantity::Goodput, Bound::Least(890e6)),
        require(NO_LOSS, Quantity::Goodput, Bound::LeastTimes(1.0, "libudt")),
        require(NO_LOSS, Quantity::Steady, Bound::Least(950e6)),
        require(NO_LOSS, Quantity::Retransmitted, Bound::Most(0.001)),
    ],
    by: &WITHOUT_LOSS,
};

pub(super) const CPU: Row = Row {
    name: "cpu",
    what: "processor time of both sides over the path without loss",
    shows: &[Quantity::CpuPerGb],
    must: &[require(NO_LOSS, Quantity::CpuPerGb, Bound::MostOrTimes(3.5, 1.2, "raw, paced"))],
    by: &WITHOUT_LOSS,
};

pub(super) const MEMORY: Row = Row {
    name: "memory",
    what: "peak resident memory of each process of one connection over the path without loss: 2 × BDP + 32 MiB",
    shows: &[Quantity::SenderMemory, Quantity::ReceiverMemory],
    must: &[
        require(NO_LOSS, Quantity::SenderMemory, Bound::Most(MOST_MEMORY)),
        require(NO_LOSS, Quantity::ReceiverMemory, Bound::Most(MOST_MEMORY)),
    ],
    by: &WITHOUT_LOSS,
};

pub(super) const LOSSY: Row = Row {
    name: "wan-loss",
    what: "goodput over 10 s including the start, with random loss in both directions",
    shows: &[Quantity::Goodput, Quantity::Steady, Quantity::Retransmitted],
    must: &[
        require(RARE, Quantity::Goodput, Bound::LeastTimes(1.0, "libudt")),
        require(FREQUENT, Quantity::Goodput, Bound::LeastTimes(1.0, "libudt")),
    ],
    by: &WITH_LOSS,
};

static WITHOUT_LOSS: Measurement = Measurement {
    name: "wan-clean",
    how: "10 s through farhaul relay at 1 Gbit/s, 100 ms, queue 1 BDP. farhaul with its defaults and with udt, \
        libudt with buffers of 2 BDP, and a paced sender without protocol at farhaul's rate. After start-up: the second \
        half of the time, from the receiver's intervals of 0.25 s. Memory: the kernel's high-water mark of each process",
    runs: 3,
    seconds: 48,
    in_settings: true,
    measure: measure_clean,
};

static WITH_LOSS: Measurement = Measurement {
    name: "wan-loss",
    how: "10 s through farhaul relay at 1 Gbit/s, 100 ms, queue 1 BDP. farhaul with its defaults and with udt, \
        libudt with buffers of 2 BDP. Beside udt the rate of its law in equilibrium",
    runs: 3,
    seconds: 68,
    in_settings: true,
    measure: measure_lossy,
};

const fn require(case: &'static str, quantity: Quantity, bound: Bound) -> Requirement {
    Requirement { case, program: "farhaul", quantity, bound }
}

fn measure_clean(tools: &Tools, run: &Run, samples: &mut Samples) {
    let seconds = run.pick(10, 3);
    let rate = measure(tools, run, samples, &CLEAN_PATH, NO_LOSS).unwrap_or(USUAL_RATE);
    samples.add(NO_LOSS, "raw, paced", tools.paced_raw(rate, seconds, &CLEAN_PATH));
}

fn measure_lossy(tools: &Tools, run: &Run, samples: &mut Samples) {
    for (loss, case, law) in LOSSES {
        measure(tools, run, samples, &Path { loss, ..CLEAN_PATH }, case);
        samples.add(case, LAW, Ok(Measured::of([(Quantity::Steady, law)])));
    }
}

/// Runs all programs over one path. Returns our goodput.
fn measure(tools: &Tools, run: &Run, samples: &mut Samples, path: &Path, case: &'static str) -> Option<f64> {
    let amount = Amount::Seconds(run.pick(10, 3));
    let mut rate = None;
    for program in run.in_turn(&["farhaul", "farhaul, udt", "libudt"]) {
        let result = match program {
            "farhaul" => tools.farhaul("union", amount, Some(path)),
            "farhaul, udt" => tools.farhaul("udt", amount, Some(path)),
            _ => tools.libudt_transfer(amount, Some(path)),
        };
        if let ("farhaul", Ok(measured)) = (program, &result) {
            rate = measured.figure(Quantity::Goodput);
        }
        samples.add(case, program, result);
    }
    rate
}
