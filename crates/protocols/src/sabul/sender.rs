//! The sending engine: keeps data until it is acknowledged, and sends it at the rate of the law.
//!
//! ```text
//! next packet   the lowest reported loss, else a new one while fewer than a window are unacknowledged
//! ACK           releases all before it
//! ERR           lists its packets
//! 1 s silence   lists everything unacknowledged (EXP)
//! ```

mod control;
mod silence;

use farhaul_units::{Duration, Instant, SendPeriod, SeqNo, SeqRange};
use farhaul_wire::blast::TAG_LEN;
use farhaul_wire::sabul::{HEADER_LEN, encode_data_header};

use self::silence::Silence;
use super::numbering::Numbering;
use super::rate::RateControl;
use super::{Options, Repairs, STORED_HEADER};
use crate::blast::engine::{self, Departure, Feedback, Prefix, Setup};
use crate::repair_list::RepairList;
use farhaul_proto::buffer::{PacketStore, Run};
use farhaul_proto::endpoint::limit::{Limit, LimitClock};
use farhaul_proto::error::PeerMisbehaved;
use farhaul_proto::intake::{Intake, Load};
use farhaul_proto::pacer::Pacer;
use farhaul_proto::stats::Stats;
use farhaul_proto::timer::Timer;

/// Most bytes of one train of datagrams: the largest UDP payload over IPv4.
const MAX_TRAIN_BYTES: usize = 65_507;
/// Bytes of IPv4 and UDP headers per datagram, which count into a rate cap.
const IP_UDP_HEADER: u32 = 28;

/// The sending end of one direction.
#[derive(Debug)]
pub(crate) struct Sender {
    prefix: Prefix,
    store: PacketStore<STORED_HEADER>,
    numbering: Numbering,
    /// The next new packet.
    next: SeqNo,
    /// The newest packet is not full, and waits for more data.
    open: bool,
    short_packets: ShortPackets,
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
    round_trip: Duration,
    /// Bytes of a record that is not complete.
    records: Vec<u8>,
    limits: LimitClock,
    intake: Intake,
    /// Stream offsets: written, acknowledged, and delivered by the word of the peer's connection.
    written: u64,
    acked: u64,
    delivered: u64,
    counts: Counts,
}

/// Where packets that are not full may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ShortPackets {
    /// Anywhere. The receiver places payloads by their running length.
    Anywhere,
    /// Where nothing follows before they are acknowledged. `after` is one after such a packet while that is awaited.
    Alone { after: Option<SeqNo> },
}

#[derive(Debug, Default)]
struct Counts {
    sent: u64,
    again: u64,
    lost: u64,
    acks: u64,
    reports: u64,
    timeouts: u64,
}

impl Sender {
    pub(super) fn new(options: &Options, setup: &Setup<'_>, window: u32) -> Self {
        let payload_size = setup.datagram - setup.prefix.len() - HEADER_LEN;
        let mut pacer = Pacer::default();
        pacer.set_burst_time(setup.config.burst_time.min(farhaul_proto::pacer::BURST_TIME));
        let packet = setup.datagram as u32 + IP_UDP_HEADER;
        let least = setup.config.max_rate.map_or(0.0, |cap| SendPeriod::from_rate(cap, packet).as_micros());
        let mut sender = Self {
            prefix: setup.prefix,
            store: PacketStore::new(Numbering::FIRST, payload_size),
            numbering: Numbering::new(),
            next: Numbering::FIRST,
            open: false,
            short_packets: ShortPackets::Anywhere,
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
            round_trip: setup.round_trip,
            records: Vec::new(),
            limits: LimitClock::default(),
            intake: Intake::new(setup.config.send_buffer),
            written: 0,
            acked: 0,
            delivered: 0,
            counts: Counts::default(),
        };
        sender.apply_rate();
        sender
    }

    /// Packets that have left and are not acknowledged.
    pub(super) fn in_flight(&self) -> u32 {
        self.next.distance_from(self.store.first()).unsigned_abs()
    }

    /// Stream bytes that the peer has not acknowledged.
    pub(super) const fn unacknowledged(&self) -> u64 {
        self.written - self.acked
    }

    /// The present time from packet to packet, µs.
    pub(super) fn period(&self) -> f64 {
        self.rate.interval().max(self.least_period)
    }

    /// The last signs of the receiver.
    pub(super) const fn silence(&self) -> &Silence {
        &self.silence
    }

    /// The receiver said in the session's opening how far data may be ahead.
    pub(super) fn set_window(&mut self, window: u32) {
        self.window = window;
    }

    /// Nothing follows a packet that is not full before that is acknowledged. The original receiver moves bytes when such a
    /// packet arrives late, and moves some of them wrongly (departure D311).
    pub(super) fn keep_short_packets_alone(&mut self) {
        self.short_packets = ShortPackets::Alone { after: None };
    }

    /// Whether [`flush`](engine::Sender::flush) would let a packet leave.
    pub(super) fn awaits_flush(&self) -> bool {
        self.open && !matches!(self.short_packets, ShortPackets::Alone { after: Some(_) })
    }

    /// Nothing follows at all.
    pub(super) fn finish(&mut self) {
        self.open = false;
    }

    fn apply_rate(&mut self) {
        self.pacer.set_period(SendPeriod::from_micros(self.period()), self.round_trip);
    }

    fn load(&self) -> Load {
        let (payload_size, held) = (self.store.payload_size(), self.store.packets());
        Load { payload_size, held, in_flight: self.in_flight(), filling: None }
    }

    // ---- what leaves ----

    /// New packets that wait to leave.
    fn waiting(&self) -> u32 {
        let waiting = self.store.end().distance_from(self.next).unsigned_abs();
        waiting.saturating_sub(self.open.into())
    }

    /// New packets that the window permits, and a packet that must stay alone.
    fn permitted(&self) -> u32 {
        let window = self.window.saturating_sub(self.in_flight());
        match self.short_packets {
            ShortPackets::Alone { after: Some(after) } => {
                window.min(u32::try_from(after.distance_from(self.next)).unwrap_or(0))
            }
            _ => window,
        }
    }

    fn note_nothing_to_send(&mut self, now: Instant) {
        let limit = if self.in_flight() == 0 { Limit::Idle } else { Limit::Application };
        self.limits.set(limit, now);
        self.arrivals.note_idle();
    }

    /// Packets of one train.
    fn train(&self) -> u32 {
        (MAX_TRAIN_BYTES / (self.store.payload_size() + STORED_HEADER)).max(1) as u32
    }

    /// Calls `visit` with the bytes of the lowest losses, of which all but the last are full. Returns their number, at
    /// most `most`.
    fn visit_losses(&mut self, most: u32, mut visit: impl FnMut(SeqNo, &[u8])) -> u32 {
        let skip = TAG_LEN - self.prefix.len();
        let (mut at, mut packets) = (self.store.first(), 0);
        while packets < most
            && let Some(seq) = self.losses.next_after(at, self.next)
            && let Some(run) = self.store.run(seq, 1)
        {
            visit(seq, &run.bytes[skip..]);
            packets += 1;
            at = seq.next();
            if run.bytes.len() < run.segment_size {
                break;
            }
        }
        packets
    }

    fn emit_losses<'a>(&mut self, now: Instant, most: u32, scratch: &'a mut Vec<u8>) -> Option<(usize, u32, &'a [u8])> {
        scratch.clear();
        let mut last = None;
        let packets = self.visit_losses(most, |seq, bytes| {
            scratch.extend_from_slice(bytes);
            last = Some(seq);
        });
        // No loss before the last one is left.
        let range = SeqRange::new(self.losses.first()?, last?);
        let mut at = range.first;
        while let Some(seq) = self.losses.next_after(at, range.last.next()) {
            let run = self.losses.run_length(seq, SeqRange::new(seq, range.last).len());
            self.losses.served(SeqRange::new(seq, seq.plus(run - 1)), now, self.round_trip);
            at = seq.plus(run);
        }
        Some((self.store.payload_size() + HEADER_LEN + self.prefix.len(), packets, scratch))
    }

    /// Packets left. `first` is whether none was in flight before.
    fn on_left(&mut self, now: Instant, packets: u32, first: bool) {
        self.counts.sent += u64::from(packets);
        self.pacer.on_sent(now, packets);
        self.rate.on_sent(now, packets);
        self.silence.on_sent(now, first);
        self.has_sent = true;
        if let Some(clock) = self.rate.clock() {
            self.tick.start(now, clock);
        }
        self.apply_rate();
    }
}

/// The datagrams of a run without the room for a tag, gathered in `scratch`.
fn without_tags<'a>(run: &Run<'_>, scratch: &'a mut Vec<u8>) -> &'a [u8] {
    scratch.clear();
    for datagram in run.bytes.chunks(run.segment_size) {
        scratch.extend_from_slice(&datagram[TAG_LEN..]);
    }
    scratch
}

impl engine::Sender for Sender {
    fn room(&self) -> usize {
        usize::try_from(self.intake.room(self.load(), &self.pacer)).unwrap_or(usize::MAX)
    }

    fn write(&mut self, _now: Instant, data: &[u8]) -> usize {
        let taken = data.len().min(self.room());
        if taken == 0 {
            return 0;
        }
        // A short packet that has not left takes the bytes.
        if let ShortPackets::Alone { after } = &mut self.short_packets {
            *after = after.filter(|after| !after.is_after(self.next));
        }
        let (numbering, prefix) = (self.numbering, self.prefix.bytes());
        self.store.write(&data[..taken], self.next, |seq, head| {
            head[..TAG_LEN].copy_from_slice(&prefix);
            head[TAG_LEN..].copy_from_slice(&encode_data_header(numbering.wire(seq)));
        });
        self.written += taken as u64;
        let newest = self.store.run(self.store.end().minus(1), 1);
        self.open = newest.is_some_and(|run| run.bytes.len() < run.segment_size);
        taken
    }

    fn flush(&mut self, _now: Instant) {
        if !self.awaits_flush() {
            return;
        }
        self.open = false;
        if let ShortPackets::Alone { after } = &mut self.short_packets {
            *after = Some(self.store.end());
        }
    }

    fn is_delivered(&self) -> bool {
        self.acked == self.written || self.delivered == self.written
    }

    fn handle_control(&mut self, now: Instant, bytes: &[u8]) -> Result<(), PeerMisbehaved> {
        self.handle_records(now, bytes)
    }

    fn poll_control(&mut self, _now: Instant, _out: &mut Vec<u8>) {}

    fn on_delivered(&mut self, now: Instant, offset: u64) {
        if offset > self.delivered && offset <= self.written {
            self.delivered = offset;
            self.silence.on_progress(now);
        }
        if self.delivered == self.written {
            self.acknowledge(self.next);
        }
    }

    fn on_feedback(&mut self, now: Instant, feedback: &Feedback) {
        self.silence.on_heard(now, feedback.datagrams > 0);
        if self.arrivals.has_no_feedback() {
            self.rate.forget_arrivals();
        }
        let (arrivals, busy) = self.arrivals.on_feedback(feedback);
        self.rate.on_arrivals(now, &arrivals, busy, self.next);
        self.apply_rate();
    }

    fn set_round_trip(&mut self, round_trip: Duration) {
        self.round_trip = round_trip;
        self.rate.set_round_trip(round_trip);
        self.silence.set_round_trip(round_trip);
        self.apply_rate();
    }

    fn plan(&mut self, now: Instant) -> Option<Departure> {
        let (waiting, permitted) = (self.waiting(), self.permitted());
        if self.losses.is_empty() {
            if waiting == 0 {
                self.note_nothing_to_send(now);
                return None;
            }
            if permitted == 0 {
                self.pacer.hold();
                self.limits.set(Limit::FlowWindow, now);
                return None;
            }
        }
        let allowance =
            self.pacer.allowance(now).min(self.train()).min(self.silence.allowance(now, self.in_flight() > 0));
        if allowance == 0 {
            self.limits.set(Limit::Congestion, now);
            return None;
        }
        if let Some(first) = self.losses.first() {
            let packets = self.visit_losses(allowance, |_, _| {});
            return (packets > 0).then_some(Departure { first: first.value().into(), packets, again: true });
        }
        let packets = self.store.run(self.next, allowance.min(waiting).min(permitted))?.packets;
        Some(Departure { first: self.next.value().into(), packets, again: false })
    }

    fn emit<'a>(&'a mut self, now: Instant, plan: Departure, scratch: &'a mut Vec<u8>) -> Option<(usize, &'a [u8])> {
        if plan.again {
            let (size, packets, bytes) = self.emit_losses(now, plan.packets, scratch)?;
            self.counts.again += u64::from(packets);
            self.on_left(now, packets, false);
            return Some((size, bytes));
        }
        let first = self.next;
        let packets = self.store.run(first, plan.packets)?.packets;
        self.next = first.plus(packets);
        self.rate.on_unacknowledged(self.in_flight());
        self.on_left(now, packets, first == self.store.first());
        let run = self.store.run(first, packets)?;
        Some(match self.prefix {
            Prefix::Tag(_) => (run.segment_size, &*run.bytes),
            Prefix::None => (run.segment_size - TAG_LEN, without_tags(&run, scratch)),
        })
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
        let departure = self.pacer.deadline().filter(|_| waits || !self.losses.is_empty());
        let departure = departure.map(|at| at.max(self.silence.not_before()));
        [departure, self.tick.deadline(), self.silence.deadline()].into_iter().flatten().min()
    }

    fn on_suspended(&mut self, now: Instant, _gap: Duration) {
        self.silence.on_heard(now, false);
        self.silence.on_progress(now);
        self.tick.stop();
    }

    fn fill_stats(&self, now: Instant, stats: &mut Stats) {
        let totals = &mut stats.totals;
        totals.packets_sent = self.counts.sent;
        totals.packets_retransmitted = self.counts.again;
        totals.packets_lost_sending = self.counts.lost;
        totals.acks_received = self.counts.acks;
        totals.naks_received = self.counts.reports;
        totals.timeouts = self.counts.timeouts;
        totals.bytes_written = self.written;
        totals.bytes_acked = self.acked.max(self.delivered);
        self.limits.fill(now, totals);
        stats.send_period = SendPeriod::from_micros(self.period());
        stats.flow_window = self.window;
        stats.in_flight = self.in_flight();
        stats.rtt = self.round_trip;
        stats.send_buffer_free = self.room() as u64;
        stats.send_buffer_packets = self.store.packets();
        stats.payload_size = self.store.payload_size() as u32;
        stats.memory += (self.store.memory() + self.losses.memory()) as u64;
    }
}
