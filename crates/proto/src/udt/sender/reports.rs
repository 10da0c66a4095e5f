//! What the peer reports of the data: acknowledgements, losses, and silence.

use farhaul_units::{Duration, Instant, SeqNo, SeqRange};
use farhaul_wire::udt4::Timestamp;

use super::{Progress, Sender};
use crate::estimate::Mark;

impl Sender {
    /// Whether an acknowledgement of everything before `seq` can be true (attacks B2, B3, B8).
    pub(crate) fn is_plausible(&self, seq: SeqNo) -> bool {
        !seq.is_before(self.buffer.first()) && !seq.is_after(self.next) && !self.is_of_withheld(seq)
    }

    /// Whether everything before `seq` includes a packet that is withheld.
    fn is_of_withheld(&self, seq: SeqNo) -> bool {
        let held = self.withholding.as_ref().and_then(|withholding| withholding.held());
        held.is_some_and(|held| seq.is_after(held) && !seq.is_after(self.next))
    }

    /// An acknowledgement of everything before `seq` cannot be true. Returns whether the peer is a liar.
    pub(crate) fn on_implausible(&mut self, seq: SeqNo) -> bool {
        self.is_of_withheld(seq) && self.withholding.as_mut().is_some_and(|withholding| withholding.on_lie())
    }

    /// Time since the last packet before `seq` was sent, if its acknowledgement gives an RTT sample. Retransmissions
    /// hold acknowledgements back, so it does not while any are outstanding.
    pub(crate) fn round_trip(&self, seq: SeqNo, now: Timestamp) -> Option<Duration> {
        if !seq.is_after(self.buffer.first()) || !self.repairs.is_clean() {
            return None;
        }
        // Expired packets may never have left, and hold the acknowledgement back until the receiver skips them.
        let acked = SeqRange::new(self.buffer.first(), seq.minus(1));
        if self.lifetimes.dropped_in(acked).next().is_some() {
            return None;
        }
        let left = self.buffer.stamped(seq.minus(1))?;
        // A receipt claims when it arrived, so that may be before the departure.
        let micros = now.value().wrapping_sub(left.value()).cast_signed();
        Some(Duration::from_micros(u64::try_from(micros).ok()?))
    }

    /// Whether a full acknowledgement of everything before `seq` goes beyond the last full one.
    pub(crate) fn is_news(&self, seq: SeqNo) -> bool {
        seq.is_after(self.confirmed)
    }

    /// Call before [`on_ack`](Self::on_ack). Checks whether retransmissions may have delivered packets before `seq`, on
    /// a path with this minimum RTT.
    pub(crate) fn judge(&mut self, seq: SeqNo, stamp: Timestamp, least_round_trip: Duration) {
        let acked = SeqRange::new(self.buffer.first(), seq.minus(1));
        if seq.is_after(self.buffer.first()) {
            self.repairs.judge(acked, &self.buffer, stamp, least_round_trip);
        }
    }

    /// Everything before `seq` has arrived. The caller has checked that this is plausible.
    pub(crate) fn on_ack(&mut self, seq: SeqNo, light: bool, now: Instant, round_trip: Duration) -> Progress {
        let packets = seq.distance_from(self.buffer.first()).unsigned_abs();
        if packets == 0 {
            return Progress::default();
        }
        self.proven = true;
        let clean = self.repairs.is_clean();
        let left = self.buffer.stamped(seq.minus(1));
        let mark = left.map(|left| Mark { seq, at: now, left, light });
        let delivery = mark.and_then(|mark| self.delivery.on_ack(mark, clean, round_trip));
        let bytes = self.buffer.release(seq);
        if let Some(deliveries) = &mut self.deliveries {
            deliveries.acknowledge(seq);
        }
        let recovered = self.repairs.acknowledge(seq);
        self.persist.stop();
        self.lifetimes.acknowledge(seq);
        let in_flight = self.in_flight();
        if let Some(withholding) = &mut self.withholding {
            withholding.acknowledge(seq, self.next, in_flight);
        }
        if self.application_limited_until.is_some_and(|until| !seq.is_before(until)) {
            self.application_limited_until = None;
        }
        if self.in_flight() > 0 {
            let time = self.time_to_next_look(round_trip);
            self.repairs.watch_anew(now, time);
        }
        Progress { packets, bytes, delivery, recovered }
    }

    /// A full or medium acknowledgement: everything before `seq` is safe, and the receiver has room for `free` packets.
    pub(crate) fn on_confirmed(&mut self, seq: SeqNo, free: u32, now: Instant) {
        let was_refused = self.is_refused();
        self.confirmed = self.confirmed.later(seq);
        // An overtaken acknowledgement does not tell the present window.
        if seq == self.confirmed {
            self.window_end = seq.plus(free);
        }
        if was_refused && !self.is_refused() && self.in_flight() > 0 {
            // The receiver had no room for packets sent meanwhile, so they are due again.
            self.repairs.look_at_once(now);
        }
        if !self.is_refused() {
            self.persist.stop();
        }
    }

    /// The peer reported lost packets in flight. Returns how many of them are newly lost. `None` if all belong to expired
    /// messages, and the peer lacks the request to skip them, or if only a withheld packet is missing.
    pub(crate) fn on_loss(&mut self, range: SeqRange, stamp: Timestamp, round_trip: Duration) -> Option<u32> {
        let mut given_up = 0;
        for dropped in self.lifetimes.dropped_in(range) {
            given_up += dropped.len();
            self.repairs.ask_to_skip(dropped);
        }
        if given_up == range.len() {
            return None;
        }
        let withheld = self.withholding.as_ref().is_some_and(|withholding| withholding.is_named_in(range));
        let newly_lost = self.repairs.report(range, &self.buffer, stamp, round_trip);
        if !withheld {
            return Some(newly_lost);
        }
        (range.len() > 1).then(|| newly_lost.saturating_sub(1))
    }

    /// No packet came for the expiration time, so everything in flight may be lost: the given expiration in a row.
    pub(crate) fn on_expiration(&mut self, count: u32) {
        if let Some(flight) = self.flight() {
            self.repairs.on_expiration(flight, count);
        }
    }
}
