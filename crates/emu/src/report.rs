//! The state of an emulation, its results, and whether they are valid.

use farhaul_netem::Counters;
use farhaul_units::Duration;

use crate::capture::BrokenCapture;
use crate::flaw::Flaw;
use crate::lateness::LatenessReport;
use crate::network::LinkId;

/// State of an emulation, about ten milliseconds old, up to sixty while idle.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Snapshot {
    /// Time since the start.
    pub at: Duration,
    /// Lateness of packets so far.
    pub lateness: LatenessReport,
    /// Counters of all links, as in [`EmulationReport::links`]. Empty before the loop has begun.
    pub links: Vec<Counters>,
}

/// Results of an emulation, and whether they are valid.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EmulationReport {
    /// How much later than the links require packets reached their hosts.
    pub lateness: LatenessReport,
    /// 99 % of the times without a poll of any host were at most this long.
    pub p99_gap: Duration,
    /// The longest time without a poll of any host.
    pub longest_gap: Duration,
    /// Packets to unknown addresses.
    pub unroutable: u64,
    /// Packets missing in captures because the disk was too slow.
    pub uncaptured: u64,
    /// Captures that end early because a write failed.
    pub broken_captures: Vec<BrokenCapture>,
    /// Duration of the emulation.
    pub elapsed: Duration,
    /// Processor time of the emulator's thread.
    pub cpu: Duration,
    /// Rounds of the emulator's loop.
    pub rounds: u64,
    /// Whether the links, not the emulator, limited the traffic: `flaws` is empty.
    pub valid: bool,
    /// The reasons why the run is invalid.
    pub flaws: Vec<Flaw>,
    /// Counters of all links, in the order of creation. The first link of a pair leads from its first host.
    pub links: Vec<Counters>,
}

impl Snapshot {
    /// Counters of a link.
    pub fn link(&self, link: LinkId) -> Counters {
        self.links.get(link.0).copied().unwrap_or_default()
    }
}

impl EmulationReport {
    /// Adds the flaws that exceed their limits.
    pub(crate) fn judge(&mut self, flaws: impl IntoIterator<Item = Flaw>) {
        self.flaws.extend(flaws.into_iter().filter(Flaw::counts));
        self.valid = self.flaws.is_empty();
    }
}
