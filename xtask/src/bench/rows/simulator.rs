//! Speed of virtual time.

use super::{Measurement, Row, Run};
use crate::bench::quantity::Quantity;
use crate::bench::requirement::{Bound, Requirement};
use crate::bench::samples::Samples;
use crate::bench::tools::Tools;

const CASE: &str = "1 Gbit/s, 100 ms";

pub(super) const ROW: Row = Row {
    name: "simulator",
    what: "virtual seconds per real second of one flow on one core",
    shows: &[Quantity::Speed],
    must: &[Requirement { case: CASE, program: "farhaul", quantity: Quantity::Speed, bound: Bound::Least(3.0) }],
    by: &MEASUREMENT,
};

pub(super) const FLOWS: Row = Row {
    name: "simulator-flows",
    what: "the price of a simulated packet-hop with many UDT flows on one core",
    shows: &[Quantity::HopTime, Quantity::CpuTime, Quantity::PeakMemory],
    must: &[Requirement {
        case: "1000 flows",
        program: "farhaul",
        quantity: Quantity::CpuTime,
        bound: Bound::Most(60.0),
    }],
    by: &MANY_FLOWS,
};

static MANY_FLOWS: Measurement = Measurement {
    name: "simulator-flows",
    how: "the hops example of crates/sim: 20 virtual seconds of UDT flows with the law union through 1 Gbit/s, 100 ms",
    runs: 3,
    seconds: 60,
    in_settings: false,
    measure: measure_flows,
};

fn measure_flows(tools: &Tools, run: &Run, samples: &mut Samples) {
    for (case, flows) in run.in_turn(&[("1 flow", 1), ("100 flows", 100), ("1000 flows", 1000)]) {
        samples.add(case, "farhaul", tools.packet_hops(flows, run.pick(20, 2)));
    }
}

static MEASUREMENT: Measurement = Measurement {
    name: "simulator",
    how: "the speed example of crates/sim: 20 virtual seconds of one UDT flow",
    runs: 3,
    seconds: 6,
    in_settings: false,
    measure,
};

fn measure(tools: &Tools, run: &Run, samples: &mut Samples) {
    samples.add(CASE, "farhaul", tools.simulator(run.pick(20, 5)));
}
