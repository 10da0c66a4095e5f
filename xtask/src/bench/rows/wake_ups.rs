//! Wake-ups and system calls at 1 Gbit/s: the price of a packet on a machine whose wake-ups are expensive.

use super::wan::CLEAN_PATH;
use super::{Measurement, Row, Run};
use crate::bench::quantity::Quantity;
use crate::bench::requirement::{Bound, Requirement};
use crate::bench::samples::Samples;
use crate::bench::tools::{Amount, Tools};

const CASE: &str = "1 Gbit/s, 100 ms";
const PLAIN: &str = "farhaul, plain";

pub(super) const ROW: Row = Row {
    name: "wake-ups",
    what: "context switches of each side, and system calls of both, per GB over 1 Gbit/s, 100 ms",
    shows: &[
        Quantity::SenderSwitches,
        Quantity::ReceiverSwitches,
        Quantity::FutexCalls,
        Quantity::SendCalls,
        Quantity::OpenCalls,
        Quantity::Goodput,
        Quantity::CpuPerGb,
    ],
    must: &[
        require("farhaul", Quantity::SenderSwitches),
        require("farhaul", Quantity::ReceiverSwitches),
        require(PLAIN, Quantity::SenderSwitches),
        require(PLAIN, Quantity::ReceiverSwitches),
    ],
    by: &MEASUREMENT,
};

static MEASUREMENT: Measurement = Measurement {
    name: "wake-ups",
    how: "farhaul bench, 5 s through farhaul relay at 1 Gbit/s, 100 ms, queue 1 BDP: voluntary and involuntary context switches of \
        all threads. Then 5 s with strace -c, which counts calls and slows them down",
    runs: 2,
    seconds: 26,
    in_settings: false,
    measure,
};

const fn require(program: &'static str, quantity: Quantity) -> Requirement {
    Requirement { case: CASE, program, quantity, bound: Bound::Most(5_000.0) }
}

fn measure(tools: &Tools, run: &Run, samples: &mut Samples) {
    let seconds = run.pick(5, 2);
    for program in run.in_turn(&["farhaul", PLAIN]) {
        let protection = (program == PLAIN).then_some("--plain");
        let transfer = match protection {
            None => tools.farhaul_encrypted("union", Amount::Seconds(seconds), Some(&CLEAN_PATH)),
            Some(_) => tools.farhaul("union", Amount::Seconds(seconds), Some(&CLEAN_PATH)),
        };
        samples.add(CASE, program, transfer);
        samples.add(CASE, program, tools.counted_calls(&CLEAN_PATH, protection, seconds));
    }
}
