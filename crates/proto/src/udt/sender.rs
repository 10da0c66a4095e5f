//! The sending half of a connection: its data, what the peer says of it, and the timers.

mod deliveries;
mod messages;
mod persist;
mod plan;
mod repair;
mod reports;
mod sizes;
mod withheld;

use std::collections::VecDeque;

use bytes::Bytes;
use farhaul_cc::{Control, DeliverySample};
use farhaul_units::{Duration, Instant, PacketRate, Rng, SendPeriod, SeqNo, SeqRange};
use farhaul_wire::udt4::{DropRequest, SocketId};

use self::deliveries::Deliveries;
use self::persist::Persist;
pub(crate) use self::repair::Cause;
use self::repair::Repairs;
use self::sizes::PacketSizes;
use self::withheld::Withholding;
use super::lifetimes::Lifetimes;
use crate::buffer::SendBuffer;
use crate::endpoint::handshake::ProtectionOverhead;
use crate::endpoint::limit::LimitClock;
use crate::estimate::Delivery;
use crate::intake::{Intake, Load};
use crate::pacer::Pacer;
use crate::transport::earliest;

/// Packets in flight before the peer's first acknowledgement. Until then its address may be forged (attack A2).
const UNPROVEN_WINDOW: u32 = 16;
/// Bytes that may wait behind missing packets beyond a window that counts outstanding packets alone. They are most of the fixed part of a
/// side's memory, 32 MiB. The rest is unsent data, 2 MiB at the least, and a record per packet.
const MAX_BEHIND_GAPS: u32 = 24 << 20;

/// The sending half of a connection.
#[derive(Debug)]
pub(crate) struct Sender {
    buffer: SendBuffer,
    repairs: Repairs,
    persist: Persist,
    pacer: Pacer,
    /// The next new packet.
    next: SeqNo,
    /// A full acknowledgement confirmed everything before this packet.
    confirmed: SeqNo,
    /// The first packet that the receiver has no room for.
    window_end: SeqNo,
    cwnd: u32,
    /// The peer has acknowledged a packet, so its address is not forged.
    proven: bool,
    lifetimes: Lifetimes,
    /// Messages leave once even if they have expired.
    sends_expired: bool,
    /// Finds liars; `None` if packets are never withheld.
    withholding: Option<Box<Withholding>>,
    /// Drop requests to send, oldest message first. libudt skips packets it never received only if the request starts
    /// right after those it received.
    drops: VecDeque<DropRequest>,
    /// `None` unless the controller wants to know.
    deliveries: Option<Box<Deliveries>>,
    /// Whether the window limits outstanding packets only.
    window_of_outstanding: bool,
    delivery: Delivery,
    /// Packets that fill the path, from the delivery rate.
    filled: u32,
    /// Until this packet is acknowledged, samples measure the application and not the path.
    application_limited_until: Option<SeqNo>,
    limits: LimitClock,
    /// The pace is that of the user's cap.
    is_capped: bool,
    intake: Intake,
    sizes: PacketSizes,
    pub(crate) retransmitted: u64,
    pub(crate) sent: u64,
    pub(crate) messages_dropped: u64,
}

/// Packets that may leave now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transmission {
    seq: SeqNo,
    packets: u32,
    again: bool,
}

impl Transmission {
    /// Whether its packets leave once more.
    pub(crate) const fn is_again(&self) -> bool {
        self.again
    }
}

/// The result of an acknowledgement.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// Packets newly acknowledged.
    pub(crate) packets: u32,
    /// Their payload bytes.
    pub(crate) bytes: u64,
    pub(crate) delivery: Option<DeliverySample>,
    /// Set if all reported losses have arrived: why they were missing.
    pub(crate) recovered: Option<Cause>,
}

impl Sender {
    /// For a connection whose first packet is `first` and whose peer has a flow window of `window` packets.
    pub(crate) fn new(
        first: SeqNo,
        payload_size: usize,
        destination: SocketId,
        window: u32,
        cap: u64,
        rng: Rng,
    ) -> Self {
        Self {
            buffer: SendBuffer::new(first, payload_size, destination),
            repairs: Repairs::new(first),
            persist: Persist::new(rng),
            pacer: Pacer::default(),
            next: first,
            confirmed: first,
            window_end: first.plus(window),
            cwnd: UNPROVEN_WINDOW,
            proven: false,
            lifetimes: Lifetimes::default(),
            sends_expired: false,
            withholding: None,
            drops: VecDeque::new(),
            deliveries: None,
            window_of_outstanding: false,
            delivery: Delivery::default(),
            filled: 0,
            application_limited_until: None,
            limits: LimitClock::default(),
            is_capped: false,
            intake: Intake::new(cap),
            sizes: PacketSizes::new(payload_size),
            retransmitted: 0,
            sent: 0,
            messages_dropped: 0,
        }
    }

    /// Packets become so many bytes longer before they leave. Nothing may have been written yet.
    pub(crate) fn set_protection_overhead(&mut self, overhead: ProtectionOverhead) {
        self.buffer.set_margin((overhead.data + overhead.control_surplus) as usize);
        self.sizes.set_control_surplus(overhead.control_surplus as usize);
    }

    /// Stores no payload, but sends as many zeros. Nothing may have been written yet.
    pub(crate) fn leave_blank(&mut self) {
        self.buffer.leave_blank();
    }

    /// Sets the length of a burst.
    pub(crate) fn set_burst_time(&mut self, time: Duration) {
        self.pacer.set_burst_time(time);
    }

    /// Follows what arrives, which the peer counts if `receipts` is set. Nothing may have been sent yet.
    pub(crate) fn follow_deliveries(&mut self, receipts: bool) {
        self.deliveries = Some(Box::new(Deliveries::new(self.next, receipts)));
    }

    /// Withholds a packet now and then, to find out whether the peer lies (attack B8). For streams alone.
    pub(crate) fn withhold_packets(&mut self, rng: Rng) {
        self.withholding = Some(Box::new(Withholding::new(self.next, rng)));
    }

    /// Sends as programs of libudt expect.
    pub(crate) fn imitate_libudt(&mut self) {
        self.buffer.keep_writes_whole();
        self.sends_expired = true;
    }

    // ---- what the application does ----

    /// Bytes that [`write`](Self::write) takes now.
    pub(crate) fn room(&self) -> u64 {
        let room = self.intake.room(self.load(), &self.pacer);
        let packet = self.buffer.payload_size() as u64;
        // Room for less than a packet would cut a write.
        if self.buffer.keeps_writes_whole() && self.intake.holds(packet) { room - room % packet } else { room }
    }

    /// Whether to wake a writer that found no room.
    pub(crate) fn has_room_again(&self) -> bool {
        self.intake.has_room_again(self.load(), &self.pacer)
    }

    fn load(&self) -> Load {
        Load {
            payload_size: self.buffer.payload_size(),
            held: self.buffer.packets(),
            in_flight: self.in_flight(),
            filling: Some(self.filled),
        }
    }

    pub(crate) fn write(&mut self, data: &[u8]) -> usize {
        let taken = data.len().min(usize::try_from(self.room()).unwrap_or(usize::MAX));
        self.buffer.write_stream(&data[..taken], self.next);
        taken
    }

    pub(crate) fn write_block(&mut self, mut block: Bytes) -> usize {
        block.truncate(usize::try_from(self.room()).unwrap_or(usize::MAX));
        let taken = block.len();
        self.buffer.write_block(block, self.next);
        taken
    }

    /// Ends the stream. It waits for no room, because it is one packet.
    pub(crate) fn write_end(&mut self) {
        self.buffer.write_end();
    }

    // ---- settings and timers ----

    /// The path is another one, so its rate of delivery is unknown.
    pub(crate) fn restart_path(&mut self, now: Instant) {
        if let Some(deliveries) = &mut self.deliveries {
            deliveries.restart_path(now);
        }
        self.delivery = Delivery::default();
        self.filled = 0;
    }

    /// The period may have become much shorter: what waits for the one before does so no longer.
    pub(crate) fn hasten(&mut self, now: Instant) {
        self.pacer.hasten(now);
    }

    /// Applies the controller's settings.
    ///
    /// If `send_period` is that of a cap, congestion control permits `capped` times that rate.
    pub(crate) fn apply(
        &mut self,
        control: &Control,
        send_period: SendPeriod,
        capped: Option<f64>,
        round_trip: Duration,
    ) {
        self.window_of_outstanding = control.window_of_outstanding;
        self.cwnd = control.cwnd.map_or(u32::MAX, |cwnd| cwnd.max(2.0) as u32);
        self.is_capped = capped.is_some();
        self.pacer.keep_cap(capped);
        self.pacer.set_period(send_period, round_trip);
        self.pacer.set_catch_up_pace(control.catch_up_pace);
        self.pacer.set_most_packets(control.burst);
        self.pacer.set_least_packets(control.least_burst);
        if let Some(end) = control.freeze_until {
            self.pacer.freeze_until(end);
        }
        // Acknowledgements of what waited behind a repair come faster than packets leave.
        let paced = send_period.packet_rate();
        let filling = |rate: PacketRate| paced.filter(|paced| *paced < rate).unwrap_or(rate).packets_in(round_trip);
        self.filled = self.delivery.rate().map_or(0, |rate| filling(rate) as u32);
    }

    /// Fires the timers. The peer was `heard` last. Returns whether packets in flight made no progress for long.
    pub(crate) fn handle_timeout(&mut self, now: Instant, round_trip: Duration, heard: Instant) -> bool {
        let mut stalls = false;
        if self.repairs.stalls(now)
            && let Some(flight) = self.flight()
        {
            if self.is_refused() {
                self.repairs.ask(self.buffer.first());
                self.persist.widen();
            } else {
                self.repairs.on_stall(flight, self.lifetimes.dropped(), (now, heard));
                stalls = true;
            }
            let time = self.time_to_next_look(round_trip);
            self.repairs.watch_anew(now, time);
        }
        self.persist.handle_timeout(now);
        self.repairs.handle_timeout(now);
        if let Some(packet) = self.withholding.as_mut().and_then(|withholding| withholding.handle_timeout(now)) {
            self.repairs.ask(packet);
        }
        stalls
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        let timers = earliest(self.repairs.deadline(), self.persist.deadline());
        let timers = earliest(timers, self.withholding.as_ref().and_then(|withholding| withholding.deadline()));
        if self.can_send_when_paced() { earliest(timers, self.pacer.deadline()) } else { timers }
    }

    /// Time without progress after which packets in flight are checked again.
    fn time_to_next_look(&mut self, round_trip_with_margin: Duration) -> Duration {
        if self.is_refused() {
            self.persist.interval(round_trip_with_margin)
        } else {
            self.repairs.timeout(round_trip_with_margin)
        }
    }

    /// The receiver has no room even for the oldest packet in flight. Packets sent now are probes, not data.
    fn is_refused(&self) -> bool {
        !self.window_end.is_after(self.buffer.first())
    }

    /// Whether only pacing holds back a packet.
    fn can_send_when_paced(&self) -> bool {
        if self.repairs.can_leave() || self.persist.wants_probe() {
            return true;
        }
        self.next.is_before(self.buffer.end()) && self.next.is_before(self.window_end) && self.window_room() > 0
    }

    /// New packets that the congestion window permits.
    fn window_room(&self) -> u32 {
        let (window, in_flight) = (self.congestion_window(), self.in_flight_of_next_size());
        if !self.window_of_outstanding {
            return window.saturating_sub(in_flight.saturating_sub(self.lifetimes.given_up()));
        }
        let outstanding = (self.outstanding_of_first_size() / self.scale_of_next()) as u32;
        let behind_gaps = MAX_BEHIND_GAPS / self.buffer.payload_size().max(1) as u32;
        window.saturating_sub(outstanding).min(window.saturating_add(behind_gaps).saturating_sub(in_flight))
    }

    /// Lost packets that the congestion window permits to leave again. Without progress the window does not hold: what it
    /// counts as in flight may be lost.
    fn repair_room(&self) -> u32 {
        let is_held = self.window_of_outstanding && self.deliveries.is_some() && !self.repairs.is_stalled();
        if is_held { self.congestion_window().saturating_sub(self.outstanding()) } else { u32::MAX }
    }

    fn congestion_window(&self) -> u32 {
        if self.proven { self.cwnd } else { self.cwnd.min(UNPROVEN_WINDOW) }
    }

    // ---- facts ----

    /// The packets in flight, if any.
    pub(crate) fn flight(&self) -> Option<SeqRange> {
        (self.in_flight() > 0).then(|| SeqRange::new(self.buffer.first(), self.next.minus(1)))
    }

    /// The number of packets in flight.
    pub(crate) fn in_flight(&self) -> u32 {
        self.next.distance_from(self.buffer.first()).unsigned_abs()
    }

    /// Whether silence of the receiver means loss.
    pub(crate) fn expects_answer(&self) -> bool {
        self.in_flight() > 0 && !self.is_refused()
    }

    /// Whether a full acknowledgement covers all data. Only then may the connection close, because libudt discards data
    /// that only light ones cover.
    pub(crate) fn is_flushed(&self) -> bool {
        self.buffer.packets() == 0 && self.confirmed == self.buffer.end()
    }

    /// Whether any data waits or is in flight.
    pub(crate) fn has_data(&self) -> bool {
        self.buffer.packets() > 0
    }

    pub(crate) const fn next(&self) -> SeqNo {
        self.next
    }

    pub(crate) fn flow_window(&self) -> u32 {
        SeqRange::new(self.buffer.first(), self.window_end.minus(1)).len()
    }

    pub(crate) const fn is_application_limited(&self) -> bool {
        self.application_limited_until.is_some()
    }

    pub(crate) const fn delivery_rate(&self) -> Option<PacketRate> {
        self.delivery.rate()
    }

    pub(crate) const fn buffer(&self) -> &SendBuffer {
        &self.buffer
    }

    pub(crate) const fn limits(&self) -> &LimitClock {
        &self.limits
    }

    pub(crate) fn memory(&self) -> usize {
        self.buffer.memory()
            + self.repairs.memory()
            + self.deliveries.as_ref().map_or(0, |deliveries| deliveries.memory())
    }

    /// Frees memory that is kept for reuse only. For idle connections.
    pub(crate) fn shrink(&mut self) {
        self.buffer.shrink();
        self.delivery.restart();
        if let Some(deliveries) = &mut self.deliveries {
            deliveries.shrink();
        }
    }
}

#[cfg(test)]
mod tests;
