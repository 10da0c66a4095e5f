//! Cost of packets: memory to memory without a path.

use super::{Measurement, Row, Run};
use crate::bench::quantity::Quantity;
use crate::bench::requirement::{Bound, Requirement};
use crate::bench::samples::Samples;
use crate::bench::tools::{Amount, Tools};

const CASE: &str = "1500-byte packets";
const FIXED: &str = "farhaul, fixed";
const FIXED_ENCRYPTED: &str = "farhaul, fixed, encrypted";
/// Faster than loopback, so that only the price of a packet limits the rate.
const NO_CAP: &str = "fixed:rate=200gbit";

pub(super) const ROW: Row = Row {
    name: "loopback",
    what: "goodput and processor time, memory to memory over loopback",
    shows: &[Quantity::Goodput, Quantity::CpuPerGb],
    must: &[
        require(Quantity::Goodput, Bound::LeastTimes(6.0, "libudt")),
        require(Quantity::Goodput, Bound::LeastTimes(0.30, "raw")),
        require(Quantity::CpuPerGb, Bound::MostTimes(0.25, "libudt")),
        require(Quantity::CpuPerGb, Bound::MostTimes(4.0, "raw")),
        of(FIXED, Quantity::Goodput, Bound::LeastTimes(0.6, "raw")),
        of(FIXED, Quantity::CpuPerGb, Bound::Most(0.4)),
        of(FIXED_ENCRYPTED, Quantity::Goodput, Bound::LeastTimes(0.35, "raw")),
        of(FIXED_ENCRYPTED, Quantity::CpuPerGb, Bound::Most(0.8)),
    ],
    by: &MEASUREMENT,
};

static MEASUREMENT: Measurement = Measurement {
    name: "loopback",
    how: "farhaul bench with its defaults and at a fixed rate above that of loopback, libudt with 64 MB buffers, and the raw example of crates/udp (GSO, no protocol), 2 s each",
    runs: 5,
    seconds: 13,
    in_settings: false,
    measure,
};

const fn require(quantity: Quantity, bound: Bound) -> Requirement {
    of("farhaul", quantity, bound)
}

const fn of(program: &'static str, quantity: Quantity, bound: Bound) -> Requirement {
    Requirement { case: CASE, program, quantity, bound }
}

fn measure(tools: &Tools, run: &Run, samples: &mut Samples) {
    // Long enough to hide the start, short enough for many runs.
    let seconds = run.pick(2, 1);
    for program in run.in_turn(&["raw", "farhaul", FIXED, FIXED_ENCRYPTED, "libudt"]) {
        let result = match program {
            "raw" => tools.raw(seconds),
            "farhaul" => tools.farhaul("union", Amount::Seconds(seconds), None),
            FIXED => tools.farhaul(NO_CAP, Amount::Seconds(seconds), None),
            FIXED_ENCRYPTED => tools.farhaul_encrypted(NO_CAP, Amount::Seconds(seconds), None),
            _ => tools.libudt_transfer(Amount::Seconds(seconds), None),
        };
        samples.add(CASE, program, result);
    }
}
