//! A long fat path: 1 Gbit/s, 100 ms, a queue of one bandwidth-delay product, with and without random loss.

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

/// Loss probabilities in each direction with their names, and what integrating UDT's own law gives for them on this path
/// once it is in balance, bit/s (`native_throughput_under_random_loss` in crates/cc/tests/curves.rs).
const LOSSES: [(f64, &str, f64); 2] = [(1e-4, RARE, 362e6), (1e-3, FREQUENT, 128e6)];
const LAW: &str = "the law of native";

/// 2 × BDP + 32 MiB.
const MOST_MEMORY: f64 = 2.0 * CLEAN_PATH.bdp_bytes() as f64 + 32.0 * 1_048_576.0;
/// What the paced raw sender gets when nothing else was measured, bit/s.
const USUAL_RATE: f64 = 930e6;

pub(super) const CLEAN: Row = Row {
    name: "wan-goodput",
    what: "goodput over 10 s with the start, and of the 5th to 10th second alone, no loss",
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
    what: "most resident memory of each process of one connection over the path without loss: 2 × BDP + 32 MiB",
    shows: &[Quantity::SenderMemory, Quantity::ReceiverMemory],
    must: &[
        require(NO_LOSS, Quantity::SenderMemory, Bound::Most(MOST_MEMORY)),
        require(NO_LOSS, Quantity::ReceiverMemory, Bound::Most(MOST_MEMORY)),
    ],
    by: &WITHOUT_LOSS,
};

pub(super) const LOSSY: Row = Row {
    name: "wan-loss",
    what: "goodput over 10 s with random loss in both directions, the start included",
    shows: &[Quantity::Goodput, Quantity::Steady, Quantity::Retransmitted],
    must: &[
        require(RARE, Quantity::Goodput, Bound::LeastTimes(1.0, "libudt")),
        require(FREQUENT, Quantity::Goodput, Bound::LeastTimes(1.0, "libudt")),
    ],
    by: &WITH_LOSS,
};

static WITHOUT_LOSS: Measurement = Measurement {
    name: "wan-clean",
    how: "10 s through farhaul relay at 1 Gbit/s, 100 ms, queue 1 BDP: farhaul as it is and with udt:native, libudt with \
          buffers of 2 BDP, and a paced sender without protocol at the rate that farhaul had; after start-up: the second \
          half of the time, from the receiver's intervals of 0.25 s; memory: the kernel's high-water mark of each process",
    runs: 3,
    seconds: 48,
    in_settings: true,
    measure: measure_clean,
};

static WITH_LOSS: Measurement = Measurement {
    name: "wan-loss",
    how: "10 s through farhaul relay at 1 Gbit/s, 100 ms, queue 1 BDP: farhaul as it is and with udt:native, libudt with \
          buffers of 2 BDP; beside udt:native what integrating its law gives once it is in balance",
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

/// All programs over one path; the goodput of ours.
fn measure(tools: &Tools, run: &Run, samples: &mut Samples, path: &Path, case: &'static str) -> Option<f64> {
    let amount = Amount::Seconds(run.pick(10, 3));
    let mut rate = None;
    for program in run.in_turn(&["farhaul", "farhaul native", "libudt"]) {
        let result = match program {
            "farhaul" => tools.farhaul("udt", amount, Some(path)),
            "farhaul native" => tools.farhaul("udt:native", amount, Some(path)),
            _ => tools.libudt_transfer(amount, Some(path)),
        };
        if let ("farhaul", Ok(measured)) = (program, &result) {
            rate = measured.figure(Quantity::Goodput);
        }
        samples.add(case, program, result);
    }
    rate
}
