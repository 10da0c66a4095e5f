//! Requirements on a congestion controller, whoever wrote it: what a transport may expect on any path.
//!
//! [`check`] runs a controller in virtual time under the shipped transport, and reports which requirements it meets.
//!
//! | requirement | path |
//! | --- | --- |
//! | start-up | 40 Mbit/s, 20 ms: it uses at least a fortieth |
//! | loss | 2 % of random loss |
//! | outage | nothing arrives for 3 s, in the middle |
//! | reordering | 5 % of the packets are late by 5 ms |
//! | application-limited | the application has a few packets every 50 ms |
//! | silence | the application has nothing for 20 s, in the middle |
//! | switch in, switch out | it takes over from `union` in mid-transfer, and `reno` takes over from it |
//! | fast path | 10 Gbit/s, 40 µs |
//! | slow path | 256 kbit/s, 600 ms |
//! | wrap | sequence numbers wrap, with losses |
//! | hostile reports | acknowledgements claim absurd rates, capacities and RTTs, and old ones are repeated |
//! | sharing | two of its flows on one link: neither starves |
//! | determinism | two runs with one seed are equal, packet for packet |
//! | messages | it does not send more messages to its peer than it has calls |
//!
//! On all paths the data arrives whole, no 5 s pass without progress, and each setting stays
//! [usable](farhaul_cc::Supervised). The memory of a controller cannot be seen from here. This crate's tests count that of the
//! built-in laws with an allocator (`tests/sim/conformance.rs`).

mod paths;
mod subject;

use std::fmt;

use farhaul_cc::Controller;

use self::paths::REQUIREMENTS;
pub use self::subject::Extent;
use self::subject::Subject;

/// Which requirements a controller meets.
#[derive(Clone, Debug)]
pub struct Report {
    findings: Vec<Finding>,
}

/// Whether a controller meets one requirement.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Finding {
    /// The requirement.
    pub requirement: &'static str,
    /// The first deviation; `None` if it is met.
    pub fault: Option<String>,
}

impl Report {
    /// One for each requirement.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Whether all requirements are met.
    pub fn is_met(&self) -> bool {
        self.findings.iter().all(|finding| finding.fault.is_none())
    }
}

impl fmt::Display for Report {
    /// A line for each requirement.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Finding { requirement, fault } in &self.findings {
            match fault {
                None => writeln!(f, "met     {requirement}")?,
                Some(fault) => writeln!(f, "NOT MET {requirement}: {fault}")?,
            }
        }
        Ok(())
    }
}

/// Runs the controllers that `make` makes from seeds, each for a connection of its own.
///
/// ```
/// use farhaul_cc::Spec;
/// use farhaul_sim::conformance::{Extent, check};
///
/// let report = check(Extent::Short, |seed| "reno".parse::<Spec>().expect("it is built in").build(seed));
/// assert!(report.is_met(), "{report}");
/// ```
pub fn check(extent: Extent, make: impl Fn(u64) -> Box<dyn Controller> + Send + Sync + 'static) -> Report {
    check_some(extent, |_| true, make)
}

/// The same for the requirements that `is_wanted`.
pub fn check_some(
    extent: Extent,
    is_wanted: impl Fn(&str) -> bool,
    make: impl Fn(u64) -> Box<dyn Controller> + Send + Sync + 'static,
) -> Report {
    let subject = Subject::new(make, extent);
    let finding = |(requirement, run): &(&'static str, paths::Requirement)| {
        let fault = subject.seeds().find_map(|seed| run(&subject, seed).err());
        Finding { requirement, fault }
    };
    Report { findings: REQUIREMENTS.iter().filter(|(name, _)| is_wanted(name)).map(finding).collect() }
}
