//! Congestion controllers on real sockets: over wires of the kernel and emulated long paths, with processors that are
//! quiet, busy or rationed.

use std::time::Duration;

use anyhow::Result;

use super::{Measurement, Row, Run};
use crate::bench::quantity::Quantity;
use crate::bench::requirement::{Bound, Requirement};
use crate::bench::samples::{Measured, Samples, Skipped};
use crate::bench::tools::{BusyLoops, Emulated, Law, LawPath, Quota, Quotas, Tools, Wire};

/// The default law.
const UNION: &str = "union";
const ENCRYPTED: &str = "union, encrypted";
/// Programs that the others are compared with.
const CUBIC: &str = "cubic";
const FIXED: &str = "fixed";
const KERNEL_BBR: &str = "TCP BBR";
/// Stands for every program in a note on a whole case.
const ALL: &str = "all programs";

/// The default is as fast over loopback as laws that only losses stop, and no slower than the kernel's BBR over these long paths.
macro_rules! requirements {
    ($($path:literal),*) => {
        &[
            of_cubic("loopback, quiet", 0.95),
            Requirement {
                case: "loopback, quiet",
                program: UNION,
                quantity: Quantity::OfFixed,
                bound: Bound::Least(0.95),
            },
            of_cubic("loopback, a busy loop on each core", 0.9),
            of_cubic("loopback, receiver at a tenth of a core", 0.9),
            $(
                beats_the_kernel(concat!($path, ", quiet"), UNION),
                beats_the_kernel(concat!($path, ", quiet"), ENCRYPTED),
                beats_the_kernel(concat!($path, ", a busy loop on each core"), UNION),
                beats_the_kernel(concat!($path, ", a busy loop on each core"), ENCRYPTED),
            )*
        ]
    };
}

pub(super) const ROW: Row = Row {
    name: "law-sockets",
    what: "goodput under each congestion controller on real sockets, beside the kernel's TCP",
    shows: &[Quantity::Goodput, Quantity::OfCubic, Quantity::OfFixed, Quantity::CpuPerGb],
    must: requirements!(
        "1 Gbit/s 100 ms",
        "1 Gbit/s 100 ms loss 1e-2",
        "1 Gbit/s 160 ms loss 3e-4",
        "1 Gbit/s 30 ms loss 3e-4",
        "1 Gbit/s 10 ms queue 100"
    ),
    by: &MEASUREMENT,
};

const fn of_cubic(case: &'static str, share: f64) -> Requirement {
    Requirement { case, program: UNION, quantity: Quantity::OfCubic, bound: Bound::Least(share) }
}

const fn beats_the_kernel(case: &'static str, program: &'static str) -> Requirement {
    Requirement { case, program, quantity: Quantity::Goodput, bound: Bound::LeastTimes(1.0, KERNEL_BBR) }
}

static MEASUREMENT: Measurement = Measurement {
    name: "law-sockets",
    how: "as root, farhaul bench without memory of paths, and iperf3 with buffers of 128 MiB, all in turn: 4 s over \
        loopback and a veth pair in network namespaces of each run, 10 s behind farhaul emulate. Packets of 1500 bytes. \
        Limited veth: tbf with 1 ms of queue. A tenth of a core: a control group with 10 ms of each 100 ms. fixed has 95 % \
        of the rate, or 20 Gbit/s. Ratios are of one round",
    runs: 10,
    seconds: 2_700,
    in_settings: false,
    measure,
};

/// Load on the processors.
#[derive(Clone, Copy, Debug)]
enum Condition {
    Quiet,
    Busy,
    RationedSender,
    RationedReceiver,
}

const CONDITIONS: [Condition; 4] =
    [Condition::Quiet, Condition::Busy, Condition::RationedSender, Condition::RationedReceiver];

/// A path in every condition.
#[derive(Debug)]
struct Place {
    /// Names in the order of [`CONDITIONS`].
    cases: [&'static str; CONDITIONS.len()],
    path: LawPath,
    /// The controller at a fixed rate for this path.
    fixed: &'static str,
}

macro_rules! place {
    ($name:literal, $path:expr, $fixed:literal) => {
        Place {
            cases: [
                concat!($name, ", quiet"),
                concat!($name, ", a busy loop on each core"),
                concat!($name, ", sender at a tenth of a core"),
                concat!($name, ", receiver at a tenth of a core"),
            ],
            path: $path,
            fixed: concat!("fixed:rate=", $fixed),
        }
    };
}

static PLACES: [Place; 9] = [
    place!("loopback", LawPath::Wire(Wire::Loopback), "20gbit"),
    place!("veth", LawPath::Wire(Wire::Veth { rate: None }), "20gbit"),
    place!("veth 2.5 Gbit/s", LawPath::Wire(Wire::Veth { rate: Some(2_500_000_000) }), "2375mbit"),
    place!("veth 10 Gbit/s", LawPath::Wire(Wire::Veth { rate: Some(10_000_000_000) }), "9500mbit"),
    place!("1 Gbit/s 100 ms", gigabit(100, 0.0, BDP), "950mbit"),
    place!("1 Gbit/s 100 ms loss 1e-2", gigabit(100, 1e-2, BDP), "950mbit"),
    place!("1 Gbit/s 160 ms loss 3e-4", gigabit(160, 3e-4, BDP), "950mbit"),
    place!("1 Gbit/s 30 ms loss 3e-4", gigabit(30, 3e-4, BDP), "950mbit"),
    place!("1 Gbit/s 10 ms queue 100", gigabit(10, 0.0, Some(100)), "950mbit"),
];

/// A queue of one bandwidth-delay product.
const BDP: Option<u64> = None;

/// A path of 1 Gbit/s with an RTT in milliseconds, random loss, and a queue in packets.
const fn gigabit(round_trip: u64, loss: f64, queue: Option<u64>) -> LawPath {
    let (rate, mtu) = (1_000_000_000, 1_500);
    let packets = match queue {
        Some(packets) => packets,
        None => rate * round_trip / 1_000 / (8 * mtu),
    };
    // The seed is that of the round.
    let delay = Duration::from_micros(round_trip * 500);
    LawPath::Emulated(Emulated { rate, delay, loss, mtu, queue: Some(packets), seed: 0 })
}

/// The names of all cases.
pub(super) fn cases() -> impl Iterator<Item = &'static str> {
    PLACES.iter().flat_map(|place| place.cases)
}

fn measure(tools: &Tools, run: &Run, samples: &mut Samples) {
    for place in &PLACES {
        for (case, condition) in place.cases.into_iter().zip(CONDITIONS) {
            if case.contains(run.case) {
                eprintln!("  {case}");
                measure_case(tools, run, samples, place, case, condition);
            }
        }
    }
}

/// One round of a case: every program once.
fn measure_case(
    tools: &Tools,
    run: &Run,
    samples: &mut Samples,
    place: &Place,
    case: &'static str,
    condition: Condition,
) {
    let load = match Load::start(condition) {
        Ok(load) => load,
        // The same in every round, so it is told once.
        Err(_) if run.index > 0 => return,
        Err(error) => return samples.add(case, ALL, Err(Skipped(format!("{error:#}")).into())),
    };
    let (path, seconds) = match place.path {
        LawPath::Wire(_) => (place.path, run.pick(4, 1)),
        LawPath::Emulated(path) => (LawPath::Emulated(Emulated { seed: run.index + 1, ..path }), run.pick(10, 2)),
    };
    let programs = [
        (UNION, Law::Plain("union")),
        (ENCRYPTED, Law::Encrypted("union")),
        ("udt", Law::Plain("udt")),
        (CUBIC, Law::Plain("cubic")),
        ("bbr", Law::Plain("bbr")),
        (FIXED, Law::Plain(place.fixed)),
        ("TCP CUBIC", Law::Kernel("cubic")),
        (KERNEL_BBR, Law::Kernel("bbr")),
    ];
    let mut goodputs = Vec::new();
    for (program, law) in run.in_turn(&programs) {
        let result = tools.law(law, &path, load.quotas(), seconds);
        if result.as_ref().is_err_and(|error| error.is::<Skipped>()) && run.index > 0 {
            continue;
        }
        let goodput = result.as_ref().ok().and_then(|measured| measured.figure(Quantity::Goodput));
        goodputs.extend(goodput.map(|goodput| (program, goodput)));
        samples.add(case, program, result);
    }
    for (quantity, base) in [(Quantity::OfCubic, CUBIC), (Quantity::OfFixed, FIXED)] {
        for (program, ratio) in ratios(&goodputs, base) {
            samples.add(case, program, Ok(Measured::of([(quantity, ratio)])));
        }
    }
}

/// Goodputs of a round as multiples of that of `base`; none without it.
fn ratios(goodputs: &[(&'static str, f64)], base: &str) -> Vec<(&'static str, f64)> {
    let Some(&(_, base)) = goodputs.iter().find(|(program, _)| *program == base) else { return Vec::new() };
    goodputs.iter().map(|&(program, goodput)| (program, goodput / base)).collect()
}

/// The load of a case while it is measured.
struct Load {
    /// Holds the loops until the end of the case.
    _loops: Option<BusyLoops>,
    sender: Option<Quota>,
    receiver: Option<Quota>,
}

impl Load {
    fn start(condition: Condition) -> Result<Self> {
        let mut load = Self { _loops: None, sender: None, receiver: None };
        match condition {
            Condition::Quiet => {}
            Condition::Busy => load._loops = Some(BusyLoops::start()?),
            Condition::RationedSender => load.sender = Some(Quota::tenth_of_a_core()?),
            Condition::RationedReceiver => load.receiver = Some(Quota::tenth_of_a_core()?),
        }
        Ok(load)
    }

    const fn quotas(&self) -> Quotas<'_> {
        Quotas { sender: self.sender.as_ref(), receiver: self.receiver.as_ref() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_has_a_name_of_its_own() {
        let mut names: Vec<_> = cases().collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), PLACES.len() * CONDITIONS.len());
    }

    #[test]
    fn every_requirement_is_of_a_case() {
        assert!(ROW.must.iter().all(|requirement| cases().any(|case| case == requirement.case)));
    }

    #[test]
    fn a_queue_is_one_bandwidth_delay_product_unless_given() {
        let queue = |path| match path {
            LawPath::Emulated(path) => path.queue,
            LawPath::Wire(_) => None,
        };
        assert_eq!(queue(gigabit(100, 0.0, BDP)), Some(8_333));
        assert_eq!(queue(gigabit(10, 0.0, Some(100))), Some(100));
    }

    #[test]
    fn ratios_are_of_one_round_and_need_their_base() {
        let round = [("union", 6.0), ("cubic", 3.0)];
        assert_eq!(ratios(&round, CUBIC), [("union", 2.0), ("cubic", 1.0)]);
        assert_eq!(ratios(&round, FIXED), []);
    }
}
