//! Time of a copy over SSH, beside its parts.

use super::{Measurement, Row, Run};
use crate::bench::quantity::Quantity;
use crate::bench::requirement::{Bound, Requirement};
use crate::bench::samples::Samples;
use crate::bench::tools::{SshTimes, Tools};

const THERE: &str = "100 kB to the far host";
const BACK: &str = "100 kB from the far host";
const PARTS: &str = "ssh true, then a copy";
const SCP: &str = "scp";

pub(super) const ROW: Row = Row {
    name: "copy-over-ssh",
    what: "a small file over SSH, 1 Gbit/s, 100 ms; the copy among the parts goes to a running server, and begins with one round trip",
    shows: &[Quantity::Completion],
    must: &[require(THERE, PARTS), require(BACK, PARTS), require(THERE, SCP), require(BACK, SCP)],
    by: &MEASUREMENT,
};

static MEASUREMENT: Measurement = Measurement {
    name: "copy-over-ssh",
    how: "farhaul copy through farhaul emulate as root, with a sshd of its own. The parts: `ssh host true`, and after it the same copy \
        to or from farhaul serve. Scp goes to the same sshd",
    runs: 3,
    seconds: 18,
    in_settings: false,
    measure,
};

const fn require(case: &'static str, peer: &'static str) -> Requirement {
    Requirement { case, program: "farhaul", quantity: Quantity::Completion, bound: Bound::MostTimes(1.0, peer) }
}

fn measure(tools: &Tools, _run: &Run, samples: &mut Samples) {
    match tools.copies_over_ssh() {
        Ok(SshTimes { over_ssh, in_parts, by_scp }) => {
            for (program, times) in [("farhaul", over_ssh), (PARTS, in_parts), (SCP, by_scp)] {
                for (case, time) in [THERE, BACK].into_iter().zip(times) {
                    samples.add(case, program, Ok(time));
                }
            }
        }
        Err(error) => samples.add(THERE, "farhaul", Err(error)),
    }
}
