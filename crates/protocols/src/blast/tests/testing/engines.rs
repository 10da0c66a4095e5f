//! Engines of tests: their setup, transfers over a path, and the faults that they find.

use farhaul_units::{Duration, Instant, Rate};
use farhaul_wire::blast::Tag;

use super::{Outcome, Path, Wire, content};
use crate::blast::engine::{Prefix, Protocol, Setup};
use farhaul_proto::config::Config;
use farhaul_proto::error::{ControlFault, PeerMisbehaved};

/// This many megabits per second.
pub(crate) fn megabits(megabits: u64) -> Rate {
    Rate::from_megabits_per_second(megabits)
}

/// An engine between Farhaul ends on a path with packets of 1500 bytes and an RTT of 20 ms.
pub(crate) fn setup(config: &Config) -> Setup<'_> {
    Setup {
        config,
        datagram: 1_472,
        prefix: Prefix::Tag(Tag(0x0102_0304_0506_0708)),
        round_trip: Duration::from_millis(20),
        now: Instant::ZERO,
    }
}

impl Path {
    /// A path with this RTT, and a loss probability.
    pub(crate) fn new(round_trip: Duration, loss: f64) -> Self {
        Self { delay: round_trip / 2, loss, ..Self::default() }
    }
}

impl Outcome {
    /// The share of datagrams that were sent again.
    pub(crate) fn resent(&self) -> f64 {
        self.sender.retransmission_ratio()
    }
}

/// Transfers `bytes` over `path` within `limit`, and checks that they arrive whole.
pub(crate) fn transfer_whole<P: Protocol>(
    (options, config): (&P::Options, &Config),
    (path, seed): (Path, u64),
    bytes: usize,
    limit: Duration,
) -> Outcome {
    let content = content(bytes);
    let outcome = Wire::<P>::new(options, config, path, seed).transfer(&content, limit);
    assert!(outcome.received == content, "the bytes differ");
    outcome
}

/// The field whose value is out of range.
pub(crate) fn field_out_of_range(fault: PeerMisbehaved) -> &'static str {
    match fault {
        PeerMisbehaved::ControlRecord(ControlFault::OutOfRange { field, .. }) => field,
        other => panic!("{other:?}"),
    }
}

/// Whether a record came that does not fit the state of the transfer.
pub(crate) fn is_out_of_turn(fault: PeerMisbehaved) -> bool {
    matches!(fault, PeerMisbehaved::ControlRecord(ControlFault::OutOfTurn(_)))
}
