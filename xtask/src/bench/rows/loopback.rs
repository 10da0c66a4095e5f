//! Memory to memory without a path between: what packets cost.

use super::Row;
use crate::bench::samples::{Bound, Quantity, Requirement, Samples};
use crate::bench::tools::{Amount, Tools};

/// Long enough that the start does not show, short enough for many runs.
const SECONDS: u64 = 2;
const CASE: &str = "1500-byte packets";

pub(super) const ROW: Row = Row {
    name: "loopback",
    what: "goodput and processor time, memory to memory over loopback",
    how: "farhaul bench, libudt with 64 MB buffers, and the raw example of crates/udp (GSO, no protocol), 2 s each",
    measure,
    must: &[
        require(Quantity::Goodput, Bound::LeastTimes(6.0, "libudt")),
        require(Quantity::Goodput, Bound::LeastTimes(0.30, "raw")),
        require(Quantity::CpuPerGb, Bound::MostTimes(0.25, "libudt")),
        require(Quantity::CpuPerGb, Bound::MostTimes(4.0, "raw")),
    ],
};

const fn require(quantity: Quantity, bound: Bound) -> Requirement {
    Requirement { case: CASE, program: "farhaul", quantity, bound }
}

fn measure(tools: &Tools, samples: &mut Samples) {
    samples.add(CASE, "raw", tools.raw(SECONDS));
    samples.add(CASE, "farhaul", tools.farhaul("udt", Amount::Seconds(SECONDS), None));
    samples.add(CASE, "libudt", tools.libudt_transfer(Amount::Seconds(SECONDS), None));
}
