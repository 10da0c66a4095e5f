//! The peer's feedback on this side's data: acknowledgements with their measurements, and loss reports.

use farhaul_cc::{AckEvent, DeliveryEvent, LossEvent};
use farhaul_units::{AckNo, Duration, Instant};
use farhaul_wire::udt4::{Ack, LossList, Receipt, Timestamp};

use super::UdtConnection;
use crate::consts::SYN_INTERVAL;
use crate::endpoint::protocol::Effect;
use crate::error::{ConnectionLost, PeerMisbehaved};
use crate::udt::sender::Cause;

/// Most confirmations (ACK2) that wait to be sent. If more acknowledgements arrive between two calls, the newest are
/// confirmed.
const MAX_CONFIRMATIONS: usize = 16;
/// The RTT in this many first full acknowledgements is the receiver's initial value, not a measurement.
const GUESSED_REPORTS: u64 = 4;

impl UdtConnection {
    /// The peer counts what has arrived, in a packet that it `sent` then by its own clock.
    pub(super) fn on_receipt(&mut self, receipt: &Receipt, sent: Timestamp, now: Instant) -> Effect {
        if !self.sender.takes_receipts() {
            self.counts.packets_invalid += 1;
            return Effect::GoOn;
        }
        if !self.sender.is_plausible(receipt.seq) {
            return self.on_ack(&Ack::Light { seq: receipt.seq }, self.stamp(now), now);
        }
        let arrived = self.receiver.arrived().min(now);
        let mut delivery = self.sender.on_receipt(receipt, arrived, self.rtt.least());
        // A peer that does not stamp its receipts leaves the field at zero.
        if let Some(delivery) = delivery.as_mut().filter(|_| sent != Timestamp::ZERO) {
            delivery.return_delay = Some(self.stamp(arrived).value().wrapping_sub(sent.value()).cast_signed());
        }
        self.report_delivery(delivery, now);
        if !receipt.prompt {
            self.note_sign_of_life(now);
            return Effect::GoOn;
        }
        let stamp = self.stamp(arrived.saturating_sub(receipt.delay));
        self.on_ack(&Ack::Light { seq: receipt.seq }, stamp, now)
    }

    /// Passes news of arrivals to the controller.
    fn report_delivery(&mut self, delivery: Option<DeliveryEvent>, now: Instant) {
        if let Some(mut delivery) = delivery.filter(|_| self.congestion.controller.wants_deliveries()) {
            let scale = self.congestion.scale();
            delivery.train = delivery.train.map(|train| scale.delivery(train));
            if let Some(sample) = &mut delivery.sample {
                let round_trip = self.rtt.smoothed();
                sample.rate = sample.rate.map(|rate| self.congestion.credible(now, rate, round_trip));
            }
            self.notify_controller(now, |congestion, path| congestion.controller.on_delivery(path, &delivery));
        }
    }

    pub(super) fn on_ack(&mut self, ack: &Ack, stamp: Timestamp, now: Instant) -> Effect {
        let seq = ack.seq();
        match ack.number() {
            Some(_) => self.counts.acks_received += 1,
            None => self.counts.light_acks_received += 1,
        }
        if !self.sender.is_plausible(seq) {
            // Old ones were overtaken, and ones beyond the sent packets are forged. Neither changes anything (B2, B3). This
            // side confirms neither, because a forged number would be a false RTT sample for the peer.
            self.counts.packets_invalid += u64::from(!seq.is_before(self.sender.buffer().first()));
            let lie = ConnectionLost::PeerMisbehaved(PeerMisbehaved::AcknowledgedUnsent);
            return if self.sender.on_implausible(seq) { Effect::Lost(lie) } else { Effect::GoOn };
        }
        if let Some(number) = ack.number() {
            self.confirm(number);
        }
        self.note_sign_of_life(now);
        // Farhaul acknowledges by timers of its own.
        let prompt = ack.number().is_none() || !self.peer_is_ours;
        let delivery = self.sender.derive_from_ack(seq, prompt, now, self.rtt.least());
        self.report_delivery(delivery, now);
        let rtt_sample = self.take_measurements(ack, stamp, now);
        let confirms = ack.number().is_some() && self.sender.is_news(seq);
        // Acknowledgements by timer are up to a SYN interval late, so the sample is known only to within one.
        self.sender.judge(seq, stamp, self.rtt.least().saturating_sub(SYN_INTERVAL));
        let progress = self.sender.on_ack(seq, ack.number().is_none(), now, self.rtt.with_margin());
        self.congestion.on_progress(progress.packets);
        if let Ack::Full { arrival_rate, capacity, .. } = *ack {
            self.congestion.on_report(now, arrival_rate, capacity, self.rtt.smoothed());
        }
        if let Some(cause) = progress.recovered {
            let path = self.path(now);
            self.congestion.controller.on_recovered(&path, cause == Cause::Late);
        }
        // Light ones may have brought all the progress. Controllers that ignore those still need this event.
        if progress.packets > 0 || confirms {
            self.liveness.progress.on_acknowledged(now, progress.bytes);
            self.counts.bytes_acked += progress.bytes;
            let mut event = AckEvent::default();
            event.seq = seq;
            let scale = self.congestion.scale();
            event.newly_acked = scale.acked(progress.packets);
            event.light = ack.number().is_none();
            event.rtt_sample = rtt_sample;
            event.delivery = progress.delivery.map(|sample| scale.delivery(sample));
            self.notify_controller(now, |congestion, path| congestion.on_ack(path, &event));
        }
        if let Ack::Medium { free_buffer, .. } | Ack::Full { free_buffer, .. } = *ack {
            self.sender.on_confirmed(seq, free_buffer.min(self.max_window), now);
        }
        Effect::GoOn
    }

    /// Confirms the peer's acknowledgement, unless this side has closed. Then silence answers a peer that asks whether
    /// it has.
    fn confirm(&mut self, number: AckNo) {
        if self.closing.has_begun() {
            return;
        }
        if self.confirmations.len() == MAX_CONFIRMATIONS {
            self.confirmations.pop_front();
        }
        self.confirmations.push_back(number);
    }

    /// The measurements that an acknowledgement carries or permits. Returns a plausible RTT sample.
    fn take_measurements(&mut self, ack: &Ack, stamp: Timestamp, now: Instant) -> Option<Duration> {
        if let Some(sample) = self.sender.round_trip(ack.seq(), stamp) {
            let sample = self.without_delay(sample, ack.number().is_none())?;
            return self.rtt.sample(sample, now).then_some(sample);
        }
        let reported = self.reported_round_trip(ack)?;
        self.rtt.report(reported, now).then_some(reported)
    }

    /// Corrects a sample for the receiver's delay. Light acknowledgements are sent at once, others up to a SYN interval
    /// later. So their samples have that uncertainty. Such a sample counts as a rise only if its lower bound exceeds
    /// the smoothed RTT.
    fn without_delay(&self, sample: Duration, prompt: bool) -> Option<Duration> {
        let known = self.rtt.smoothed();
        if prompt || self.rtt.latest().is_none() || sample <= known {
            return Some(sample);
        }
        sample.checked_sub(SYN_INTERVAL).filter(|least| *least > known)
    }

    /// The receiver's own RTT estimate. It serves while retransmissions hold acknowledgements back and distort this
    /// side's samples. The first reports are 100 ms on any path and do not count.
    fn reported_round_trip(&self, ack: &Ack) -> Option<Duration> {
        let (Ack::Medium { rtt, .. } | Ack::Full { rtt, .. }) = *ack else { return None };
        (self.counts.acks_received >= GUESSED_REPORTS).then_some(rtt)
    }

    /// The peer reports losses. The sender's list takes all of them at once. The controller gets those within two
    /// milliseconds as one event (attack B5).
    pub(super) fn on_nak(&mut self, list: &LossList<'_>, stamp: Timestamp, now: Instant) {
        self.counts.naks_received += 1;
        let Some(flight) = self.sender.flight() else { return };
        let mut named_any = false;
        for range in list.iter().filter_map(|range| range.clip(flight)) {
            named_any = true;
            if !self.losses.may_read(range.len(), flight.len(), now, self.rtt.smoothed()) {
                break;
            }
            let Some(newly_lost) = self.sender.on_loss(range, stamp, self.rtt.smoothed()) else { continue };
            self.counts.packets_lost_sending += u64::from(newly_lost);
            let flight = self.sender.note_lost(range, newly_lost);
            self.losses.add(range, newly_lost, flight);
            let delivery = self.sender.derive_from_report(range, now, self.rtt.least());
            self.report_delivery(delivery, now);
        }
        if named_any {
            self.note_sign_of_life(now);
            self.report_losses(now);
        }
    }

    /// Passes losses to the controller if they are due.
    pub(super) fn report_losses(&mut self, now: Instant) {
        if let Some(told) = self.losses.take(self.sender.flight(), now) {
            let newly_lost = self.congestion.scale().acked(told.newly_lost);
            let event = LossEvent::new(&told.ranges, newly_lost, self.sender.next().minus(1)).of_flights(&told.flights);
            self.notify_controller(now, |congestion, path| congestion.on_loss(path, &event));
            self.losses.give_back(told);
        }
    }
}
