//! What a run of the relay gave, and whether it can be believed.

use farhaul_netem::Counters;
use farhaul_units::Duration;

use crate::flaw::Flaw;
use crate::lateness::LatenessReport;

/// One direction of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct DirectionReport {
    /// What the path did, with 28 bytes of headers per datagram over IPv4, 48 over IPv6.
    pub path: Counters,
    /// Datagrams that arrived when too much was under way.
    pub exhausted: u64,
    /// Datagrams handed to the network.
    pub sent: u64,
    /// Datagrams that this machine did not take for sending.
    pub unsent: u64,
    /// Datagrams whose client had lost its place when they were due.
    pub orphaned: u64,
}

/// What a run gave.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RelayReport {
    /// From the clients to the server.
    pub up: DirectionReport,
    /// From the server to the clients.
    pub down: DirectionReport,
    /// How much later than the paths say packets left.
    pub lateness: LatenessReport,
    /// How many clients there were.
    pub clients: u64,
    /// How long the run lasted.
    pub elapsed: Duration,
    /// Processor time of the relay's thread.
    pub cpu: Duration,
    /// How often the relay's loop ran.
    pub rounds: u64,
    /// Whether the path and not the relay was the limit: `flaws` is empty.
    pub valid: bool,
    /// Why not.
    pub flaws: Vec<Flaw>,
}
