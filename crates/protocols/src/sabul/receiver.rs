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

use farhaul_units::{Duration, Instant, SeqNo, SeqRange};
use farhaul_wire::sabul::{HEADER_LEN, MAX_LOSSES, Record, encode_losses, split_data};

use super::Repairs;
use super::numbering::Numbering;
use super::repair_time::RepairTime;
use super::reports::Reports;
use crate::blast::engine::{self, Setup};
use crate::blast::receiving::{ReceiverState, packets_in};
use farhaul_proto::buffer::Insert;
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

/// The rules of the peer's sender.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Packets that it sends beyond the last acknowledgement.
    pub window: u32,
    /// Time between two SYN records.
    pub syn: Duration,
    /// How many losses it takes at a time.
    pub repairs: Repairs,
}

/// The receiving end of one direction.
#[derive(Debug)]
pub struct Receiver {
    rules: Rules,
    state: ReceiverState,
    numbering: Numbering,
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
    /// Losses of one record.
    due: Vec<SeqRange>,
}

impl Receiver {
    /// A receiver of a sender with these rules.
    pub fn new(setup: &Setup<'_>, rules: Rules) -> Self {
        let payload_size = setup.payload_size(HEADER_LEN);
        let by_memory = packets_in(setup.config.recv_buffer, payload_size);
        let most_unread = by_memory.clamp(1, farhaul_proto::seq_set::MAX_CAPACITY / 2);
        let capacity = most_unread.saturating_add(rules.window);
        Self {
            rules,
            state: ReceiverState::new(Numbering::FIRST, payload_size, capacity, setup),
            numbering: Numbering::new(),
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
            due: Vec::new(),
        }
    }

    /// Whether a packet is known to be missing.
    pub fn has_gap(&self) -> bool {
        !self.state.buffer.is_contiguous()
    }

    /// Packets known to be missing.
    pub fn missing(&self) -> u64 {
        let all = SeqRange::new(self.state.buffer.ack_point(), self.state.buffer.end().minus(1));
        self.state.buffer.missing(all).map(|gap| u64::from(gap.len())).sum()
    }

    /// Whether everything that arrived has been acknowledged.
    pub fn is_acknowledged(&self) -> bool {
        self.acked == self.state.buffer.end()
    }

    /// The acknowledgement that holds now: the first missing packet, as far as the reader permits.
    fn ack_point(&self) -> SeqNo {
        self.state.buffer.ack_point().earlier(self.state.buffer.next_to_read().plus(self.most_unread))
    }

    /// Time after which a loss is reported again.
    fn repeat(&self) -> Duration {
        let usual = match self.rules.repairs {
            Repairs::Unlimited => self.state.round_trip.max(self.repair_time.estimate()),
            Repairs::Original => self.state.round_trip,
        };
        (usual * REPEAT.0 / REPEAT.1).max(ERR_INTERVAL)
    }

    /// Notes the gap before an arriving packet.
    fn note_gap(&mut self, end: SeqNo, seq: SeqNo) {
        if seq.is_after(end) {
            let gap = SeqRange::new(end, seq.minus(1));
            self.state.counts.lost += u64::from(gap.len());
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
        self.state.counts.acks += 1;
        self.ack_timer =
            if self.acked == self.state.buffer.end() { Timer::stopped() } else { Timer::at(now + ACK_INTERVAL) };
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
            let buffer = &self.state.buffer;
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
        for gap in self.state.buffer.missing(region) {
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
            self.state.counts.naks += 1;
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
    fn state(&self) -> &ReceiverState {
        &self.state
    }

    fn state_mut(&mut self) -> &mut ReceiverState {
        &mut self.state
    }

    fn handle_datagram(&mut self, now: Instant, datagram: &[u8]) -> bool {
        let packet = split_data(datagram).ok().filter(|(_, payload)| payload.len() <= self.state.payload_size);
        let Some((number, payload)) = packet else { return false };
        let (seq, end) = (self.numbering.near(number), self.state.buffer.end());
        if seq.distance_from(self.acked) >= self.rules.window.cast_signed() {
            self.ack_due = true;
            return false;
        }
        self.since_syn = self.since_syn.saturating_add(1);
        self.last_arrival = now;
        match self.state.store(seq, payload) {
            Insert::New => {
                self.repair_time.on_arrival(now, seq);
                self.note_gap(end, seq);
            }
            Insert::Duplicate => {}
            Insert::Rejected => self.state.counts.invalid += 1,
        }
        true
    }

    fn end_batch(&mut self, now: Instant) {
        self.numbering.advance(self.state.buffer.ack_point());
        let unacknowledged = self.ack_point().distance_from(self.acked);
        if unacknowledged >= ACK_PACKETS.cast_signed() {
            self.ack_due = true;
        }
        if self.acked != self.state.buffer.end() {
            self.ack_timer.start(now, ACK_INTERVAL);
        }
        self.syn_timer.start(now, self.rules.syn);
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.ack_timer.fires(now) {
            self.ack_due = true;
            if !self.ack_point().is_after(self.acked) && self.state.buffer.ack_point().is_after(self.acked) {
                self.held += 1;
            }
            if self.acked != self.state.buffer.end() {
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

    fn poll_control(&mut self, now: Instant, out: &mut Vec<u8>) {
        self.poll_ack(now, out);
        self.poll_syn(out);
        self.poll_reports(now, out);
    }

    fn fill_stats(&self, _now: Instant, stats: &mut Stats) {
        self.state.fill_stats(stats);
        let unread_room = self.most_unread.saturating_sub(stats.recv_buffer_packets);
        stats.recv_buffer_free = u64::from(unread_room) * self.state.payload_size as u64;
        stats.memory += self.reports.memory() as u64;
    }
}
