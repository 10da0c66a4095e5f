//! The price of a packet: processor time over an emulated path and over a wire of the kernel, beside a sender without
//! protocol and kernel TCP.

use std::time::Duration;

use super::{Measurement, Row, Run};
use crate::bench::quantity::Quantity;
use crate::bench::requirement::{Bound, Requirement};
use crate::bench::samples::Samples;
use crate::bench::tools::{BusyLoops, Emulated, Law, LawPath, Quotas, Tools, Wire};

/// Each place is measured quiet, and then busy.
const PATH: [&str; 2] = ["emulated 1 Gbit/s 100 ms, quiet", "emulated 1 Gbit/s 100 ms, a busy loop on each core"];
const VETH: [&str; 2] = ["veth with tbf, 2.5 Gbit/s, quiet", "veth with tbf, 2.5 Gbit/s, a busy loop on each core"];
const BARE: &str = "bare UDP";
const BBR: &str = "TCP BBR";
const PLAIN: &str = "farhaul, plain";
const ENCRYPTED: &str = "farhaul";
/// Payload rates of the bare sender, bit/s: 95 % of each link, less the headers.
const PATH_RATE: f64 = 920e6;
const VETH_RATE: f64 = 2_280e6;

pub(super) const OVER_PATH: Row = Row {
    name: "price-path",
    what: "processor time of both ends and the emulator over 1 Gbit/s, 100 ms, beside a sender without protocol and kernel TCP",
    shows: &[Quantity::CpuWithPath, Quantity::CpuPerGb, Quantity::Goodput],
    must: &[
        over_path(PATH[0], PLAIN, 1.15),
        over_path(PATH[0], ENCRYPTED, 1.25),
        over_path(PATH[1], PLAIN, 1.15),
        over_path(PATH[1], ENCRYPTED, 1.25),
    ],
    by: &BY_PATH,
};

pub(super) const OVER_VETH: Row = Row {
    name: "price-veth",
    what: "processor time of both ends over a veth pair that tbf holds to 2.5 Gbit/s, beside a sender without protocol and kernel TCP",
    shows: &[Quantity::CpuPerGb, Quantity::Goodput],
    must: &[over_veth(VETH[0]), over_veth(VETH[1])],
    by: &BY_VETH,
};

static BY_PATH: Measurement = Measurement {
    name: "price-path",
    how: "as root behind farhaul emulate with a queue of 1 BDP, packets of 1500 bytes, 8 s each: the paced_raw example of \
        crates/farhaul at 920 Mbit/s of payload, iperf3 -C bbr with buffers of 128 MiB, farhaul bench plain and encrypted. Both ends \
        count themselves, and the emulator its thread",
    runs: 3,
    seconds: 85,
    in_settings: false,
    measure: measure_path,
};

static BY_VETH: Measurement = Measurement {
    name: "price-veth",
    how: "as root between two network namespaces, new ones for each transfer of 4 s: the paced_raw example of crates/farhaul at \
        2.28 Gbit/s of payload, iperf3 -C bbr with buffers of 128 MiB, farhaul bench. tbf has 1 ms of queue. Packets of 1500 bytes. \
        Both ends count themselves",
    runs: 3,
    seconds: 31,
    in_settings: false,
    measure: measure_veth,
};

const fn over_path(case: &'static str, program: &'static str, times: f64) -> Requirement {
    Requirement { case, program, quantity: Quantity::CpuWithPath, bound: Bound::MostTimes(times, BBR) }
}

const fn over_veth(case: &'static str) -> Requirement {
    Requirement { case, program: PLAIN, quantity: Quantity::CpuPerGb, bound: Bound::MostTimes(1.3, BARE) }
}

/// The names of all cases.
pub(super) fn cases() -> impl Iterator<Item = &'static str> {
    PATH.into_iter().chain(VETH)
}

/// The emulated path.
pub(in crate::bench) const fn path(seed: usize) -> Emulated {
    let (rate, delay) = (1_000_000_000, Duration::from_millis(50));
    Emulated { rate, delay, loss: 0.0, mtu: 1_500, queue: Some(8_333), seed }
}

/// A path with its cases and programs.
struct Place<'a> {
    /// Quiet and busy.
    cases: [&'static str; 2],
    path: LawPath,
    programs: &'a [(&'static str, Law)],
    seconds: u64,
}

fn measure_path(tools: &Tools, run: &Run, samples: &mut Samples) {
    let path = LawPath::Emulated(path(run.index + 1));
    let programs = &[
        (BARE, Law::Bare(PATH_RATE)),
        (BBR, Law::Kernel("bbr")),
        (PLAIN, Law::Plain("union")),
        (ENCRYPTED, Law::Encrypted("union")),
    ];
    Place { cases: PATH, path, programs, seconds: run.pick(8, 2) }.measure(tools, run, samples);
}

fn measure_veth(tools: &Tools, run: &Run, samples: &mut Samples) {
    let path = LawPath::Wire(Wire::Veth { rate: Some(2_500_000_000) });
    let programs = &[(BARE, Law::Bare(VETH_RATE)), (BBR, Law::Kernel("bbr")), (PLAIN, Law::Plain("union"))];
    Place { cases: VETH, path, programs, seconds: run.pick(4, 1) }.measure(tools, run, samples);
}

impl Place<'_> {
    /// Every program once, in the quiet and in the busy case.
    fn measure(&self, tools: &Tools, run: &Run, samples: &mut Samples) {
        for (case, is_busy) in self.cases.into_iter().zip([false, true]).filter(|(case, _)| case.contains(run.case)) {
            for (program, law) in run.in_turn(self.programs) {
                let loops = is_busy.then(BusyLoops::start).transpose();
                let result = loops.and_then(|_loops| tools.law(law, &self.path, Quotas::NONE, self.seconds));
                samples.add(case, program, result);
            }
        }
    }
}
