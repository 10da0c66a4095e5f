//! The sending engine: keeps data until it is acknowledged, and sends it at the rate of the law.
//!
//! ```text
//! next packet   the lowest reported loss, else a new one while fewer than a window are unacknowledged
//! ACK           releases all before it
//! ERR           lists its packets
//! 1 s silence   lists everything unacknowledged (EXP)
//! ```

mod control;
mod repairs;
mod silence;

use farhaul_units::{Duration, Instant, SendPeriod, SeqNo};
use farhaul_wire::sabul::{HEADER_LEN, Record, encode_data_header};

use self::silence::Silence;
use super::numbering::Numbering;
use super::rate::RateControl;
use super::{Options, Repairs, STORED_HEADER, refused};
use crate::blast::engine::{self, Feedback, Setup, Transmission};
use crate::blast::send_buffer::SendBuffer;
use crate::blast::sending::{MAX_TRAIN_BYTES, SenderState};
use crate::repair_list::RepairList;
use farhaul_proto::consts::IP_UDP_HEADER;
use farhaul_proto::endpoint::limit::Limit;
use farhaul_proto::error::PeerMisbehaved;
use farhaul_proto::pacer::Pacer;
use farhaul_proto::stats::Stats;
use farhaul_proto::timer::Timer;

/// The sending end of one direction.
#[derive(Debug)]
pub struct Sender {
    state: SenderState,
    buffer: SendBuffer<STORED_HEADER>,
    numbering: Numbering,
    /// The newest packet is not full, and waits for more data.
    open: bool,
    receiver: Receiver,
    losses: RepairList,
    repairs: Repairs,
    window: u32,
    rate: RateControl,
    pacer: Pacer,
    /// Least period by the cap of the endpoint, µs.
    least_period: f64,
    /// The law's clock, and whether packets left since its last tick: it rests otherwise (departure D302).
    tick: Timer,
    has_sent: bool,
    arrivals: control::Arrivals,
    silence: Silence,
    /// How often everything unacknowledged counted as lost.
    timeouts: u64,
    /// The stream up to this offset is delivered by the word of the peer's connection. It may be ahead of acknowledgements.
    delivered: u64,
}

/// Whose receiver it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Receiver {
    /// Ours places payloads by their running length, whatever comes when.
    Ours,
    /// The original one. `after` is one after a packet that is not full while its acknowledgement is awaited.
    Original { after: Option<SeqNo> },
}

impl Sender {
    /// A sender that keeps at most `window` packets unacknowledged.
    pub fn new(options: &Options, setup: &Setup<'_>, window: u32) -> Self {
        let payload_size = setup.payload_size(HEADER_LEN);
        let mut pacer = Pacer::default();
        pacer.set_burst_time(setup.config.burst_time.min(farhaul_proto::pacer::BURST_TIME));
        let packet = setup.datagram as u32 + IP_UDP_HEADER;
        let least = setup.config.max_rate.map_or(0.0, |cap| SendPeriod::from_rate(cap, packet).as_micros());
        let mut sender = Self {
            state: SenderState::new(setup),
            buffer: SendBuffer::new(Numbering::FIRST, payload_size, setup),
            numbering: Numbering::new(),
            open: false,
            receiver: Receiver::Ours,
            losses: RepairList::new(Numbering::FIRST),
            repairs: options.repairs,
            window,
            rate: RateControl::new(options, setup.round_trip, setup.now),
            pacer,
            least_period: least,
            tick: Timer::stopped(),
            has_sent: false,
            arrivals: control::Arrivals::new(),
            silence: Silence::new(setup.round_trip),
            timeouts: 0,
            delivered: 0,
        };
        sender.apply_rate();
        sender
    }

    /// Packets that have left and are not acknowledged.
    pub fn in_flight(&self) -> u32 {
        self.buffer.in_flight().len()
    }

    /// Stream bytes that the peer has not acknowledged.
    pub const fn unacknowledged(&self) -> u64 {
        self.buffer.written - self.buffer.released
    }

    /// The present time from packet to packet, µs.
    pub(super) fn period(&self) -> f64 {
        self.rate.interval().max(self.least_period)
    }

    /// Whether the receiver has told of no arrival yet.
    pub const fn is_unheard(&self) -> bool {
        self.silence.is_unheard()
    }

    /// Whether packets have left for so long without any sign of an arrival that they arrive nowhere.
    pub fn never_reached(&self, now: Instant) -> bool {
        self.silence.never_reached(now)
    }

    /// The receiver said in the session's opening how far data may be ahead.
    pub fn set_window(&mut self, window: u32) {
        self.window = window;
    }

    /// Avoids what makes the original receiver write wrong bytes. Nothing follows a packet that is not full before that is
    /// acknowledged: the receiver moves bytes when such a packet arrives late, and moves some of them wrongly (departure
    /// D311). And the newest full packet follows each repair (departure D345).
    pub fn suit_original_receiver(&mut self) {
        self.receiver = Receiver::Original { after: None };
    }

    /// Whether [`flush`](engine::Sender::flush) would let a packet leave.
    pub fn awaits_flush(&self) -> bool {
        self.open && !matches!(self.receiver, Receiver::Original { after: Some(_) })
    }

    /// Nothing follows at all.
    pub fn finish(&mut self) {
        self.open = false;
    }

    fn apply_rate(&mut self) {
        self.pacer.set_period(SendPeriod::from_micros(self.period()), self.state.round_trip);
    }

    // ---- what leaves ----

    /// New packets that wait to leave.
    fn waiting(&self) -> u32 {
        let waiting = self.buffer.store.end().distance_from(self.buffer.next).unsigned_abs();
        waiting.saturating_sub(self.open.into())
    }

    /// New packets that the window permits, and a packet that must stay alone.
    fn permitted(&self) -> u32 {
        let window = self.window.saturating_sub(self.in_flight());
        match self.receiver {
            Receiver::Original { after: Some(after) } => {
                window.min(u32::try_from(after.distance_from(self.buffer.next)).unwrap_or(0))
            }
            _ => window,
        }
    }

    fn note_nothing_to_send(&mut self, now: Instant) {
        self.state.rest(now, self.in_flight() == 0);
        self.arrivals.note_idle();
    }

    /// Packets of one train.
    fn train(&self) -> u32 {
        (MAX_TRAIN_BYTES / (self.buffer.store.payload_size() + STORED_HEADER)).max(1) as u32
    }

    /// Packets left. `first` is whether none was in flight before.
    fn on_left(&mut self, now: Instant, plan: Transmission, first: bool) {
        self.state.on_sent(plan);
        self.pacer.on_sent(now, plan.packets);
        self.rate.on_sent(now, plan.packets);
        self.silence.on_sent(now, first);
        self.has_sent = true;
        if let Some(clock) = self.rate.clock() {
            self.tick.start(now, clock);
        }
        self.apply_rate();
    }
}

impl engine::Sender for Sender {
    fn state_mut(&mut self) -> &mut SenderState {
        &mut self.state
    }

    fn room(&self) -> usize {
        self.buffer.room(None, &self.pacer)
    }

    fn write(&mut self, _now: Instant, data: &[u8]) -> usize {
        let taken = data.len().min(self.room());
        if taken == 0 {
            return 0;
        }
        // A short packet that has not left takes the bytes.
        if let Receiver::Original { after } = &mut self.receiver {
            *after = after.filter(|after| !after.is_after(self.buffer.next));
        }
        let numbering = self.numbering;
        self.buffer.write(&data[..taken], self.buffer.next, |seq, header| {
            header.copy_from_slice(&encode_data_header(numbering.wire(seq)));
        });
        self.open = !self.buffer.store.is_full(self.buffer.store.end().minus(1));
        taken
    }

    fn flush(&mut self, _now: Instant) {
        if !self.awaits_flush() {
            return;
        }
        self.open = false;
        if let Receiver::Original { after } = &mut self.receiver {
            *after = Some(self.buffer.store.end());
        }
    }

    fn is_delivered(&self) -> bool {
        self.buffer.is_delivered() || self.delivered == self.buffer.written
    }

    fn handle_control(&mut self, now: Instant, bytes: &[u8]) -> Result<(), PeerMisbehaved> {
        engine::take_records(self, now, bytes)?;
        self.apply_rate();
        Ok(())
    }

    fn handle_record(&mut self, now: Instant, bytes: &[u8]) -> Result<Option<usize>, PeerMisbehaved> {
        let Some((record, length)) = Record::decode(bytes).map_err(refused)? else { return Ok(None) };
        self.on_record(now, record)?;
        Ok(Some(length))
    }

    fn on_delivered(&mut self, now: Instant, offset: u64) {
        if offset > self.delivered && offset <= self.buffer.written {
            self.delivered = offset;
            self.silence.on_progress(now);
        }
        if self.delivered == self.buffer.written {
            self.acknowledge(self.buffer.next);
        }
    }

    fn on_feedback(&mut self, now: Instant, feedback: &Feedback) {
        self.silence.on_heard(now, feedback.datagrams > 0);
        if self.arrivals.has_no_feedback() {
            self.rate.forget_arrivals();
        }
        let (arrivals, busy) = self.arrivals.on_feedback(feedback);
        self.rate.on_arrivals(now, &arrivals, busy, self.buffer.next);
        self.apply_rate();
    }

    fn set_round_trip(&mut self, round_trip: Duration) {
        self.state.round_trip = round_trip;
        self.rate.set_round_trip(round_trip);
        self.silence.set_round_trip(round_trip);
        self.apply_rate();
    }

    fn plan(&mut self, now: Instant) -> Option<Transmission> {
        let (waiting, permitted) = (self.waiting(), self.permitted());
        if self.losses.is_empty() {
            if waiting == 0 {
                self.note_nothing_to_send(now);
                return None;
            }
            if permitted == 0 {
                self.pacer.hold();
                self.state.limits.set(Limit::FlowWindow, now);
                return None;
            }
        }
        let trusted = self.silence.allowance(now, self.in_flight() > 0);
        let allowance = self.pacer.allowance(now).min(self.train()).min(trusted);
        if allowance == 0 {
            self.state.limits.set(Limit::Congestion, now);
            return None;
        }
        if let Some(first) = self.losses.first() {
            // A repair and its follower leave together.
            let least = if self.receiver == Receiver::Ours { 1 } else { 2 };
            let (packets, _) = self.visit_losses(allowance.max(least).min(trusted), |_| {});
            return (packets > 0).then_some(Transmission { first: first.value().into(), packets, again: true });
        }
        self.buffer.plan_new(allowance.min(waiting).min(permitted))
    }

    fn emit<'a>(&'a mut self, now: Instant, plan: Transmission, scratch: &'a mut Vec<u8>) -> Option<(usize, &'a [u8])> {
        if plan.again {
            let (size, packets, bytes) = self.emit_losses(now, plan.packets, scratch)?;
            self.on_left(now, Transmission { packets, ..plan }, false);
            return Some((size, bytes));
        }
        let first = self.buffer.next;
        self.buffer.next = first.plus(plan.packets);
        self.rate.on_unacknowledged(self.in_flight());
        self.on_left(now, plan, first == self.buffer.store.first());
        self.buffer.adjacent(first, plan.packets, scratch)
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.tick.fires(now) && std::mem::take(&mut self.has_sent) {
            self.rate.on_tick();
            self.apply_rate();
            if let Some(clock) = self.rate.clock() {
                self.tick.set(now + clock);
            }
        }
        if self.silence.expires(now, self.in_flight() > 0) {
            self.expire();
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let waits = self.waiting() > 0 && self.permitted() > 0;
        let next_packet = self.pacer.deadline().filter(|_| waits || !self.losses.is_empty());
        let next_packet = next_packet.map(|at| at.max(self.silence.not_before()));
        [next_packet, self.tick.deadline(), self.silence.deadline()].into_iter().flatten().min()
    }

    fn on_suspended(&mut self, now: Instant, _gap: Duration) {
        self.silence.on_heard(now, false);
        self.silence.on_progress(now);
        self.tick.stop();
    }

    fn fill_stats(&self, now: Instant, stats: &mut Stats) {
        self.state.fill_stats(now, stats);
        self.buffer.fill_stats(None, &self.pacer, stats);
        stats.totals.timeouts = self.timeouts;
        stats.totals.bytes_acked = self.buffer.released.max(self.delivered);
        stats.send_period = SendPeriod::from_micros(self.period());
        stats.flow_window = self.window;
        stats.rtt = self.state.round_trip;
        stats.memory += self.losses.memory() as u64;
    }
}
