//! Completion times of a small and a large transfer over a long fat path.

use super::{Measurement, Row, Run, wan};
use crate::bench::quantity::Quantity;
use crate::bench::requirement::{Bound, Requirement};
use crate::bench::samples::Samples;
use crate::bench::tools::{Amount, Tools};

const SMALL: &str = "1 MB, loss 0";
const LARGE: &str = "1 GB, loss 0";

pub(super) const ROW: Row = Row {
    name: "wan-completion",
    what: "time from connect() to the receiver's confirmation; the ideal, two RTTs plus size over rate, is 0.21 s and 8.4 s",
    shows: &[Quantity::Completion],
    must: &[
        require(SMALL, Bound::Most(0.8)),
        require(SMALL, Bound::MostTimes(0.75, "libudt")),
        require(LARGE, Bound::Most(9.4)),
        require(LARGE, Bound::MostTimes(1.0, "libudt")),
    ],
    by: &MEASUREMENT,
};

static MEASUREMENT: Measurement = Measurement {
    name: "wan-completion",
    how: "1e6 and 1e9 bytes through farhaul relay at 1 Gbit/s, 100 ms, queue 1 BDP, no loss. farhaul with its \
        defaults, libudt with buffers of 2 BDP. udt is left out, because it takes minutes",
    runs: 3,
    seconds: 25,
    in_settings: true,
    measure,
};

const fn require(case: &'static str, bound: Bound) -> Requirement {
    Requirement { case, program: "farhaul", quantity: Quantity::Completion, bound }
}

fn measure(tools: &Tools, run: &Run, samples: &mut Samples) {
    let large = run.pick(1_000_000_000, 50_000_000);
    for (bytes, case) in [(1_000_000, SMALL), (large, LARGE)] {
        for program in run.in_turn(&["farhaul", "libudt"]) {
            let (amount, path) = (Amount::Bytes(bytes), Some(&wan::CLEAN_PATH));
            let result = match program {
                "farhaul" => tools.farhaul("union", amount, path),
                _ => tools.libudt_transfer(amount, path),
            };
            samples.add(case, program, result);
        }
    }
}
