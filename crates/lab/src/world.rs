//! The worlds of runs: the simulator, in virtual time, and the emulated network, in real time.
//!
//! Both have the same measurements (`run/metrics.rs`).

pub(crate) mod emu;
pub(crate) mod marks;
#[cfg(test)]
#[path = "../../emu/tests/emu/requirement.rs"]
mod requirement;
pub(crate) mod sim;
#[cfg(test)]
mod tests;
pub(crate) mod twin;

use farhaul_units::Duration;

use crate::error::ScenarioError;
use crate::record::{EmulationRecord, World};
use crate::scenario::setup::Setup;
use crate::scenario::{Experiment, Job};
pub use emu::Choices;
use marks::MarksRow;

/// A world and the choices made for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Venue {
    /// The simulator.
    #[default]
    Simulator,
    /// The emulated network.
    Emulator(Choices),
}

impl Venue {
    /// The world.
    pub fn world(&self) -> World {
        match self {
            Self::Simulator => World::Simulated,
            Self::Emulator(_) => World::Emulated,
        }
    }

    /// The jobs of an experiment that can be run in this world, and the reasons against the others, once for each line.
    pub fn possible(&self, experiment: &Experiment, jobs: Vec<Job>) -> (Vec<Job>, Vec<ScenarioError>) {
        let mut refusals: Vec<ScenarioError> = Vec::new();
        let possible = jobs.into_iter().filter(|job| match self.refusal(&job.setup) {
            None => true,
            Some((line, reason)) => {
                let curve = if job.curve.is_empty() { String::new() } else { format!(" (curve {})", job.curve) };
                let refusal = experiment.source().error_on(line, reason + &curve);
                if !refusals.contains(&refusal) {
                    refusals.push(refusal);
                }
                false
            }
        });
        (possible.collect(), refusals)
    }

    /// The reason why a setup cannot be run in this world, and the line of the scenario.
    fn refusal(&self, setup: &Setup) -> Option<(usize, String)> {
        match self {
            Self::Simulator => sim::refusal(setup),
            Self::Emulator(choices) => emu::refusal(setup, choices),
        }
    }

    /// The suffix of the program's key. The choices decide results, too.
    pub fn mark(&self) -> String {
        match self {
            Self::Simulator => String::new(),
            Self::Emulator(Choices { tcp, .. }) => format!("+emulated+{}", tcp.as_deref().unwrap_or_default()),
        }
    }
}

/// The observations of a run, in either world.
#[derive(Debug)]
pub(crate) struct Observed {
    /// One row for each instant of [`times`](marks::times).
    pub(crate) rows: Vec<MarksRow>,
    /// The end of each flow, in the order of the setup.
    pub(crate) endings: Vec<Ending>,
    /// A hash of everything that was sent and delivered, hexadecimal; empty in the emulator.
    pub(crate) trace: String,
    /// The number of times that a packet left a link.
    pub(crate) packet_hops: u64,
    /// The emulator's report about itself; `None` in the simulator.
    pub(crate) emulation: Option<EmulationRecord>,
}

/// The end of a flow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ending {
    /// The time since the start of the run when everything was acknowledged; `None` if that did not happen.
    pub(crate) finished: Option<Duration>,
    /// The duration of each transfer of its list.
    pub(crate) transfers: Vec<Duration>,
}
