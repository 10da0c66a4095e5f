//! The peer's control packets about this side's data, and how it leaves.

use farhaul_cc::{AckEvent, LossEvent};
use farhaul_units::{Instant, SeqNo, SeqRange};
use farhaul_wire::udt2004::{Ack, LossList, LossRange, SeqNo30};

use super::Udt2004Connection;
use farhaul_proto::endpoint::protocol::Effect;

/// Most confirmations that wait to be sent. A peer acknowledges once in 10 ms.
const MAX_CONFIRMATIONS: usize = 64;

impl Udt2004Connection {
    pub(super) fn on_ack(&mut self, ack: &Ack, now: Instant) {
        let Some((packets, seq)) = self.acknowledge(ack.seq, now) else { return };
        self.liveness.expiry.on_heard(now);
        self.counts.acks_received += 1;
        if self.confirmations.len() < MAX_CONFIRMATIONS {
            self.confirmations.push_back(ack.id);
        }
        self.rtt.note_reported(ack.rtt);
        self.congestion.on_report(now, ack.arrival_speed, ack.capacity, self.rtt_of_peer());
        let mut event = AckEvent::default();
        event.seq = seq;
        event.newly_acked = packets;
        event.rtt_sample = self.rtt.reported();
        let path = self.path(now);
        self.congestion.on_ack(&path, &event);
        self.apply_control();
        self.exp.on_word(now, self.rtt_of_peer(), self.sender.in_flight() > 0);
    }

    /// The peer has everything before `seq`, if that is plausible. Returns the newly acknowledged packets and the full
    /// number.
    fn acknowledge(&mut self, seq: SeqNo30, now: Instant) -> Option<(u32, SeqNo)> {
        let seq = seq.near(self.sender.flight().first);
        if !self.sender.is_plausible(seq) {
            return None;
        }
        let (packets, bytes) = self.sender.on_ack(seq);
        self.counts.bytes_acked += bytes;
        if packets > 0 {
            self.liveness.progress.on_acknowledged(now, bytes);
        }
        Some((packets, seq))
    }

    pub(super) fn on_nak(&mut self, list: &LossList<'_>, now: Instant) {
        self.clip(list);
        if self.reported.is_empty() {
            return;
        }
        let (rtt, largest_sent) = (self.rtt_of_peer(), self.sender.next().minus(1));
        self.liveness.expiry.on_heard(now);
        self.counts.naks_received += 1;
        let mut news = 0;
        for range in &self.reported {
            news += self.sender.on_loss(*range, now, rtt);
        }
        self.counts.packets_lost_sending += u64::from(news);
        let path = self.path(now);
        self.congestion.on_loss(&path, &LossEvent::new(&self.reported, news, largest_sent));
        self.apply_control();
        self.exp.on_word(now, rtt, self.sender.in_flight() > 0);
    }

    /// Takes the packets of a report that are in flight, in ascending order. A range out of order ends the reading, so
    /// the flight bounds the work, not a peer's repetitions (attack B5).
    fn clip(&mut self, list: &LossList<'_>) {
        self.reported.clear();
        let flight = self.sender.flight();
        if flight.is_empty() {
            return;
        }
        let mut from = flight.first;
        for LossRange { first, end } in list.iter() {
            let start = first.near(flight.first);
            let len = LossRange { first, end }.len();
            if start.plus(len).is_before(from) {
                continue;
            }
            if start.is_before(from) && from != flight.first {
                return;
            }
            let Some(range) = SeqRange::new(start, start.plus(len - 1)).clip(flight) else { continue };
            self.reported.push(range);
            from = range.last.next();
        }
    }

    pub(super) fn on_ack2(&mut self, id: u16, now: Instant) {
        let Some(sample) = self.receiver.on_ack2(id, now, self.rtt.smoothed()) else { return };
        self.liveness.expiry.on_heard(now);
        self.rtt.sample(sample, now);
    }

    pub(super) fn on_warning(&mut self, now: Instant) {
        self.counts.delay_warnings_received += 1;
        if self.sender.in_flight() > 0 {
            let path = self.path(now);
            self.congestion.on_warning(&path);
            self.apply_control();
        }
    }

    pub(super) fn on_close(&mut self, connection: u32, end: SeqNo30, acked: SeqNo30, now: Instant) -> Effect {
        // Attack B1: a stranger does not know the id.
        if connection != self.connection {
            self.counts.packets_invalid += 1;
            return Effect::GoOn;
        }
        self.acknowledge(acked, now);
        let buffer = &self.receiver.buffer;
        let complete = buffer.is_contiguous() && buffer.end() == end.near(buffer.end());
        Effect::PeerClosed { complete, delivered: !self.sender.has_data() }
    }
}
