//! The record of one run, as it is stored and read again.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// The value of one axis at one point: its text, and its number in base units.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AxisValue {
    /// The scenario's text: `100mbit`, `10ms`, `udt-2007`.
    pub text: String,
    /// The number in bits per second, seconds, bytes, packets or shares; `None` for text that is no quantity.
    pub number: Option<f64>,
}

/// The world of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum World {
    /// The simulator, in virtual time.
    #[default]
    Simulated,
    /// Real sockets on an emulated network, in real time.
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

/// One run: one curve of one figure at one point of its grid with one seed.
///
/// Metrics are in base units: bits per second, seconds, bytes, packets, shares in 0..=1. They are never NaN or
/// infinite. A metric that does not exist in a run is absent. [`metric`](crate::metric) has the keys.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The id of the figure, lower case, or the name of the scenario file.
    pub figure: String,
    /// The name of the curve; empty if there is only one.
    pub curve: String,
    /// The point of the grid, by the names of the axes.
    pub point: BTreeMap<String, AxisValue>,
    /// The seed.
    pub seed: u64,
    /// The world of the run.
    #[serde(default, skip_serializing_if = "World::is_simulated")]
    pub world: World,
    /// The emulator's report about itself; `None` in the simulator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emulation: Option<EmulationRecord>,
    /// The metrics by key: `goodput.udt`, `utilisation`, `jain`, …
    pub metrics: BTreeMap<String, f64>,
    /// The series over time by key, such as `goodput.udt` or `queue`: pairs of seconds and value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub series: BTreeMap<String, Vec<(f64, f64)>>,
    /// A hash of everything that the run depends on: scenario, point, curve, seed, version. A sweep resumes by it.
    pub key: String,
    /// A hash of everything that was sent and delivered, hexadecimal; empty in the emulator.
    pub trace: String,
    /// The duration of the scenario in seconds: virtual ones in the simulator.
    pub simulated_seconds: f64,
    /// The duration of the run in real seconds.
    pub real_seconds: f64,
    /// The number of times that a packet left a link.
    pub packet_hops: u64,
}

/// The emulator's report about itself in a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EmulationRecord {
    /// Whether the scenario's links, and not the emulator, were the limit.
    pub valid: bool,
    /// The reasons why the run is invalid.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flaws: Vec<String>,
    /// The median of the packets' lateness against the links' delays, in seconds.
    pub lateness_p50: f64,
    /// The 99th percentile of the lateness, in seconds.
    pub lateness_p99: f64,
    /// The greatest lateness, in seconds.
    pub lateness_max: f64,
    /// The longest time between two polls of the hosts, in seconds.
    pub longest_gap: f64,
    /// The share of one processor that the emulator used.
    pub busy: f64,
    /// The share of time in which some program of this machine waited for a processor; `None` where the kernel does not
    /// say. Waiting programs are slower than the scenario's hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited: Option<f64>,
    /// Mean wait of a flow's threads for a processor, in seconds: the longest of all flows. `None` where the kernel does
    /// not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_wait: Option<f64>,
    /// Datagrams that receiving programs were too slow to read, and those that their sockets found damaged.
    pub receiver_drops: u64,
    /// The kernel's congestion controls of the TCP flows, if there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp: Option<String>,
}

impl Record {
    /// The reasons why the run is invalid; none in the simulator.
    pub fn flaws(&self) -> &[String] {
        self.emulation.as_ref().map_or(&[], |emulation| &emulation.flaws)
    }

    /// Whether the run is valid.
    pub fn is_valid(&self) -> bool {
        self.emulation.as_ref().is_none_or(|emulation| emulation.valid)
    }
}
