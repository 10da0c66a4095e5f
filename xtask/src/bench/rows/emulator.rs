//! Accuracy of the emulated network, measured by other programs.

use std::time::Duration;

use super::{Measurement, Row, Run};
use crate::bench::quantity::Quantity;
use crate::bench::requirement::{Bound, Requirement};
use crate::bench::samples::Samples;
use crate::bench::tools::{Emulated, Tools};

/// Below ten milliseconds `ping` prints the RTT in hundredths.
const DELAY: &str = "ping, 4 ms each way";
const SLOW: &str = "iperf3 -u, 100 Mbit/s, packets of 1500 bytes";
const RATE: &str = "iperf3 -u, 1 Gbit/s, packets of 1500 bytes";
const JUMBO: &str = "iperf3 -u, 5 Gbit/s, packets of 9000 bytes";
/// TCP hands over large packets, so the emulator needs less processor time.
const FASTEST: &str = "iperf3, 6 Gbit/s, packets of 9000 bytes";
const LOSS: &str = "iperf3 -u, 100 Mbit/s, loss 1 %";
const PROGRAM: &str = "farhaul";

pub(super) const ROW: Row = Row {
    name: "emulator",
    what: "delay, rate and loss of emulated paths by ping and iperf3, and the emulator's processor share",
    shows: &[Quantity::Lateness, Quantity::RateShare, Quantity::Goodput, Quantity::Deviation, Quantity::CpuShare],
    must: &[
        require(DELAY, Quantity::Lateness, Bound::Most(0.000_2)),
        require(SLOW, Quantity::RateShare, Bound::Least(0.99)),
        require(SLOW, Quantity::RateShare, Bound::Most(1.01)),
        require(RATE, Quantity::RateShare, Bound::Least(0.99)),
        require(RATE, Quantity::RateShare, Bound::Most(1.01)),
        require(RATE, Quantity::CpuShare, Bound::Most(0.6)),
        require(JUMBO, Quantity::RateShare, Bound::Least(0.99)),
        require(FASTEST, Quantity::Goodput, Bound::Least(5e9)),
        // One run in four hundred exceeds three standard deviations by chance, and the median of several runs hardly
        // ever.
        require(LOSS, Quantity::Deviation, Bound::Most(3.0)),
    ],
    by: &MEASUREMENT,
};

static MEASUREMENT: Measurement = Measurement {
    name: "emulator",
    how: "`farhaul emulate` as root, two hosts. ping: half of the RTT excess that one echo in a hundred exceeds. \
        iperf3 with socket buffers of 8 MiB sends 105 % of the path's rate, with loss 50 %, and its receiver counts. \
        Processor share of the emulator's thread",
    runs: 3,
    seconds: 46,
    in_settings: false,
    measure,
};

const fn require(case: &'static str, quantity: Quantity, bound: Bound) -> Requirement {
    Requirement { case, program: PROGRAM, quantity, bound }
}

fn measure(tools: &Tools, run: &Run, samples: &mut Samples) {
    let path = |megabits: u64, mtu| Emulated {
        rate: megabits * 1_000_000,
        delay: Duration::from_millis(10),
        loss: 0.0,
        mtu,
        queue: None,
        seed: run.index + 1,
    };
    // Long runs, because nothing arrives in the first RTT.
    let seconds = run.pick(10, 2);
    let near = Emulated { delay: Duration::from_millis(4), ..path(1_000, 1_500) };
    samples.add(DELAY, PROGRAM, tools.emulated_delay(&near, run.pick(500, 100)));
    samples.add(SLOW, PROGRAM, tools.emulated_rate(&path(100, 1_500), 1.05, seconds));
    samples.add(RATE, PROGRAM, tools.emulated_rate(&path(1_000, 1_500), 1.05, seconds));
    samples.add(JUMBO, PROGRAM, tools.emulated_rate(&path(5_000, 9_000), 1.05, seconds));
    let short = Emulated { delay: Duration::from_millis(1), ..path(6_000, 9_000) };
    samples.add(FASTEST, PROGRAM, tools.emulated_tcp(&short, seconds / 2));
    samples.add(LOSS, PROGRAM, tools.emulated_rate(&Emulated { loss: 0.01, ..path(100, 1_500) }, 0.5, seconds / 2));
}
