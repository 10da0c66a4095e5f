//! A flow of ours beside one of the reference library at one bottleneck.

use std::time::Duration;

use super::{Measurement, Row, Run};
use crate::bench::quantity::Quantity;
use crate::bench::requirement::{Bound, Requirement};
use crate::bench::samples::{Measured, Samples};
use crate::bench::shares::jain;
use crate::bench::tools::{Path, Side, Tools};

const PATH: Path = Path { rate: 100_000_000, round_trip: Duration::from_millis(16), loss: 0.0 };
const THEIRS: &str = "receivers libudt";
const OURS: &str = "receivers farhaul";
const BOTH: &str = "farhaul + libudt";
const AMONG_THEMSELVES: &str = "libudt + libudt";

pub(super) const ROW: Row = Row {
    name: "fairness",
    what: "shares of one farhaul flow beside one libudt flow at 100 Mbit/s, 16 ms, queue 1 BDP",
    shows: &[Quantity::Jain, Quantity::Goodput],
    must: &[require(THEIRS), require(OURS)],
    by: &MEASUREMENT,
};

static MEASUREMENT: Measurement = Measurement {
    name: "fairness",
    how: "both senders through one farhaul relay to one port, with a receiving process of libudt or of farhaul. \
        Jain's index of the data received in the first 30 s in which both flows were active. In every other run libudt \
        starts first. For comparison, one run of two has two libudt senders, with either receiver in turn. Goodput of \
        both is their sum. libudt with its default buffers",
    runs: 6,
    seconds: 64,
    in_settings: false,
    measure,
};

const fn require(case: &'static str) -> Requirement {
    Requirement { case, program: BOTH, quantity: Quantity::Jain, bound: Bound::Least(0.9) }
}

fn measure(tools: &Tools, run: &Run, samples: &mut Samples) {
    let seconds = run.pick(30, 6);
    let order = run.in_turn(&[Side::Farhaul, Side::Libudt]);
    let mut beside = |case, receivers| {
        let shares = tools.shares(receivers, [order[0], order[1]], seconds, &PATH);
        match shares {
            Ok(rates) => {
                for (side, rate) in order.iter().zip(rates) {
                    samples.add(case, side.name(), Ok(Measured::of([(Quantity::Goodput, rate)])));
                }
                samples.add(case, BOTH, Ok(measured(&rates)));
            }
            Err(error) => samples.add(case, BOTH, Err(error)),
        }
    };
    beside(THEIRS, Side::Libudt);
    // Two runs of each, so that both orders and both receivers occur.
    if run.quick || (run.index / 2).is_multiple_of(2) {
        beside(OURS, Side::Farhaul);
    }
    if run.quick || !(run.index / 2).is_multiple_of(2) {
        let (case, receivers) = run.in_turn(&[(THEIRS, Side::Libudt), (OURS, Side::Farhaul)])[0];
        let shares = tools.shares(receivers, [Side::Libudt; 2], seconds, &PATH);
        samples.add(case, AMONG_THEMSELVES, shares.map(|rates| measured(&rates)));
    }
}

/// Jain's index of the two rates, and their sum.
fn measured(rates: &[f64; 2]) -> Measured {
    Measured::of([(Quantity::Jain, jain(rates)), (Quantity::Goodput, rates.iter().sum())])
}
