//! Cost of idle connections.

use super::{Measurement, Row, Run};
use crate::bench::quantity::Quantity;
use crate::bench::requirement::{Bound, Requirement};
use crate::bench::samples::Samples;
use crate::bench::tools::Tools;

const LISTENER: &str = "1000, listening";
const CONNECTOR: &str = "1000, connecting";

pub(super) const ROW: Row = Row {
    name: "idle",
    what: "1000 idle connections on one port, each side separately",
    shows: &[Quantity::Growth, Quantity::CpuShare],
    must: &[
        require(LISTENER, Quantity::Growth, 64.0 * 1_048_576.0),
        require(CONNECTOR, Quantity::Growth, 64.0 * 1_048_576.0),
        require(LISTENER, Quantity::CpuShare, 0.01),
        require(CONNECTOR, Quantity::CpuShare, 0.01),
    ],
    by: &MEASUREMENT,
};

static MEASUREMENT: Measurement = Measurement {
    name: "idle",
    how: "the idle_connections example of crates/farhaul: resident memory with the connections minus that without them, \
        and processor time over 30 s with keep-alives every 10 s ± 20 %",
    runs: 1,
    seconds: 34,
    in_settings: false,
    measure,
};

const fn require(case: &'static str, quantity: Quantity, most: f64) -> Requirement {
    Requirement { case, program: "farhaul", quantity, bound: Bound::Most(most) }
}

fn measure(tools: &Tools, run: &Run, samples: &mut Samples) {
    match tools.idle(1_000, run.pick(30, 5), None) {
        Ok([listener, connector]) => {
            samples.add(LISTENER, "farhaul", Ok(listener));
            samples.add(CONNECTOR, "farhaul", Ok(connector));
        }
        Err(error) => samples.add(LISTENER, "farhaul", Err(error)),
    }
}
