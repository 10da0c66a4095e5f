//! Recovery from cumulative acknowledgements alone: Tahoe, Reno (paper:rfc5681 §3.2), NewReno (paper:rfc6582 §3.2).
//!
//! | RFC | here |
//! | --- | --- |
//! | inflated cwnd | the controller's window plus `inflation` |
//! | recover | `recover`, one past it |
//!
//! After a time-out, everything from the first unacknowledged segment on is retransmitted as the window allows
//! (go-back-N). Tahoe does the same after a fast retransmit.
//!
//! All three styles observe `recover`. Duplicate acknowledgements for data that was in flight at the last loss start no
//! second fast retransmit (RFC 6582 §3.2 step 2, and ns-2's `bugFix_`).

use crate::agent::tcp::config::Recovery;
use crate::agent::tcp::flight::{AckEffect, Flight};

/// Duplicate acknowledgements that indicate a loss.
//= paper:rfc5681 §3.2
const DUP_THRESHOLD: u64 = 3;

/// State of a recovery by cumulative acknowledgements.
#[derive(Clone, Debug)]
pub(super) struct Cumulative {
    style: Recovery,
    /// Whether each of the first two duplicate acknowledgements permits a new segment (RFC 3042).
    limited_transmit: bool,
    dup_acks: u64,
    fast_recovery: bool,
    /// Whether a partial acknowledgement arrived in this recovery.
    partial: bool,
    /// Packets that duplicate acknowledgements add to the window and partial ones subtract.
    inflation: i64,
    /// One past the last segment sent when the last recovery or time-out began; `None` before the first.
    recover: Option<u64>,
    /// The next segment to send. Below the end of the flight after going back.
    next: u64,
    /// Whether to retransmit the first segment of the flight now.
    retransmit_first: bool,
}

impl Cumulative {
    pub(super) fn new(style: Recovery, limited_transmit: bool) -> Self {
        Self {
            style,
            limited_transmit,
            dup_acks: 0,
            fast_recovery: false,
            partial: false,
            inflation: 0,
            recover: None,
            next: 0,
            retransmit_first: false,
        }
    }

    /// `acked` segments were newly acknowledged.
    pub(super) fn on_progress(&mut self, acked: u64, flight: &Flight) -> AckEffect {
        self.next = self.next.max(flight.first);
        self.dup_acks = 0;
        if !self.fast_recovery {
            return AckEffect::Progress;
        }
        //= paper:rfc6582 §3.2 step 3
        if self.style == Recovery::NewReno && self.recover.is_some_and(|recover| flight.first < recover) {
            self.retransmit_first = true;
            self.inflation -= i64::try_from(acked).unwrap_or(i64::MAX) - 1;
            return AckEffect::Partial { first: !std::mem::replace(&mut self.partial, true) };
        }
        self.leave_fast_recovery();
        AckEffect::Recovered
    }

    /// A duplicate acknowledgement arrived while data is in flight.
    pub(super) fn on_duplicate(&mut self, flight: &Flight) -> AckEffect {
        if self.fast_recovery {
            //= paper:rfc5681 §3.2 step 4
            self.inflation += 1;
            return AckEffect::Nothing;
        }
        self.dup_acks += 1;
        if self.dup_acks != DUP_THRESHOLD || self.recover.is_some_and(|recover| flight.first <= recover) {
            return AckEffect::Nothing;
        }
        self.recover = Some(flight.high);
        let limited = if self.limited_transmit { flight.len().min(DUP_THRESHOLD - 1) } else { 0 };
        if self.style == Recovery::Tahoe {
            self.next = flight.first;
        } else {
            //= paper:rfc5681 §3.2 step 3
            self.inflation = DUP_THRESHOLD as i64;
            (self.fast_recovery, self.partial, self.retransmit_first) = (true, false, true);
        }
        AckEffect::Loss { limited }
    }

    /// The retransmission timer expired.
    pub(super) fn on_timeout(&mut self, flight: &Flight) {
        self.recover = Some(flight.high);
        self.next = flight.first;
        self.dup_acks = 0;
        self.leave_fast_recovery();
    }

    /// The next segment to send under a window of `cwnd` packets.
    pub(super) fn next(&mut self, flight: &Flight, cwnd: u64) -> Option<u64> {
        if std::mem::take(&mut self.retransmit_first) {
            self.next = self.next.max(flight.first + 1);
            return Some(flight.first);
        }
        let window = cwnd.saturating_add_signed(self.inflation).max(1);
        let in_flight = self.next - flight.first;
        if self.next < flight.high {
            if in_flight >= window {
                return None;
            }
        } else {
            //= paper:rfc3042 §2: the first two duplicate acknowledgements permit new segments
            let limited = self.limited_transmit && !self.fast_recovery && self.dup_acks < DUP_THRESHOLD;
            let window = if limited { window.saturating_add(self.dup_acks) } else { window };
            if in_flight >= window {
                return None;
            }
            flight.new_segment()?;
        }
        self.next += 1;
        Some(self.next - 1)
    }

    /// Whether a recovery is in progress.
    pub(super) fn is_recovering(&self) -> bool {
        self.fast_recovery
    }

    fn leave_fast_recovery(&mut self) {
        (self.fast_recovery, self.inflation, self.retransmit_first) = (false, 0, false);
    }
}
