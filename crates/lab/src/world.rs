//! Where a run takes place: in the simulator, in virtual time, or on an emulated network, in real time. What is measured and how
//! is the same in both (`run/metrics.rs`).

pub(crate) mod emu;
pub(crate) mod sim;
pub(crate) mod twin;

use std::fmt;

use farhaul_units::Duration;
use serde::{Deserialize, Serialize};

use crate::record::EmulationRecord;
use crate::run::marks::Row;
use crate::scenario::setup::Setup;
pub use emu::Choices;

/// Where a run takes place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum World {
    /// In the simulator, in virtual time.
    #[default]
    Simulated,
    /// Between real sockets on an emulated network, in real time.
    Emulated,
}

impl World {
    /// Whether it is the simulator.
    pub fn is_simulated(&self) -> bool {
        *self == Self::Simulated
    }
}

impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Simulated => "simulated",
            Self::Emulated => "emulated",
        })
    }
}

/// A world, and what was chosen there.
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
    /// Its world.
    pub fn world(&self) -> World {
        match self {
            Self::Simulator => World::Simulated,
            Self::Emulator(_) => World::Emulated,
        }
    }

    /// Why a setup cannot be run there, and the line of the scenario that says so.
    pub(crate) fn refusal(&self, setup: &Setup) -> Option<(usize, String)> {
        match self {
            Self::Simulator => sim::refusal(setup),
            Self::Emulator(choices) => emu::refusal(setup, choices),
        }
    }

    /// What is added to the name of the program that runs a job, since this decides results, too.
    pub fn mark(&self) -> String {
        match self {
            Self::Simulator => String::new(),
            Self::Emulator(Choices { tcp, .. }) => format!("+emulated+{}", tcp.as_deref().unwrap_or_default()),
        }
    }
}

/// What was seen of a run, wherever it took place.
#[derive(Debug)]
pub(crate) struct Observed {
    /// One for each instant of [`times`](crate::run::marks::times).
    pub(crate) rows: Vec<Row>,
    /// How each flow ended, in the order of the setup's.
    pub(crate) endings: Vec<Ending>,
    /// Hash of everything that was sent and delivered, hexadecimal; empty where real time decides.
    pub(crate) trace: String,
    /// Times that a packet left a link.
    pub(crate) packet_hops: u64,
    /// What the emulator found about itself, if it was one.
    pub(crate) emulation: Option<EmulationRecord>,
}

/// How a flow ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ending {
    /// When everything that it had to send was acknowledged, since the beginning of the run.
    pub(crate) finished: Option<Duration>,
    /// What each transfer of its list took.
    pub(crate) transfers: Vec<Duration>,
}
