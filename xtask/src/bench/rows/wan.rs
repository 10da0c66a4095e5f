//! A long fat path: 1 Gbit/s, 100 ms, a queue of one bandwidth-delay product, with and without random loss.

use std::time::Duration;

use super::Row;
use crate::bench::samples::{Bound, Quantity, Requirement, Samples};
use crate::bench::tools::{Amount, Path, Tools};

/// Loss probabilities with their names.
const LOSSES: [(f64, &str); 3] = [(0.0, "loss 0"), (1e-4, "loss 1e-4"), (1e-3, "loss 1e-3")];
const HOW: &str = "through farhaul relay at 1 Gbit/s, 100 ms, queue 1 BDP, loss 0, 1e-4, 1e-3 in both directions: \
                   farhaul (udt), farhaul (udt:native), libudt with buffers of 2 BDP";

pub(super) const COMPLETION: Row = Row {
    name: "wan-completion",
    what: "time from connect() to the receiver's confirmation of 1 MB and of 1 GB",
    how: HOW,
    measure: measure_completion,
    must: &[
        // Two round trips and the size over the rate are 0.21 s and 8.4 s.
        require("1 MB, loss 0", Quantity::Completion, Bound::MostTimes(0.75, "libudt")),
        require("1 MB, loss 0", Quantity::Completion, Bound::Most(0.8)),
        require("1 GB, loss 0", Quantity::Completion, Bound::Most(9.4)),
        require("1 MB, loss 1e-4", Quantity::Completion, Bound::MostTimes(1.0, "libudt")),
        require("1 MB, loss 1e-3", Quantity::Completion, Bound::MostTimes(1.0, "libudt")),
        require("1 GB, loss 0", Quantity::Completion, Bound::MostTimes(1.0, "libudt")),
        require("1 GB, loss 1e-4", Quantity::Completion, Bound::MostTimes(1.0, "libudt")),
        require("1 GB, loss 1e-3", Quantity::Completion, Bound::MostTimes(1.0, "libudt")),
    ],
};

pub(super) const GOODPUT: Row = Row {
    name: "wan-goodput",
    what: "goodput over 10 s, start included",
    how: HOW,
    measure: measure_goodput,
    must: &[
        require("10 s, loss 0", Quantity::Goodput, Bound::LeastTimes(1.0, "libudt")),
        require("10 s, loss 1e-4", Quantity::Goodput, Bound::LeastTimes(1.0, "libudt")),
        require("10 s, loss 1e-3", Quantity::Goodput, Bound::LeastTimes(1.0, "libudt")),
        require("10 s, loss 0", Quantity::Goodput, Bound::Least(890e6)),
        require("10 s, loss 0", Quantity::Retransmitted, Bound::Most(0.001)),
    ],
};

const fn require(case: &'static str, quantity: Quantity, bound: Bound) -> Requirement {
    Requirement { case, program: "farhaul", quantity, bound }
}

fn measure_completion(tools: &Tools, samples: &mut Samples) {
    for (bytes, name) in [(1_000_000, "1 MB"), (1_000_000_000, "1 GB")] {
        measure(tools, samples, name, Amount::Bytes(bytes));
    }
}

fn measure_goodput(tools: &Tools, samples: &mut Samples) {
    measure(tools, samples, "10 s", Amount::Seconds(10));
}

fn measure(tools: &Tools, samples: &mut Samples, name: &str, amount: Amount) {
    for (loss, loss_name) in LOSSES {
        let path = Path { rate: 1_000_000_000, round_trip: Duration::from_millis(100), loss };
        let case = format!("{name}, {loss_name}");
        samples.add(&case, "farhaul", tools.farhaul("udt", amount, Some(&path)));
        samples.add(&case, "farhaul native", tools.farhaul("udt:native", amount, Some(&path)));
        samples.add(&case, "libudt", tools.libudt_transfer(amount, Some(&path)));
    }
}
