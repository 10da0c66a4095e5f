//! What a run of the relay gave, and whether it can be believed.

use std::fmt;

use farhaul_netem::Counters;
use farhaul_units::Duration;

use crate::lateness::LatenessReport;

/// A run in which more than one packet in a hundred left later than this is invalid: the smallest round trip that
/// figures are made with is 1 ms.
pub const MAX_LATENESS: Duration = Duration::from_millis(1);

/// A run in which any packet left later than this is invalid: half of the shortest time-outs of the protocols.
pub const MAX_STALL: Duration = Duration::from_millis(50);

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

/// Why a run cannot be believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Flaw {
    /// More than one packet in a hundred was later than [`MAX_LATENESS`].
    Late(Duration),
    /// A packet was later than [`MAX_STALL`].
    Stalled(Duration),
    /// Datagrams were dropped because the relay's receive buffers were full.
    ReceiveOverflow(u64),
    /// Datagrams were dropped because too many were under way.
    OutOfMemory(u64),
    /// Datagrams were not taken by this machine for sending.
    Unsent(u64),
    /// Datagrams came from more clients than the relay takes.
    TooManyClients(u64),
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Late(p99) => write!(f, "1 % of the packets left more than {p99:?} late (limit {MAX_LATENESS:?})"),
            Self::Stalled(max) => write!(f, "a packet left {max:?} late (limit {MAX_STALL:?})"),
            Self::ReceiveOverflow(count) => write!(f, "{count} datagrams overflowed the relay's receive buffers"),
            Self::OutOfMemory(count) => write!(f, "{count} datagrams found no memory in the relay"),
            Self::Unsent(count) => write!(f, "{count} datagrams were not taken for sending"),
            Self::TooManyClients(count) => write!(f, "{count} datagrams came from more clients than fit"),
        }
    }
}

/// The flaws of a run, from what was measured. `losses` are flaws that count something, perhaps nothing.
pub(super) fn flaws(lateness: &LatenessReport, losses: [Flaw; 4]) -> Vec<Flaw> {
    let late = (lateness.p99 > MAX_LATENESS).then_some(Flaw::Late(lateness.p99));
    let stalled = (lateness.max > MAX_STALL).then_some(Flaw::Stalled(lateness.max));
    let losses = losses.into_iter().filter(|flaw| flaw.count() != Some(0));
    late.into_iter().chain(stalled).chain(losses).collect()
}

impl Flaw {
    /// How many datagrams it took, if that is what it says.
    fn count(&self) -> Option<u64> {
        match self {
            Self::Late(_) | Self::Stalled(_) => None,
            Self::ReceiveOverflow(count)
            | Self::OutOfMemory(count)
            | Self::Unsent(count)
            | Self::TooManyClients(count) => Some(*count),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_LOSSES: [Flaw; 4] =
        [Flaw::ReceiveOverflow(0), Flaw::OutOfMemory(0), Flaw::Unsent(0), Flaw::TooManyClients(0)];

    #[test]
    fn a_prompt_relay_has_no_flaws() {
        let lateness = LatenessReport { p99: MAX_LATENESS, max: MAX_STALL, ..LatenessReport::default() };
        assert_eq!(flaws(&lateness, NO_LOSSES), []);
    }

    #[test]
    fn lateness_and_own_losses_are_flaws() {
        let p99 = MAX_LATENESS * 2;
        let lateness = LatenessReport { p99, max: MAX_STALL * 2, ..LatenessReport::default() };
        let mut losses = NO_LOSSES;
        losses[0] = Flaw::ReceiveOverflow(3);
        let found = flaws(&lateness, losses);
        assert_eq!(found, [Flaw::Late(p99), Flaw::Stalled(MAX_STALL * 2), Flaw::ReceiveOverflow(3)]);
        assert!(found[2].to_string().starts_with("3 datagrams"));
    }
}
