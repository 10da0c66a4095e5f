//! What the peer says of this side's data: acknowledgements with what they measure, and losses.

use farhaul_cc::{AckEvent, LossEvent};
use farhaul_units::{AckNo, Duration, Instant};
use farhaul_wire::udt4::{Ack, LossList, Timestamp};

use super::Established;
use crate::udt::consts::SYN_INTERVAL;
use crate::udt::sender::Cause;

/// Confirmations (ACK2) that wait to be sent at most: a peer that sends more acknowledgements between two of our turns
/// gets the newest ones confirmed.
const MAX_CONFIRMATIONS: usize = 16;
/// Full acknowledgements whose round-trip time is the receiver's first guess, and not a measurement.
const GUESSED_REPORTS: u64 = 4;

impl Established {
    pub(super) fn on_ack(&mut self, ack: &Ack, stamp: Timestamp, now: Instant) {
        let seq = ack.seq();
        if let Some(number) = ack.number() {
            self.counts.acks_received += 1;
            self.confirm(number);
        } else {
            self.counts.light_acks_received += 1;
        }
        if !self.sender.is_plausible(seq) {
            // Old ones are overtaken, those beyond what was sent are forged: neither may touch anything (B2, B3).
            self.counts.packets_invalid += u64::from(seq.is_after(self.sender.next()));
            return;
        }
        self.note_sign_of_life(now);
        let rtt_sample = self.take_measurements(ack, stamp, now);
        let confirms = ack.number().is_some() && self.sender.is_news(seq);
        // Known within a SYN only, since acknowledgements by timer come up to that late.
        self.sender.judge(seq, stamp, self.rtt.least().saturating_sub(SYN_INTERVAL));
        let progress = self.sender.on_ack(seq, ack.number().is_none(), now, self.rtt.with_margin());
        self.congestion.on_progress(progress.packets);
        if let Ack::Full { arrival_rate, capacity, .. } = *ack {
            self.congestion.on_report(now, arrival_rate, capacity, self.rtt.smoothed());
        }
        if let Some(cause) = progress.recovered {
            let path = self.path(now);
            self.congestion.on_recovered(&path, cause == Cause::Late);
        }
        // Light ones may have taken all the progress before this one; laws that ignore those need to hear of it still.
        if progress.packets > 0 || confirms {
            self.progress.on_acknowledged(now, progress.bytes);
            self.counts.bytes_acked += progress.bytes;
            let mut event = AckEvent::default();
            event.seq = seq;
            event.newly_acked = progress.packets;
            event.light = ack.number().is_none();
            event.rtt_sample = rtt_sample;
            event.delivery = progress.delivery;
            let path = self.path(now);
            self.congestion.on_ack(&path, &event);
            self.apply_control();
        }
        if let Ack::Medium { free_buffer, .. } | Ack::Full { free_buffer, .. } = *ack {
            self.sender.on_confirmed(seq, free_buffer.min(self.max_window), now);
        }
    }

    /// Lets the peer know that its acknowledgement came, unless this side has closed: to one that asks whether it has,
    /// silence is the answer.
    fn confirm(&mut self, number: AckNo) {
        if self.farewell.has_begun() {
            return;
        }
        if self.confirmations.len() == MAX_CONFIRMATIONS {
            self.confirmations.pop_front();
        }
        self.confirmations.push_back(number);
    }

    /// The measurements that an acknowledgement makes possible or carries.
    fn take_measurements(&mut self, ack: &Ack, stamp: Timestamp, now: Instant) -> Option<Duration> {
        let reported = self.reported_round_trip(ack);
        if let Some(reported) = reported {
            self.rtt.note_reported(reported);
        }
        if let Some(sample) = self.sender.round_trip(ack.seq(), stamp) {
            let prompt = ack.number().is_none();
            let delay = if prompt { Duration::ZERO } else { SYN_INTERVAL };
            self.rtt.note_at_least(sample.saturating_sub(delay), now);
            let sample = self.without_delay(sample, prompt)?;
            return self.rtt.sample(sample, now).then_some(sample);
        }
        let reported = reported?;
        self.rtt.report(reported, now).then_some(reported)
    }

    /// What a sample says about the path. Light acknowledgements leave as the packet comes; the others by timer, up to a SYN
    /// later, so that theirs is known within a SYN only: it counts where all of that range tells something.
    fn without_delay(&self, sample: Duration, prompt: bool) -> Option<Duration> {
        let known = self.rtt.smoothed();
        if prompt || self.rtt.latest().is_none() || sample <= known {
            return Some(sample);
        }
        sample.checked_sub(SYN_INTERVAL).filter(|least| *least > known)
    }

    /// The receiver's own estimate, for times when repairs hold acknowledgements back and blur this side's samples. The
    /// first ones are a guess of 100 ms whatever the path.
    fn reported_round_trip(&self, ack: &Ack) -> Option<Duration> {
        let (Ack::Medium { rtt, .. } | Ack::Full { rtt, .. }) = *ack else { return None };
        (self.counts.acks_received >= GUESSED_REPORTS).then_some(rtt)
    }

    /// The peer reports losses. All of them stand in the sender's list at once; the controller hears of those that come
    /// within two milliseconds together (attack B5).
    pub(super) fn on_nak(&mut self, list: &LossList<'_>, stamp: Timestamp, now: Instant) {
        self.counts.naks_received += 1;
        let Some(flight) = self.sender.flight() else { return };
        let mut named_any = false;
        for range in list.iter().filter_map(|range| range.clip(flight)) {
            named_any = true;
            if !self.losses.may_read(range.len(), flight.len(), now, self.rtt.smoothed()) {
                break;
            }
            let newly_lost = self.sender.on_loss(range, stamp, self.rtt.smoothed());
            self.counts.packets_lost_sending += u64::from(newly_lost);
            self.losses.add(range, newly_lost);
        }
        if named_any {
            self.note_sign_of_life(now);
            self.tell_losses(now);
        }
    }

    /// Tells the controller of losses that it is time to tell of.
    pub(super) fn tell_losses(&mut self, now: Instant) {
        if let Some(told) = self.losses.take(self.sender.flight(), now) {
            let path = self.path(now);
            let event = LossEvent::new(&told.ranges, told.newly_lost, self.sender.next().minus(1));
            self.congestion.on_loss(&path, &event);
            self.apply_control();
            self.losses.give_back(told);
        }
    }
}
