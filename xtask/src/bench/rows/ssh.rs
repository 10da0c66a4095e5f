//! Time of a copy over SSH, beside its parts.

use super::{Measurement, Row, Run};
use crate::bench::quantity::Quantity;
use crate::bench::requirement::{Bound, Requirement};
use crate::bench::samples::Samples;
use crate::bench::tools::{SshTimes, Tools};

const THERE: &str = "100 kB to the far host";
const BACK: &str = "100 kB from the far host";
const PARTS: &str = "ssh true, then a copy";

pub(super) const ROW: Row = Row {
    name: "copy-over-ssh",
    what: "a small file over SSH, 1 Gbit/s, 100 ms; the copy among the parts goes to a running server, and begins with one round trip",
    shows: &[Quantity::Completion],
    must: &[require(THERE), require(BACK)],
    by: &MEASUREMENT,
};

static MEASUREMENT: Measurement = Measurement {
    name: "copy-over-ssh",
    how: "farhaul copy through farhaul emulate as root, with a sshd of its own. The parts: `ssh host true`, and after it the same copy \
        to or from farhaul serve",
    runs: 3,
    seconds: 11,
    in_settings: false,
    measure,
};

const fn require(case: &'static str) -> Requirement {
    Requirement { case, program: "farhaul", quantity: Quantity::Completion, bound: Bound::MostTimes(1.0, PARTS) }
}

fn measure(tools: &Tools, _run: &Run, samples: &mut Samples) {
    match tools.copies_over_ssh() {
        Ok(SshTimes { over_ssh, in_parts }) => {
            for (case, (whole, parts)) in [THERE, BACK].into_iter().zip(over_ssh.into_iter().zip(in_parts)) {
                samples.add(case, "farhaul", Ok(whole));
                samples.add(case, PARTS, Ok(parts));
            }
        }
        Err(error) => samples.add(THERE, "farhaul", Err(error)),
    }
}
