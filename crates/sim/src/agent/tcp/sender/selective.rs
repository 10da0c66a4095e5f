//! Recovery from selective acknowledgements (paper:rfc6675 §5).
//!
//! | RFC 6675 | here |
//! | --- | --- |
//! | RecoveryPoint | `recovery_point`, one past it |
//! | HighACK, HighData | `Flight::first`, `Flight::high`, each one past it |
//! | HighRxt, pipe, IsLost | `tcp/scoreboard.rs` |
//! | RescueRxt | `rescued`, one past it |
//!
//! A segment may leave whenever the pipe has room, in and out of recovery. Without loss that is a plain window. Before
//! a recovery, duplicate acknowledgements thus permit new segments without extra rules (step 3.3, limited transmit).
//!
//! A time-out discards the SACK information and marks the whole flight as lost. It is then retransmitted from the first
//! segment on, except for segments that new acknowledgements report (§5.1).

use crate::agent::tcp::flight::{AckEffect, Flight};
use crate::agent::tcp::scoreboard::{DUP_THRESHOLD, Scoreboard};
use crate::packet::segment::Block;

/// State of a recovery by selective acknowledgements.
#[derive(Clone, Debug, Default)]
pub(super) struct Selective {
    board: Scoreboard,
    dup_acks: u64,
    recovering: bool,
    /// One past the last segment sent when the last recovery or time-out began; `None` before the first.
    recovery_point: Option<u64>,
    /// A rescue retransmission must wait until the acknowledgement has passed this segment.
    rescued: u64,
    /// New segments sent on duplicate acknowledgements before a recovery.
    limited: u64,
    /// Whether to retransmit the first segment of the flight now, whatever the pipe holds.
    retransmit_first: bool,
}

impl Selective {
    /// Takes an acknowledgement that moved the start of the flight by `acked` segments.
    pub(super) fn on_ack(&mut self, acked: u64, blocks: &[Block], flight: &Flight) -> AckEffect {
        if acked > 0 {
            self.dup_acks = 0;
            self.limited = 0;
        }
        let news = self.board.update(flight.first, blocks, flight.high);
        if self.recovering {
            return self.on_ack_in_recovery(acked, flight);
        }
        if news && flight.first < flight.high {
            //= paper:rfc6675 §5: an acknowledgement with SACK news is a duplicate, even if it acknowledges new data too
            self.dup_acks += 1;
            let may_recover = self.recovery_point.is_none_or(|point| flight.first >= point);
            //= paper:rfc6675 §5 steps (1), (2)
            if may_recover && (self.dup_acks >= DUP_THRESHOLD || self.board.first_is_lost()) {
                self.enter(flight);
                return AckEffect::Loss { limited: self.limited };
            }
        }
        if acked > 0 { AckEffect::Progress } else { AckEffect::Nothing }
    }

    /// The retransmission timer expired.
    //= paper:rfc6675 §5.1
    pub(super) fn on_timeout(&mut self, flight: &Flight) {
        self.board.lose_all(flight.high);
        self.recovery_point = Some(flight.high);
        (self.dup_acks, self.limited) = (0, 0);
        (self.recovering, self.retransmit_first) = (false, false);
    }

    /// The next segment to send under a window of `cwnd` packets.
    //= paper:rfc6675 §4 NextSeg(), §5 step (C)
    pub(super) fn next(&mut self, flight: &Flight, cwnd: u64) -> Option<u64> {
        if std::mem::take(&mut self.retransmit_first) {
            self.board.note_retransmitted(flight.first);
            return Some(flight.first);
        }
        if self.board.pipe(flight.high) >= cwnd {
            return None;
        }
        if let Some(lost) = self.board.next_lost().filter(|_| self.may_retransmit(flight)) {
            self.board.note_retransmitted(lost);
            return Some(lost);
        }
        if let Some(new) = flight.new_segment() {
            self.limited += u64::from(self.dup_acks > 0 && !self.recovering);
            return Some(new);
        }
        if !self.recovering {
            return None;
        }
        if let Some(maybe_lost) = self.board.next_maybe_lost() {
            self.board.note_retransmitted(maybe_lost);
            return Some(maybe_lost);
        }
        self.rescue(flight)
    }

    /// Whether a recovery is in progress.
    pub(super) fn is_recovering(&self) -> bool {
        self.recovering
    }

    fn on_ack_in_recovery(&mut self, acked: u64, flight: &Flight) -> AckEffect {
        //= paper:rfc6675 §5 step (A)
        if self.recovery_point.is_none_or(|point| flight.first >= point) {
            self.recovering = false;
            return AckEffect::Recovered;
        }
        // RFC 6298 restarts the timer at each of them, so each counts as the first.
        if acked > 0 { AckEffect::Partial { first: true } } else { AckEffect::Nothing }
    }

    //= paper:rfc6675 §5 step (4)
    fn enter(&mut self, flight: &Flight) {
        self.recovering = true;
        self.recovery_point = Some(flight.high);
        self.board.begin_recovery();
        self.retransmit_first = true;
        self.rescued = flight.first + 1;
    }

    /// Whether lost segments are to be retransmitted: in a recovery, and after a time-out until its flight is
    /// acknowledged.
    fn may_retransmit(&self, flight: &Flight) -> bool {
        self.recovering || self.recovery_point.is_some_and(|point| flight.first < point)
    }

    /// The last segment of the flight, once per recovery. Its loss may be undetectable, because no segment follows it.
    //= paper:rfc6675 §4 NextSeg() rule (4)
    fn rescue(&mut self, flight: &Flight) -> Option<u64> {
        if flight.first <= self.rescued {
            return None;
        }
        self.rescued = self.recovery_point?;
        self.board.highest_not_sacked(flight.high)
    }
}
