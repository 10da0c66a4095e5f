//! The cost of a law: processor time under each congestion controller, at a rate that all reach, beside a fixed rate.

use super::{Measurement, Row, Run};
use crate::bench::quantity::Quantity;
use crate::bench::requirement::{Bound, Requirement};
use crate::bench::samples::{Measured, Samples};
use crate::bench::tools::Tools;

const CASE: &str = "loopback, capped";
/// The cap of every transfer. All laws reach it over loopback, also those that take lateness of the host for a queue.
const CAP: &str = "2gbit";
/// Above the cap, so that the cap is what limits.
const FIXED: &str = "fixed:rate=20gbit";
/// Parts of the processor time of `fixed`.
const MOST: f64 = 1.03;
/// Part of the rate of `fixed` below which a law does not send the same trains.
const LEAST_RATE: f64 = 0.95;

/// The names of the laws with their requirements.
macro_rules! laws {
    ($($law:literal),* $(,)?) => {
        const LAWS: &[&str] = &[$($law),*];
        const MUST: &[Requirement] = &[$(
            require($law, Quantity::CpuOfFixed, Bound::Most(MOST)),
            require($law, Quantity::OfFixed, Bound::Least(LEAST_RATE)),
        )*];
    };
}

laws!(
    "union",
    "udt",
    "udt-2004",
    "udt-2007",
    "udt-2011",
    "bbr",
    "c4",
    "reno",
    "newreno",
    "cubic",
    "highspeed",
    "scalable",
    "htcp",
    "bic",
    "westwood",
    "illinois",
    "hybla",
    "vegas",
    "fast",
    "copa",
    "ledbat",
    "tahoe"
);

pub(super) const ROW: Row = Row {
    name: "law-cost",
    what: "processor time of both ends under each congestion controller at one capped rate, beside a fixed rate",
    shows: &[Quantity::CpuOfFixed, Quantity::OfFixed, Quantity::CpuPerGb],
    must: MUST,
    by: &MEASUREMENT,
};

static MEASUREMENT: Measurement = Measurement {
    name: "law-cost",
    how: "farhaul bench --plain over loopback with a cap of 2 Gbit/s and packets of 1500 bytes: 2 s under a law and 2 s at a fixed \
        rate above the cap, one after the other, for each law. Ratios are of such pairs",
    runs: 15,
    seconds: 110,
    in_settings: false,
    measure,
};

const fn require(program: &'static str, quantity: Quantity, bound: Bound) -> Requirement {
    Requirement { case: CASE, program, quantity, bound }
}

/// The names of all cases.
pub(super) fn cases() -> impl Iterator<Item = &'static str> {
    std::iter::once(CASE)
}

fn measure(tools: &Tools, run: &Run, samples: &mut Samples) {
    let seconds = run.pick(2, 1);
    for law in run.in_turn(LAWS) {
        let mut pair = [law, FIXED];
        // Neither is always the first.
        if !run.index.is_multiple_of(2) {
            pair.reverse();
        }
        let mut of = pair.map(|controller| (controller, tools.farhaul_capped(controller, CAP, seconds)));
        of.sort_by_key(|(controller, _)| *controller == FIXED);
        let [(_, ours), (_, fixed)] = of;
        let ratios = ours.as_ref().ok().zip(fixed.as_ref().ok()).map(|(ours, fixed)| ratios(ours, fixed));
        samples.add(CASE, law, ours);
        samples.add(CASE, "fixed", fixed);
        if let Some(ratios) = ratios {
            samples.add(CASE, law, Ok(ratios));
        }
    }
}

/// Processor time and goodput as parts of those at the fixed rate.
fn ratios(ours: &Measured, fixed: &Measured) -> Measured {
    let of = |quantity| Some(ours.figure(quantity)? / fixed.figure(quantity)?);
    let pairs = [(Quantity::CpuOfFixed, of(Quantity::CpuPerGb)), (Quantity::OfFixed, of(Quantity::Goodput))];
    Measured::of(pairs.into_iter().filter_map(|(quantity, ratio)| Some((quantity, ratio?))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_law_is_measured() {
        let registry = include_str!("../../../../crates/cc/src/registry.rs");
        let names = registry.lines().filter_map(|line| line.trim().strip_prefix("name: \"")?.strip_suffix("\","));
        assert_eq!(names.filter(|name| *name != "fixed").collect::<Vec<_>>(), *LAWS, "in the order of the registry");
    }

    #[test]
    fn ratios_are_of_a_pair() {
        let of = |cpu, goodput| Measured::of([(Quantity::CpuPerGb, cpu), (Quantity::Goodput, goodput)]);
        assert_eq!(
            ratios(&of(0.5, 1e9), &of(0.4, 2e9)).figures,
            [(Quantity::CpuOfFixed, 1.25), (Quantity::OfFixed, 0.5)]
        );
        assert_eq!(ratios(&of(0.5, 1e9), &Measured::default()).figures, []);
    }
}
