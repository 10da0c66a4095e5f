//! Records of the receiver, and their effects on the sender.

use farhaul_units::{Duration, Instant, SeqNo, SeqRange};
use farhaul_wire::sabul::{DecimalSeq, Losses, Record};

use super::{Receiver, Sender};
use crate::blast::engine::{Feedback, RoundTrips};
use crate::sabul::Repairs;
use crate::sabul::rate::Report;
use farhaul_proto::error::PeerMisbehaved;

impl Sender {
    /// The receiver sent a record.
    pub(super) fn on_record(&mut self, now: Instant, record: Record<'_>) -> Result<(), PeerMisbehaved> {
        let tells_of_arrivals = !matches!(record, Record::Exp(_) | Record::Syn(0));
        self.silence.on_heard(now, tells_of_arrivals);
        match record {
            Record::Ack(number) => self.on_ack(now, number)?,
            Record::Err(losses) => self.on_report(now, &losses),
            Record::More(losses) => {
                self.silence.on_progress(now);
                self.list(now, &losses);
            }
            // No program sends it. One that did would mean what the sender's own expiration means.
            Record::Exp(_) => {}
            Record::Syn(received) => self.on_syn(now, received),
        }
        Ok(())
    }

    fn on_ack(&mut self, now: Instant, number: DecimalSeq) -> Result<(), PeerMisbehaved> {
        let seq = self.numbering.near(number);
        if seq.is_after(self.buffer.next) {
            // Attacks B2, B3.
            let value = number.value().into();
            return Err(PeerMisbehaved::out_of_range("acknowledged packet", value, "at most the next packet"));
        }
        self.state.counts.acks += 1;
        self.silence.on_progress(now);
        self.rate.on_ack();
        self.acknowledge(seq);
        Ok(())
    }

    /// Releases everything before `seq`, of which all has left.
    pub(super) fn acknowledge(&mut self, seq: SeqNo) {
        if !seq.is_after(self.buffer.store.first()) {
            return;
        }
        self.buffer.release(seq);
        self.losses.acknowledge(seq);
        if let Receiver::Original { after } = &mut self.receiver {
            *after = after.filter(|after| after.is_after(seq));
        }
        self.numbering.advance(seq);
        self.rate.on_unacknowledged(self.in_flight());
    }

    fn on_report(&mut self, now: Instant, losses: &Losses<'_>) {
        self.state.counts.naks += 1;
        self.silence.on_progress(now);
        let first = self.numbering.near(losses.first());
        let news = self.list(now, losses);
        if first.is_before(self.buffer.store.first()) || !first.is_before(self.buffer.next) {
            return;
        }
        let report = Report { first, losses: news, acked: self.buffer.store.first(), next: self.buffer.next };
        let pause = self.rate.on_report(report);
        if !pause.is_zero() {
            self.pacer.freeze_until(now + pause);
        }
    }

    /// Lists losses. Numbers that are not in flight are ignored. Returns how many are news.
    fn list(&mut self, now: Instant, losses: &Losses<'_>) -> u32 {
        let flight = self.buffer.in_flight();
        let mut news = 0;
        for seq in losses.iter().map(|number| self.numbering.near(number)) {
            let Some(loss) = SeqRange::new(seq, seq).clip(flight) else { continue };
            news += match self.repairs {
                Repairs::Unlimited => self.losses.report(loss, now, self.state.round_trip),
                Repairs::Original => self.losses.expire(loss),
            };
        }
        self.state.counts.lost += u64::from(news);
        news
    }

    fn on_syn(&mut self, now: Instant, received: u32) {
        self.rate.on_syn(received);
        if let Some((arrivals, busy)) = self.arrivals.on_syn(now, received) {
            self.rate.on_arrivals(now, &arrivals, busy, self.buffer.next);
        }
    }

    /// The receiver was silent for too long: everything unacknowledged counts as lost.
    pub(super) fn expire(&mut self) {
        self.timeouts += 1;
        self.losses.expire(self.buffer.in_flight());
        self.rate.on_expiration(self.buffer.next);
        self.apply_rate();
    }
}

/// Bytes of a packet of 1500 bytes without the headers and the tag that a count adds.
const PAYLOAD: u64 = 1_464;

/// Counts of arrivals, by the feedback of the receiver's connection or else by its SYN records.
#[derive(Debug)]
pub(super) struct Arrivals {
    /// The last count, by SYN records as long as there is no feedback.
    latest: Feedback,
    has_feedback: bool,
    /// Whether the sender always had something to send since the last count.
    busy: bool,
}

impl Arrivals {
    pub(super) fn new() -> Self {
        Self { latest: Feedback::default(), has_feedback: false, busy: true }
    }

    /// The sender had nothing to send, or might not.
    pub(super) const fn note_idle(&mut self) {
        self.busy = false;
    }

    /// Whether a feedback is the first one. Counts of SYN records before it have another clock.
    pub(super) const fn has_no_feedback(&self) -> bool {
        !self.has_feedback
    }

    /// The count in packets, and whether the sender was busy.
    pub(super) fn on_feedback(&mut self, feedback: &Feedback) -> (Feedback, bool) {
        self.has_feedback = true;
        self.count(feedback.datagrams, feedback.clock, feedback.path)
    }

    /// The same for a SYN record, dated by this side's clock.
    pub(super) fn on_syn(&mut self, now: Instant, received: u32) -> Option<(Feedback, bool)> {
        let datagrams = self.latest.datagrams.saturating_add(received.into());
        (!self.has_feedback).then(|| self.count(datagrams, now - Instant::ZERO, RoundTrips::default()))
    }

    fn count(&mut self, datagrams: u64, clock: Duration, path: RoundTrips) -> (Feedback, bool) {
        // Every packet counts as a full one.
        self.latest = Feedback { datagrams, bytes: datagrams.saturating_mul(PAYLOAD), clock, path };
        (self.latest, std::mem::replace(&mut self.busy, true))
    }
}
