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
