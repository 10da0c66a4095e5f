//! The sending end: new packets, segments, and repetitions when nothing else is left.

use farhaul_units::{Duration, Instant, SendPeriod, SeqNo, SeqRange};
use farhaul_wire::fobs::{Bitmap, Record, Segment, Version};

use super::adaptation::Adaptation;
use super::objects::Objects;
use super::repair::{Repair, Sent};
use super::{GREEDY_BATCH, Options, Pick};
use crate::blast::engine::{self, Feedback, Setup, Transmission};
use crate::blast::numbered::{self, SendBuffer, size_on_link};
use crate::blast::partial::unreadable;
use crate::blast::rate::{RateChoice, RateControl};
use crate::blast::sending::SenderState;
use farhaul_proto::endpoint::limit::Limit;
use farhaul_proto::error::PeerMisbehaved;
use farhaul_proto::pacer::{MAX_BURST, Pacer};
use farhaul_proto::stats::Stats;
use farhaul_proto::timer::Timer;

/// Shortest time without new data after which an object ends. Shorter pauses are those of hosts.
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);
/// Most objects, and most segments, that may await the peer's word. More would only be held for a peer that is silent.
const MOST_AWAITED: usize = 1 << 14;
/// Longest time from packet to packet.
const LONGEST_PERIOD_MICROS: f64 = 1e9;

/// The sender of one direction.
#[derive(Debug)]
pub(crate) struct Sender {
    state: SenderState,
    buffer: SendBuffer,
    objects: Objects,
    repair: Repair,
    pick: Pick,
    overlap: bool,
    pacer: Pacer,
    batch: Option<u32>,
    rate: RateControl,
    /// `None` while the rate is found. Then the finder answers losses, and a second answer would hide its rate from it.
    adaptation: Option<Adaptation>,
    /// When the open object ends, unless more is written.
    pause: Timer,
}

impl Sender {
    pub(super) fn new(options: &Options, setup: &Setup<'_>) -> Self {
        let buffer = numbered::send_buffer(setup);
        let objects = Objects::new(options.object, buffer.store.payload_size());
        let batch = match options.version {
            Version::Segments => options.batch,
            Version::Greedy => options.batch.or(Some(GREEDY_BATCH)),
        };
        let mut pacer = Pacer::default();
        pacer.set_burst_time(setup.config.burst_time);
        pacer.on_sent(setup.now, 0);
        if matches!(options.rate, RateChoice::Fixed(_)) {
            pacer.keep_schedule();
        }
        let mut sender = Self {
            state: SenderState::new(setup),
            buffer,
            objects,
            repair: Repair::new(options),
            pick: options.pick,
            overlap: options.overlap,
            pacer,
            batch,
            rate: RateControl::of(options.rate, setup),
            adaptation: matches!(options.rate, RateChoice::Fixed(_)).then(|| Adaptation::new(options.tolerance)),
            pause: Timer::stopped(),
        };
        sender.apply_rate();
        sender
    }

    // ---- the rate ----

    fn apply_rate(&mut self) {
        let period = self.period();
        self.pacer.set_period(period, self.state.round_trip);
        if let Some(batch) = self.batch {
            self.pacer.set_burst_time(period.time_for(batch.clamp(1, MAX_BURST).into()));
        }
    }

    fn period(&self) -> SendPeriod {
        let bits = size_on_link(&self.buffer) as f64 * 8.0;
        let shortest = bits / (self.rate.rate().bits_per_second() as f64).max(1.0) * 1e6;
        let factor = self.adaptation.as_ref().map_or(1.0, Adaptation::factor);
        SendPeriod::from_micros((shortest * factor).min(LONGEST_PERIOD_MICROS))
    }

    // ---- the next packet ----

    /// Whether the next object waits for the completion of an earlier one.
    fn is_blocked(&self) -> bool {
        !self.overlap && self.objects.oldest_end().is_some()
    }

    /// The end of the packets that may leave now. One that is not full waits for the end of its object.
    fn sendable_end(&self) -> SeqNo {
        if !self.overlap
            && let Some(end) = self.objects.oldest_end()
        {
            return end;
        }
        let end = self.buffer.store.end();
        let waits = self.objects.is_open() && !self.buffer.store.is_full(end.minus(1));
        if waits { end.minus(1) } else { end }
    }

    /// New packets that may leave now.
    fn waiting(&self) -> u32 {
        if self.repair.awaited().max(self.objects.closed()) > MOST_AWAITED {
            return 0;
        }
        SeqRange::new(self.buffer.next, self.sendable_end().minus(1)).len()
    }

    fn sent(&self) -> Sent {
        let object_end = self.objects.oldest_end().filter(|end| !self.buffer.next.is_before(*end));
        Sent { first: self.buffer.store.first(), next: self.buffer.next, object_end, round_trip: self.state.round_trip }
    }

    /// Whether a packet to repeat comes before the next new one.
    fn precedes(&self, repetition: SeqNo) -> bool {
        self.waiting() == 0 || self.pick == Pick::MissingFirst || self.objects.is_earlier(repetition, self.buffer.next)
    }

    /// There is nothing to send now.
    fn rest(&mut self, now: Instant) {
        self.pacer.hold();
        self.state.rest(now, self.buffer.is_empty());
        if self.objects.is_open() && !self.is_blocked() {
            self.pause.start(now, self.state.round_trip.max(SHORTEST_PAUSE));
        }
        self.close_segment();
    }

    /// Completes the segment under way if nothing can follow it before the peer answers.
    fn close_segment(&mut self) {
        if (!self.objects.is_open() || self.is_blocked()) && self.waiting() == 0 {
            self.repair.close_segment(self.buffer.next);
        }
    }

    /// The open object ends here.
    fn close_object(&mut self) {
        self.pause.stop();
        self.objects.close(self.buffer.store.end());
        self.close_segment();
    }

    // ---- the peer's records ----

    fn on_record(&mut self, record: Record<'_>) -> Result<(), PeerMisbehaved> {
        match record {
            Record::Feedback(segment, bitmap) => self.on_feedback_record(segment, bitmap),
            Record::Ack(segment, bitmap) => self.on_ack(segment.range, bitmap),
            Record::Completed(end) => {
                if end.is_after(self.buffer.next) || !self.objects.completed(end) {
                    let (field, value) = ("end of the completed objects", end.value().into());
                    return Err(PeerMisbehaved::out_of_range(
                        field,
                        value,
                        "the end of an object that is not complete",
                    ));
                }
                self.release(end);
                Ok(())
            }
            Record::Done { .. } => Err(PeerMisbehaved::out_of_turn("the end of an object")),
            Record::Segment(_) => Err(PeerMisbehaved::out_of_turn("the end of a segment")),
        }
    }

    fn on_feedback_record(&mut self, segment: Segment, bitmap: Bitmap<'_>) -> Result<(), PeerMisbehaved> {
        let Repair::Segments(segments) = &mut self.repair else {
            return Err(PeerMisbehaved::out_of_turn("the bitmap of a segment"));
        };
        let Some(loss) = segments.on_feedback(segment, bitmap) else {
            let (field, value) = ("segment of a bitmap", segment.number.into());
            return Err(PeerMisbehaved::out_of_range(field, value, "the oldest segment without one, and its packets"));
        };
        self.state.counts.naks += 1;
        self.state.counts.lost += u64::from(loss.lost);
        if let Some(adaptation) = &mut self.adaptation {
            adaptation.on_segment(loss.lost, loss.packets);
        }
        self.apply_rate();
        Ok(())
    }

    fn on_ack(&mut self, range: SeqRange, bitmap: Bitmap<'_>) -> Result<(), PeerMisbehaved> {
        let Repair::Greedy(circle) = &mut self.repair else {
            return Err(PeerMisbehaved::out_of_turn("an acknowledgement"));
        };
        if range.last.next().is_after(self.buffer.next) {
            let (field, value) = ("last packet of an acknowledgement", range.last.value().into());
            return Err(PeerMisbehaved::out_of_range(field, value, "packets that were sent"));
        }
        self.state.counts.acks += 1;
        circle.on_ack(range, bitmap);
        Ok(())
    }

    /// The peer has everything before `packet`.
    fn release(&mut self, packet: SeqNo) {
        self.buffer.release(packet);
        self.repair.advance(self.buffer.store.first());
    }
}

/// The packets that fill the path. An object in flight is no reason to hold less of the next.
const FILLING: Option<u32> = None;

impl engine::Sender for Sender {
    fn state_mut(&mut self) -> &mut SenderState {
        &mut self.state
    }

    fn room(&self) -> usize {
        self.buffer.room(FILLING, &self.pacer)
    }

    fn write(&mut self, _now: Instant, data: &[u8]) -> usize {
        let taken = data.len().min(self.room());
        let mut rest = &data[..taken];
        while !rest.is_empty() {
            let (part, later) = rest.split_at(rest.len().min(self.objects.room()));
            // A last packet that is not full belongs to the open object, or stays as it is.
            let closed = self.buffer.next.later(self.objects.open());
            numbered::write(&mut self.buffer, part, closed);
            self.objects.wrote(part.len(), self.buffer.store.end());
            rest = later;
        }
        if taken > 0 {
            self.pause.stop();
        }
        taken
    }

    fn flush(&mut self, _now: Instant) {
        self.close_object();
    }

    fn is_delivered(&self) -> bool {
        self.buffer.is_delivered()
    }

    fn handle_record(&mut self, _now: Instant, bytes: &[u8]) -> Result<Option<usize>, PeerMisbehaved> {
        let Some((record, length)) = Record::decode(bytes).map_err(unreadable)? else { return Ok(None) };
        self.on_record(record)?;
        Ok(Some(length))
    }

    fn poll_control(&mut self, _now: Instant, out: &mut Vec<u8>) {
        self.objects.poll_control(out);
        self.repair.poll_control(out);
    }

    fn on_delivered(&mut self, _now: Instant, offset: u64) {
        self.release(self.buffer.delivered_until(offset));
    }

    fn on_feedback(&mut self, now: Instant, feedback: &Feedback) {
        self.rate.on_feedback(now, feedback);
        self.apply_rate();
    }

    fn set_round_trip(&mut self, round_trip: Duration) {
        self.state.round_trip = round_trip;
        self.apply_rate();
    }

    fn plan(&mut self, now: Instant) -> Option<Transmission> {
        let waiting = self.waiting();
        let repetition = self.repair.next(now, self.sent(), &mut self.buffer);
        let repetition = repetition.filter(|(packet, _)| self.precedes(*packet));
        if repetition.is_none() && waiting == 0 {
            self.rest(now);
            return None;
        }
        let allowance = self.pacer.allowance(now);
        if allowance == 0 {
            self.state.limits.set(Limit::Congestion, now);
            return None;
        }
        if let Some((packet, packets)) = repetition {
            return Some(Transmission { first: packet.value().into(), packets: packets.min(allowance), again: true });
        }
        let most = allowance.min(waiting).min(self.repair.room());
        self.buffer.plan_new(most)
    }

    fn emit<'a>(&'a mut self, now: Instant, plan: Transmission, scratch: &'a mut Vec<u8>) -> Option<(usize, &'a [u8])> {
        self.state.on_sent(plan);
        self.rate.on_sent(now, plan.packets, plan.packets as usize * self.buffer.size());
        self.pacer.on_sent(now, plan.packets);
        if plan.again {
            let train = (SeqNo::new(plan.first as u32), plan.packets);
            return self.repair.emit(train, self.buffer.next, &mut self.buffer, scratch);
        }
        self.repair.on_sent(now, self.buffer.next, plan.packets);
        self.buffer.emit_new(plan.packets, scratch)
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.pause.fires(now) {
            self.close_object();
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let paced = self.pacer.deadline();
        let new = if self.waiting() > 0 { paced } else { None };
        let repetition = self.repair.deadline(self.sent()).map(|due| paced.map_or(due, |paced| paced.max(due)));
        [new, repetition, self.pause.deadline()].into_iter().flatten().min()
    }

    fn fill_stats(&self, now: Instant, stats: &mut Stats) {
        self.state.fill_stats(now, stats);
        self.buffer.fill_stats(FILLING, &self.pacer, stats);
        stats.send_period = self.period();
        stats.cwnd = self.pacer.burst();
        stats.memory += self.repair.memory() as u64;
    }
}
