//! The part that the senders of all protocols share: counts, the reason why nothing leaves, the receiver's records.

use farhaul_units::{Duration, Instant};

use super::partial::Partial;
use super::setup::{Setup, Transmission};
use farhaul_proto::endpoint::limit::{Limit, LimitClock};
use farhaul_proto::stats::Stats;

/// Most bytes of one train of datagrams: the largest UDP payload over IPv4.
pub(crate) const MAX_TRAIN_BYTES: usize = 65_507;

/// The state of a sender that does not depend on the protocol.
#[derive(Debug)]
pub struct SenderState {
    /// The latest estimate of the RTT.
    pub(crate) round_trip: Duration,
    /// The beginning of a record of the receiver whose end has not arrived.
    pub(crate) partial: Partial,
    /// Why nothing leaves.
    pub(crate) limits: LimitClock,
    pub(crate) counts: Counts,
}

/// Counts of a sender.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Packets that left, and those of them that had left before.
    pub(crate) sent: u64,
    pub(crate) again: u64,
    /// Packets that the peer reported as missing.
    pub(crate) lost: u64,
    /// Acknowledgements and reports of losses.
    pub(crate) acks: u64,
    pub(crate) naks: u64,
}

impl SenderState {
    /// Nothing has left.
    pub(crate) fn new(setup: &Setup<'_>) -> Self {
        Self {
            round_trip: setup.round_trip,
            partial: Partial::default(),
            limits: LimitClock::default(),
            counts: Counts::default(),
        }
    }

    /// These packets leave.
    pub(crate) fn on_sent(&mut self, plan: Transmission) {
        self.counts.sent += u64::from(plan.packets);
        self.counts.again += if plan.again { u64::from(plan.packets) } else { 0 };
    }

    /// There is nothing to send now. `idle` is whether nothing is outstanding either.
    pub(crate) fn rest(&mut self, now: Instant, idle: bool) {
        self.limits.set(if idle { Limit::Idle } else { Limit::Application }, now);
    }

    /// Fills in the counts.
    pub(crate) fn fill_stats(&self, now: Instant, stats: &mut Stats) {
        let totals = &mut stats.totals;
        totals.packets_sent = self.counts.sent;
        totals.packets_retransmitted = self.counts.again;
        totals.packets_lost_sending = self.counts.lost;
        totals.acks_received = self.counts.acks;
        totals.naks_received = self.counts.naks;
        self.limits.fill(now, totals);
    }
}
