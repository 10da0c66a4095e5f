//! The arena: congestion controllers on random paths.
//!
//! A seed decides every cell: its family, its parameters and its goals. A cell is one simulation of one seed, and its
//! goals follow from its parameters by the formulas below, so that no goal is set for a cell. The pseudo controller
//! [`IDEAL`] sends at a fixed 97 % of its fair share from the first packet on. It shows that goals are within reach. It is
//! no yardstick where a share has to be found or kept, as beside TCP or while the capacity falls.
//!
//! | symbol | meaning |
//! | --- | --- |
//! | R, RTT, T | the rate of the link, the RTT, the duration |
//! | f | 1456/1500, the payload's share of a packet |
//! | p | the share of packets that the path loses |
//! | B | R·RTT, the bandwidth-delay product in packets |
//! | N | the packets that the link carries in the measured time |
//!
//! | goal | formula |
//! | --- | --- |
//! | start | t0 = (2 + log₄(max(1, B/16)))·RTT + 20 ms: a handshake, and fourfold growth per RTT from 16 packets on |
//! | ideal | I = f·R·(1 − p)·(1 − t0/T) |
//! | goodput | at least k·I, with k by family; of flows that share, after their warm-up and with t0 = 0 |
//! | waste | retransmitted / sent ≤ 1.25·p + 3·√(p/N) + 0.005 + 16/N |
//! | queue | mean queue ≤ 0.10·B + 20 packets |
//! | Jain | ≥ 0.97 − 0.0005·n for n flows, ≥ 0.80 for many, ≥ 0.85 for a crowd |
//! | share | of a flow in the goodput of all, between two limits |
//! | max-min | every flow ≥ 0.5 of its max-min share; every bottleneck ≥ 0.85 used |
//!
//! The limit of the waste covers lost packets, their lost repairs, and chance. Half a percent and a first window come on
//! top, because nobody can know that the first window is too large. [`Family::goals`] has the factors and what a family
//! adds. The goals of late hosts, several bottlenecks, fast short paths and access networks are derived in `arena/hosts.rs`,
//! `chain.rs`, `lan.rs` and `wireless.rs`.
//!
//! A goal's score is how near a run came to the limit, 0 to 1. A cell's score is the least of its goals' scores. A cell is
//! passed if all goals are met.
//!
//! | to change … | open |
//! | --- | --- |
//! | names of families; their words | `arena/family.rs`; `families.toml` |
//! | families of one flow, of flows that share, of late hosts, of several bottlenecks | `arena/single.rs`, `crowd.rs`, `hosts.rs`, `chain.rs` |
//! | fast short paths, access networks, other laws beside | `arena/lan.rs`, `wireless.rs`, `beside.rs` |
//! | the general formulas | `arena/sketch.rs` |
//! | the scenario's text | `arena/cell.rs` |
//! | measures and the judge | `arena/goal.rs` |
//! | random draws | `arena/draw.rs` |
//! | results over cells | `arena/results.rs` |
//! | the page of all laws | `arena/field.html`, `arena/field.rs` |
//! | the page | `arena/page.html`, `arena/page.rs`, `arena/page/` |

mod beside;
mod cell;
mod chain;
mod crowd;
mod draw;
mod family;
mod field;
mod goal;
mod hosts;
mod lan;
mod libudt;
mod page;
mod results;
mod single;
mod sketch;
#[cfg(test)]
mod tests;
mod wireless;

pub use cell::{Cell, IDEAL};
pub use family::{Family, UnknownFamily};
pub use field::field;
pub use goal::{Goal, Mark, Measure, Verdict};
pub use page::page;
pub use results::{Results, Tally};

use draw::Draw;
use farhaul_cc::{Spec, SpecError, registry};

use crate::error::ScenarioError;
use crate::record::AxisValue;
use crate::scenario::{Experiment, Job, Overrides};

/// The cells of a seed, `count` of them, of these families only; of all, if there are none.
///
/// Cells come in rounds. A round has every family once, in random order. Families that are left out leave gaps in
/// [`Cell::place`] and change no other cell.
#[must_use]
pub fn cells(seed: u64, count: usize, families: &[Family]) -> Vec<Cell> {
    let is_wanted = |family: &Family| families.is_empty() || families.contains(family);
    let rounds = (0..).flat_map(|round| {
        let mut order = Family::ALL;
        Draw::of_order(seed, round).shuffle(&mut order);
        order.into_iter().enumerate().map(move |(place, family)| (round, Family::ALL.len() * round + place, family))
    });
    let wanted = rounds.filter(|(.., family)| is_wanted(family)).take(count);
    wanted.map(|(round, place, family)| Cell::draw(seed, round, family, place)).collect()
}

/// Checks the name and the options of a controller; [`IDEAL`] is one here.
///
/// # Errors
/// The registry has no such controller, or it refuses the options.
pub fn check(controller: &str) -> Result<(), SpecError> {
    if controller == IDEAL { Ok(()) } else { controller.parse::<Spec>().map(drop) }
}

/// The word for all laws.
pub const ALL: &str = "all";

/// The controllers, with every law of the registry that needs no option in the place of [`ALL`].
#[must_use]
pub fn named(controllers: &[String]) -> Vec<String> {
    let all =
        || registry::controllers().into_iter().map(|entry| entry.name.to_owned()).filter(|name| check(name).is_ok());
    let expand = |name: &String| if name == ALL { all().collect() } else { vec![name.clone()] };
    controllers.iter().flat_map(expand).collect()
}

/// The runs of all controllers in all cells, in the order of cells and then of controllers. `build` is the key of the
/// program.
///
/// # Errors
/// A scenario that cannot be run.
pub fn jobs(cells: &[Cell], controllers: &[String], build: &str) -> Result<Vec<Job>, ScenarioError> {
    let pairs = cells.iter().flat_map(|cell| controllers.iter().map(move |controller| (cell, controller)));
    pairs.map(|(cell, controller)| job(cell, controller, build)).collect()
}

fn job(cell: &Cell, controller: &str, build: &str) -> Result<Job, ScenarioError> {
    let file = format!("{} ({})", cell.id(), cell.label);
    let experiment = Experiment::read("arena", &file, &cell.scenario(controller), &Overrides::default())?;
    let mut jobs = experiment.jobs(build)?;
    // One curve, one point, one seed.
    let mut job = jobs.remove(0);
    controller.clone_into(&mut job.curve);
    for (axis, text) in [("cell", cell.id()), ("path", cell.label.clone())] {
        job.point.insert(axis.to_owned(), AxisValue { text, number: None });
    }
    Ok(job)
}
