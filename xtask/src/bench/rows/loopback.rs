//! Cost of packets: memory to memory without a path.

use super::{Measurement, Row, Run};
use crate::bench::quantity::Quantity;
use crate::bench::requirement::{Bound, Requirement};
use crate::bench::samples::Samples;
use crate::bench::tools::{Amount, Tools};

const CASE: &str = "1500-byte packets";

pub(super) const ROW: Row = Row {
    name: "loopback",
    what: "goodput and processor time, memory to memory over loopback",
    shows: &[Quantity::Goodput, Quantity::CpuPerGb],
    must: &[
        require(Quantity::Goodput, Bound::LeastTimes(6.0, "libudt")),
        require(Quantity::Goodput, Bound::LeastTimes(0.30, "raw")),
        require(Quantity::CpuPerGb, Bound::MostTimes(0.25, "libudt")),
        require(Quantity::CpuPerGb, Bound::MostTimes(4.0, "raw")),
    ],
    by: &MEASUREMENT,
};

static MEASUREMENT: Measurement = Measurement {
    name: "loopback",
    how: "farhaul bench, libudt with 64 MB buffers, and the raw example of crates/udp (GSO, no protocol), 2 s each",
    runs: 5,
    seconds: 8,
    in_settings: false,
    measure,
};

const fn require(quantity: Quantity, bound: Bound) -> Requirement {
    Requirement { case: CASE, program: "farhaul", quantity, bound }
}

fn measure(tools: &Tools, run: &Run, samples: &mut Samples) {
    // Long enough to hide the start, short enough for many runs.
    let seconds = run.pick(2, 1);
    for program in run.in_turn(&["raw", "farhaul", "libudt"]) {
        let result = match program {
            "raw" => tools.raw(seconds),
            "farhaul" => tools.farhaul("union", Amount::Seconds(seconds), None),
            _ => tools.libudt_transfer(Amount::Seconds(seconds), None),
        };
        samples.add(CASE, program, result);
    }
}
