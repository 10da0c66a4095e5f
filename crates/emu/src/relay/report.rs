//! The results of a run of the relay, and whether they are valid.

use farhaul_netem::Counters;
use farhaul_units::Duration;

use crate::flaw::Flaw;
use crate::lateness::LatenessReport;

/// One direction of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct DirectionReport {
    /// Counters of the path, with 28 bytes of headers per datagram over IPv4, 48 over IPv6.
    pub path: Counters,
    /// Datagrams dropped because the memory for packets in flight was exhausted.
    pub exhausted: u64,
    /// Datagrams handed to the network.
    pub sent: u64,
    /// Datagrams that the system refused to send.
    pub unsent: u64,
    /// Datagrams whose client had been replaced when they were due.
    pub orphaned: u64,
}

/// The results of a run.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RelayReport {
    /// From the clients to the server.
    pub up: DirectionReport,
    /// From the server to the clients.
    pub down: DirectionReport,
    /// How much later than the paths require packets left.
    pub lateness: LatenessReport,
    /// Number of clients.
    pub clients: u64,
    /// Duration of the run.
    pub elapsed: Duration,
    /// Processor time of the relay's thread.
    pub cpu: Duration,
    /// Rounds of the relay's loop.
    pub rounds: u64,
    /// Whether the path, not the relay, limited the traffic: `flaws` is empty.
    pub valid: bool,
    /// The reasons why the run is invalid.
    pub flaws: Vec<Flaw>,
}
