//! What one run found, as it is written to the disk and read again.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::world::World;

/// The value of one axis of a sweep at one point: as it was written, and as a number in base units.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AxisValue {
    /// As the scenario has it: `100mbit`, `10ms`, `udt:native`.
    pub text: String,
    /// In bits per second, seconds, bytes, packets or shares; `None` for what is no quantity.
    pub number: Option<f64>,
}

/// One run: one curve of one figure at one point of its grid with one seed.
///
/// Metrics are numbers in base units (bits per second, seconds, bytes, packets, shares in 0..=1), never NaN or infinite; one
/// that does not exist in a run is left out. Those of a flow are called `goodput.NAME`, after the flow's name; those of the
/// whole run have no dot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Id of the figure, lower case, or the name of the scenario file.
    pub figure: String,
    /// Which curve, in the scenario's words; empty if it has only one.
    pub curve: String,
    /// Where in the grid, by the names of the axes.
    pub point: BTreeMap<String, AxisValue>,
    /// The seed.
    pub seed: u64,
    /// Where it took place.
    #[serde(default, skip_serializing_if = "World::is_simulated")]
    pub world: World,
    /// What the emulator found about itself, if it took place there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emulation: Option<EmulationRecord>,
    /// What was measured: `goodput`, `goodput.udt`, `utilisation`, `jain`, …
    pub metrics: BTreeMap<String, f64>,
    /// What was recorded over time: `(seconds, value)` by name, such as `goodput.udt` or `queue`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub series: BTreeMap<String, Vec<(f64, f64)>>,
    /// Hash of everything that the run depends on: scenario, point, curve, seed, version. What a sweep resumes by.
    pub key: String,
    /// Hash of everything that was sent and delivered, hexadecimal; empty where real time decides.
    pub trace: String,
    /// Seconds that the scenario lasts: virtual ones in the simulator.
    pub simulated_seconds: f64,
    /// Real seconds that took.
    pub real_seconds: f64,
    /// Times that a packet left a link.
    pub packet_hops: u64,
}

/// What an emulator found about itself in a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EmulationRecord {
    /// Whether the scenario's links and not the emulator were the limit.
    pub valid: bool,
    /// Why not, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flaws: Vec<String>,
    /// By how much packets were handed over later than the links say, in seconds: half of them by no more than this.
    pub lateness_p50: f64,
    /// 99 % of them by no more than this.
    pub lateness_p99: f64,
    /// The latest.
    pub lateness_max: f64,
    /// The longest time in which it did not look for packets, in seconds.
    pub longest_gap: f64,
    /// The share of one processor that it used.
    pub busy: f64,
    /// The share of the time in which something on this machine waited for a processor, programs of the run or others; `None`
    /// where the system does not say. Then its hosts were slower than they can be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited: Option<f64>,
    /// Datagrams that receiving programs were too slow to take, and those that their sockets found damaged.
    pub receiver_drops: u64,
    /// The kernel's congestion controls of TCP flows, if there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp: Option<String>,
}

impl Record {
    /// Why it cannot be believed; nothing in the simulator.
    pub fn flaws(&self) -> &[String] {
        self.emulation.as_ref().map_or(&[], |emulation| &emulation.flaws)
    }

    /// Whether it can be believed.
    pub fn is_valid(&self) -> bool {
        self.emulation.as_ref().is_none_or(|emulation| emulation.valid)
    }
}
