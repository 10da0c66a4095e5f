//! The receiving engine: stores data, acknowledges it, and reports losses.
//!
//! ```text
//! datagram   beyond the window of the last ACK: drop it and acknowledge;  a gap before it: ERR at once
//! 100 ms     ACK if it moved; also after 250 packets
//! 20 ms      ERR of losses that were not reported for 1.5 RTT, at least 20 ms
//! SYN        packets that arrived
//! ```
//!
//! Timers rest while nothing arrives and nothing is missing (departure D309).

use farhaul_units::{Duration, Instant, MsgNo, SeqNo, SeqRange};
use farhaul_wire::sabul::{MAX_LOSSES, Record, encode_losses, split_data};
use farhaul_wire::udt4::{MessageField, Position};

use super::numbering::Numbering;
use super::repair_time::RepairTime;
use super::reports::Reports;
use super::{Repairs, fault};
use crate::blast::engine::{self, Setup};
use farhaul_proto::buffer::{Insert, RecvBuffer};
use farhaul_proto::error::{ControlFault, PeerMisbehaved};
use farhaul_proto::stats::Stats;
use farhaul_proto::timer::Timer;

/// Time between two acknowledgements.
const ACK_INTERVAL: Duration = Duration::from_millis(100);
/// Packets after which an acknowledgement leaves at once: the pieces in which the original's `recvfile` reads.
const ACK_PACKETS: u32 = 250;
/// A reader that takes nothing holds acknowledgements back. Each so many intervals the last one is repeated, so that
/// the sender does not take silence for loss of everything (departure D310).
const REPEAT_AFTER: u32 = 5;
/// Time between two reports.
const ERR_INTERVAL: Duration = Duration::from_millis(20);
/// Losses are reported again after 3/2 RTT, and at least after one interval.
const REPEAT: (u32, u32) = (3, 2);
/// Most losses of the reports of one turn, 256 KiB: as many repair 39 Gbit/s, since the next turn is 20 ms later. Without
/// a limit, one datagram at the end of a window of 2^20 packets would cost 4 MB of reports at each turn (attack C3).
const MOST_LOSSES: u32 = 1 << 16;
/// SYN records leave for so long after the last packet.
const SYN_LINGER: Duration = Duration::from_secs(1);
/// Stored packets carry no message. The buffer wants a field.
const FIELD: MessageField = MessageField { position: Position::Only, in_order: false, message: MsgNo::FIRST };

/// The rules of the peer's sender.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// Packets that it sends beyond the last acknowledgement.
    pub(super) window: u32,
    /// Time between two SYN records.
    pub(super) syn: Duration,
    pub(super) repairs: Repairs,
}

/// The receiving end of one direction.
#[derive(Debug)]
pub(crate) struct Receiver {
    rules: Rules,
    buffer: RecvBuffer,
    numbering: Numbering,
    payload_size: usize,
    /// Packets that may wait for the reader. Acknowledgements stop there.
    most_unread: u32,
    reports: Reports,
    repair_time: RepairTime,
    /// The last acknowledgement.
    acked: SeqNo,
    ack_due: bool,
    ack_timer: Timer,
    /// Intervals in which the reader held acknowledgements back.
    held: u32,
    err_timer: Timer,
    err_due: bool,
    syn_timer: Timer,
    syn_due: bool,
    /// Packets since the last SYN record, and when the last one came.
    since_syn: u32,
    last_arrival: Instant,
    round_trip: Duration,
    /// Losses of one record.
    due: Vec<SeqRange>,
    bytes_read: u64,
    counts: Counts,
}

#[derive(Debug, Default)]
struct Counts {
    packets: u64,
    duplicates: u64,
    invalid: u64,
    lost: u64,
    bytes: u64,
    acks: u64,
    reports: u64,
}

impl Receiver {
    pub(super) fn new(setup: &Setup<'_>, rules: Rules) -> Self {
        let payload_size = setup.datagram - setup.prefix.len() - farhaul_wire::sabul::HEADER_LEN;
        let by_memory = setup.config.recv_buffer / payload_size as u64;
        let most_unread =
            u32::try_from(by_memory).unwrap_or(u32::MAX).clamp(1, farhaul_proto::seq_set::MAX_CAPACITY / 2);
        Self {
            rules,
            buffer: RecvBuffer::new(Numbering::FIRST, payload_size, most_unread.saturating_add(rules.window)),
            numbering: Numbering::new(),
            payload_size,
            most_unread,
            reports: Reports::default(),
            repair_time: RepairTime::default(),
            acked: Numbering::FIRST,
            ack_due: false,
            ack_timer: Timer::stopped(),
            held: 0,
            err_timer: Timer::stopped(),
            err_due: false,
            syn_timer: Timer::stopped(),
            syn_due: false,
            since_syn: 0,
            last_arrival: setup.now,
            round_trip: setup.round_trip,
            due: Vec::new(),
            bytes_read: 0,
            counts: Counts::default(),
        }
    }

    /// Whether a packet is known to be missing.
    pub(super) fn has_gap(&self) -> bool {
        !self.buffer.is_contiguous()
    }

    /// Packets known to be missing.
    pub(super) fn missing(&self) -> u64 {
        let all = SeqRange::new(self.buffer.ack_point(), self.buffer.end().minus(1));
        self.buffer.missing(all).map(|gap| u64::from(gap.len())).sum()
    }

    /// Whether everything that arrived has been acknowledged.
    pub(super) fn is_acknowledged(&self) -> bool {
        self.acked == self.buffer.end()
    }

    /// The acknowledgement that holds now: the first missing packet, as far as the reader permits.
    fn ack_point(&self) -> SeqNo {
        self.buffer.ack_point().earlier(self.buffer.next_to_read().plus(self.most_unread))
    }

    /// Time after which a loss is reported again.
    fn repeat(&self) -> Duration {
        let usual = match self.rules.repairs {
            Repairs::Unlimited => self.round_trip.max(self.repair_time.estimate()),
            Repairs::Original => self.round_trip,
        };
        (usual * REPEAT.0 / REPEAT.1).max(ERR_INTERVAL)
    }

    /// Notes the gap before an arriving packet.
    fn note_gap(&mut self, end: SeqNo, seq: SeqNo) {
        if seq.is_after(end) {
            let gap = SeqRange::new(end, seq.minus(1));
            self.counts.lost += u64::from(gap.len());
            self.reports.found(gap);
        }
    }

    // ---- records ----

    fn poll_ack(&mut self, now: Instant, out: &mut Vec<u8>) {
        if !std::mem::take(&mut self.ack_due) {
            return;
        }
        let point = self.ack_point();
        if point.is_after(self.acked) {
            (self.acked, self.held) = (point, 0);
        } else if self.held < REPEAT_AFTER {
            return;
        } else {
            self.held = 0;
        }
        Record::Ack(self.numbering.wire(self.acked)).encode(out);
        self.counts.acks += 1;
        self.ack_timer = if self.acked == self.buffer.end() { Timer::stopped() } else { Timer::at(now + ACK_INTERVAL) };
    }

    fn poll_syn(&mut self, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.syn_due) {
            Record::Syn(std::mem::take(&mut self.since_syn)).encode(out);
        }
    }

    fn poll_reports(&mut self, now: Instant, out: &mut Vec<u8>) {
        let mut room = MOST_LOSSES;
        while room > 0
            && let Some(gap) = self.reports.take_fresh(now)
        {
            self.due.clear();
            let most = self.most_losses().min(room);
            room -= most - self.collect(gap, most);
            if let Some(first) = self.due.first() {
                self.repair_time.on_report(now, first.first);
            }
            self.report(out);
            self.err_timer.start(now, ERR_INTERVAL);
        }
        if std::mem::take(&mut self.err_due) {
            let buffer = &self.buffer;
            self.reports.retain(|region| buffer.missing(region).next().is_some());
            self.due.clear();
            let mut room = self.most_losses();
            while room > 0
                && let Some(region) = self.reports.take_due(now, self.repeat())
            {
                room = self.collect(region, room);
            }
            self.report(out);
            self.schedule_reports(now);
        }
    }

    /// Losses of one report.
    const fn most_losses(&self) -> u32 {
        match self.rules.repairs {
            Repairs::Unlimited => MOST_LOSSES,
            Repairs::Original => MAX_LOSSES as u32,
        }
    }

    /// Adds the losses of a region, which was taken last, to the report. Returns the room that is left. Losses without
    /// room are due at the next time.
    fn collect(&mut self, region: SeqRange, mut room: u32) -> u32 {
        for gap in self.buffer.missing(region) {
            let taken = gap.len().min(room);
            if taken > 0 {
                self.due.push(SeqRange::new(gap.first, gap.first.plus(taken - 1)));
            }
            room -= taken;
            if taken < gap.len() {
                self.reports.put_back(gap.first.plus(taken));
                break;
            }
        }
        room
    }

    /// A report of the losses in `due`.
    fn report(&mut self, out: &mut Vec<u8>) {
        let numbering = self.numbering;
        let losses = self.due.iter().flat_map(|gap| (0..gap.len()).map(|at| numbering.wire(gap.first.plus(at))));
        let mut losses = losses.peekable();
        let mut continues = false;
        while losses.peek().is_some() {
            encode_losses(losses.by_ref(), continues, out);
            self.counts.reports += 1;
            if self.rules.repairs == Repairs::Original {
                return;
            }
            continues = true;
        }
    }

    fn schedule_reports(&mut self, now: Instant) {
        if let Some(due) = self.reports.next_due(self.repeat()) {
            self.err_timer.set(due.max(now + ERR_INTERVAL));
        }
    }
}

impl engine::Receiver for Receiver {
    fn handle_datagram(&mut self, now: Instant, datagram: &[u8]) -> bool {
        let packet = split_data(datagram).ok().filter(|(_, payload)| payload.len() <= self.payload_size);
        let Some((number, payload)) = packet else {
            self.counts.invalid += 1;
            return false;
        };
        let (seq, end) = (self.numbering.near(number), self.buffer.end());
        if seq.distance_from(self.acked) >= self.rules.window.cast_signed() {
            self.counts.invalid += 1;
            self.ack_due = true;
            return false;
        }
        self.counts.packets += 1;
        self.since_syn = self.since_syn.saturating_add(1);
        self.last_arrival = now;
        match self.buffer.insert(seq, FIELD, payload) {
            Insert::New => {
                self.counts.bytes += payload.len() as u64;
                self.repair_time.on_arrival(now, seq);
                self.note_gap(end, seq);
            }
            Insert::Duplicate => self.counts.duplicates += 1,
            Insert::Rejected => self.counts.invalid += 1,
        }
        true
    }

    fn end_batch(&mut self, now: Instant) {
        self.numbering.advance(self.buffer.ack_point());
        let unacknowledged = self.ack_point().distance_from(self.acked);
        if unacknowledged >= ACK_PACKETS.cast_signed() {
            self.ack_due = true;
        }
        if self.acked != self.buffer.end() {
            self.ack_timer.start(now, ACK_INTERVAL);
        }
        self.syn_timer.start(now, self.rules.syn);
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.ack_timer.fires(now) {
            self.ack_due = true;
            if !self.ack_point().is_after(self.acked) && self.buffer.ack_point().is_after(self.acked) {
                self.held += 1;
            }
            if self.acked != self.buffer.end() {
                self.ack_timer.set(now + ACK_INTERVAL);
            }
        }
        self.err_due |= self.err_timer.fires(now);
        if self.syn_timer.fires(now) {
            self.syn_due = true;
            if now - self.last_arrival < SYN_LINGER.max(self.rules.syn * 2) {
                self.syn_timer.set(now + self.rules.syn);
            }
        }
    }

    fn deadline(&self) -> Option<Instant> {
        [self.ack_timer, self.syn_timer, self.err_timer].into_iter().filter_map(Timer::deadline).min()
    }

    fn on_suspended(&mut self, _now: Instant, gap: Duration) {
        self.last_arrival += gap;
        self.reports.expire();
    }

    fn handle_control(&mut self, _now: Instant, bytes: &[u8]) -> Result<(), PeerMisbehaved> {
        // The sender says nothing by the channel.
        if bytes.is_empty() { Ok(()) } else { Err(fault(ControlFault::OutOfTurn("a record of the sender"))) }
    }

    fn poll_control(&mut self, now: Instant, out: &mut Vec<u8>) {
        self.poll_ack(now, out);
        self.poll_syn(out);
        self.poll_reports(now, out);
    }

    fn set_round_trip(&mut self, round_trip: Duration) {
        self.round_trip = round_trip;
    }

    fn available(&self) -> usize {
        usize::try_from(self.buffer.available()).unwrap_or(usize::MAX)
    }

    fn read(&mut self, out: &mut [u8]) -> usize {
        let read = self.buffer.read(out);
        self.bytes_read += read as u64;
        read
    }

    fn delivered(&self) -> u64 {
        self.bytes_read + self.buffer.available()
    }

    fn fill_stats(&self, _now: Instant, stats: &mut Stats) {
        let totals = &mut stats.totals;
        totals.packets_received = self.counts.packets;
        totals.packets_lost_receiving = self.counts.lost;
        totals.packets_duplicate = self.counts.duplicates;
        totals.packets_invalid += self.counts.invalid;
        totals.acks_sent = self.counts.acks;
        totals.naks_sent = self.counts.reports;
        totals.bytes_received = self.counts.bytes;
        totals.bytes_read = self.bytes_read;
        let unread = self.buffer.readable_packets();
        stats.recv_buffer_packets = unread;
        stats.recv_buffer_free = u64::from(self.most_unread.saturating_sub(unread)) * self.payload_size as u64;
        stats.memory += (self.buffer.memory() + self.reports.memory()) as u64;
    }
}
