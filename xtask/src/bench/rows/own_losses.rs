//! Packets that die in the socket buffers of the hosts themselves, on busy processors.

use super::{Measurement, Row, Run};
use crate::bench::quantity::Quantity;
use crate::bench::requirement::{Bound, Requirement};
use crate::bench::samples::Samples;
use crate::bench::tools::{BusyLoops, Law, LawPath, Quotas, Tools, Wire};

const CASE: &str = "veth, 900 Mbit/s, a busy loop on each core";
const PLAIN: &str = "farhaul, plain";
const LAW: &str = "fixed:rate=900mbit";
/// The same rate on the wire, less the headers.
const BARE_RATE: f64 = 870e6;

pub(super) const ROW: Row = Row {
    name: "own-losses",
    what: "packets lost in the hosts' own socket buffers at 900 Mbit/s over a veth pair, with a busy loop on each core",
    shows: &[Quantity::OwnLosses, Quantity::Goodput, Quantity::CpuPerGb],
    must: &[require("farhaul"), require(PLAIN)],
    by: &MEASUREMENT,
};

static MEASUREMENT: Measurement = Measurement {
    name: "own-losses",
    how: "as root between two network namespaces, new ones for each transfer of 5 s: farhaul bench with the controller fixed, and the \
        paced_raw example of crates/farhaul. The kernel's counters of both hosts (Udp RcvbufErrors)",
    runs: 3,
    seconds: 21,
    in_settings: true,
    measure,
};

const fn require(program: &'static str) -> Requirement {
    Requirement { case: CASE, program, quantity: Quantity::OwnLosses, bound: Bound::Most(0.0) }
}

/// The names of all cases.
pub(super) fn cases() -> impl Iterator<Item = &'static str> {
    [CASE].into_iter()
}

fn measure(tools: &Tools, run: &Run, samples: &mut Samples) {
    if !CASE.contains(run.case) {
        return;
    }
    let programs = [("farhaul", Law::Encrypted(LAW)), (PLAIN, Law::Plain(LAW)), ("bare UDP", Law::Bare(BARE_RATE))];
    let path = LawPath::Wire(Wire::Veth { rate: None });
    for (program, law) in run.in_turn(&programs) {
        let result = BusyLoops::start().and_then(|_loops| tools.law(law, &path, Quotas::NONE, run.pick(5, 1)));
        samples.add(CASE, program, result);
    }
}
