//! Cost for the hosts at 1 Gbit/s: beside kernel TCP under BBR, and with other work on both processors.

use std::time::Duration;

use anyhow::Result;

use super::{Measurement, Row, Run};
use crate::bench::quantity::Quantity;
use crate::bench::requirement::{Bound, Requirement};
use crate::bench::samples::{Measured, Samples};
use crate::bench::tools::{BusyLoops, Emulated, Tools};

const QUIET: &str = "1 Gbit/s, 100 ms, quiet";
const BUSY: &str = "1 Gbit/s, 100 ms, a busy loop on each processor";
const PLAIN: &str = "farhaul, plain";
const BBR: &str = "TCP BBR";
/// Our goodput without other work on the processors, beside that with it.
const UNDISTURBED: &str = "farhaul, quiet";

pub(super) const ROW: Row = Row {
    name: "host-cost",
    what: "goodput and processor time over an emulated path, beside kernel TCP under BBR, on quiet and on busy processors",
    shows: &[Quantity::Goodput, Quantity::CpuPerGb],
    must: &[
        require(QUIET, "farhaul", Quantity::Goodput, Bound::LeastTimes(0.97, PLAIN)),
        require(QUIET, PLAIN, Quantity::CpuPerGb, Bound::MostTimes(1.5, BBR)),
        require(BUSY, "farhaul", Quantity::Goodput, Bound::LeastTimes(0.6, UNDISTURBED)),
        require(BUSY, "farhaul", Quantity::Goodput, Bound::LeastTimes(0.8, BBR)),
    ],
    by: &MEASUREMENT,
};

static MEASUREMENT: Measurement = Measurement {
    name: "host-cost",
    how: "farhaul bench, encrypted and plain, and iperf3 -C bbr with buffers of 128 MiB, 8 s each behind farhaul emulate at \
        1 Gbit/s, 50 ms each way. Processor time of both programs, without the emulator. Then again beside one busy loop \
        for each processor",
    runs: 3,
    seconds: 57,
    in_settings: false,
    measure,
};

const fn require(case: &'static str, program: &'static str, quantity: Quantity, bound: Bound) -> Requirement {
    Requirement { case, program, quantity, bound }
}

fn measure(tools: &Tools, run: &Run, samples: &mut Samples) {
    let path = Emulated {
        rate: 1_000_000_000,
        delay: Duration::from_millis(50),
        loss: 0.0,
        mtu: 1_500,
        queue: None,
        seed: run.index + 1,
    };
    let seconds = run.pick(8, 2);
    let once = |program: &str| match program {
        "farhaul" => tools.emulated_farhaul(&path, None, seconds),
        PLAIN => tools.emulated_farhaul(&path, Some("--plain"), seconds),
        _ => tools.emulated_bbr(&path, seconds),
    };
    for program in run.in_turn(&["farhaul", PLAIN, BBR]) {
        let result = once(program);
        if let ("farhaul", Ok(measured)) = (program, &result) {
            let goodput = measured.figure(Quantity::Goodput).map(|rate| (Quantity::Goodput, rate));
            samples.add(BUSY, UNDISTURBED, Ok(Measured::of(goodput)));
        }
        samples.add(QUIET, program, result);
    }
    for program in run.in_turn(&["farhaul", PLAIN, BBR]) {
        let beside = |loops: Result<BusyLoops>| loops.and_then(|_busy| once(program));
        samples.add(BUSY, program, beside(BusyLoops::start()));
    }
}
