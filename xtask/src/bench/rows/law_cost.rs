//! The cost of a law: processor time under each congestion controller at a capped rate, beside a fixed rate.

use super::{Measurement, Row, Run};
use crate::bench::quantity::Quantity;
use crate::bench::requirement::{Bound, Requirement};
use crate::bench::samples::{Measured, Samples};
use crate::bench::tools::Tools;

const CASE: &str = "loopback, capped";
/// The cap of every transfer, bit/s. All laws reach it over loopback but those that take lateness of the host for a queue.
const CAP: f64 = 2e9;
/// Above the cap, so that the cap is what limits.
const FIXED: &str = "fixed:rate=20gbit";
/// Bytes of a packet for one of its payload, as the cap counts them.
const HEADERS: f64 = 1_500.0 / 1_456.0;
/// Parts of the processor time of `fixed`.
const MOST: f64 = 1.03;

/// The names of the laws with their requirements.
macro_rules! laws {
    ($($law:literal),* $(,)?) => {
        const LAWS: &[&str] = &[$($law),*];
        const MUST: &[Requirement] = &[$(
            Requirement { case: CASE, program: $law, quantity: Quantity::CpuOfFixed, bound: Bound::Most(MOST) },
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
    shows: &[Quantity::CpuOfFixed, Quantity::CpuPerGb, Quantity::Goodput],
    must: MUST,
    by: &MEASUREMENT,
};

static MEASUREMENT: Measurement = Measurement {
    name: "law-cost",
    how: "farhaul bench --plain over loopback with a cap of 2 Gbit/s and packets of 1500 bytes: 2 s under a law, and then 2 s under \
        fixed with a cap at what the law reached, for each law. Ratios are of such pairs",
    runs: 15,
    seconds: 110,
    in_settings: false,
    measure,
};

/// The names of all cases.
pub(super) fn cases() -> impl Iterator<Item = &'static str> {
    std::iter::once(CASE)
}

fn measure(tools: &Tools, run: &Run, samples: &mut Samples) {
    let seconds = run.pick(2, 1);
    let capped = |controller, cap: f64| tools.farhaul_capped(controller, &format!("{cap:.0}bit"), seconds);
    for law in run.in_turn(LAWS) {
        let ours = capped(law, CAP);
        if let Some(goodput) = ours.as_ref().ok().and_then(|ours| ours.figure(Quantity::Goodput)) {
            let fixed = capped(FIXED, CAP.min(goodput * HEADERS));
            let ratio = ours.as_ref().ok().zip(fixed.as_ref().ok()).and_then(|(ours, fixed)| ratio(ours, fixed));
            samples.add(CASE, "fixed", fixed);
            if let Some(ratio) = ratio {
                samples.add(CASE, law, Ok(Measured::of([(Quantity::CpuOfFixed, ratio)])));
            }
        }
        samples.add(CASE, law, ours);
    }
}

/// Processor time per byte as a part of that at the fixed rate.
fn ratio(ours: &Measured, fixed: &Measured) -> Option<f64> {
    Some(ours.figure(Quantity::CpuPerGb)? / fixed.figure(Quantity::CpuPerGb)?)
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
    fn a_ratio_needs_both_of_a_pair() {
        let of = |cpu| Measured::of([(Quantity::CpuPerGb, cpu)]);
        assert_eq!(ratio(&of(0.5), &of(0.4)), Some(1.25));
        assert_eq!(ratio(&of(0.5), &Measured::default()), None);
    }
}
