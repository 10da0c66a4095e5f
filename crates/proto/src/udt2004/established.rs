//! A connection after its handshake. It routes packets and timers to the parts and carries facts between them.

mod facts;

use std::collections::VecDeque;

use farhaul_cc::{AckEvent, LossEvent, TimeoutEvent};
use farhaul_units::{Duration, Instant, Rng, SendPeriod, SeqNo, SeqRange};
use farhaul_wire::DecodeError;
use farhaul_wire::udt2004::{
    Ack, Control, HEADER_LEN, LossList, LossRange, SeqNo30, encode_losses, is_control, split_data,
};

use super::congestion::Congestion;
use super::exp::Exp;
use super::receiver::{Receiver, Sizes};
use super::sender::{Sender, Transmission};
use crate::buffer::Run;
use crate::config::Config;
use crate::error::ConnectionLost;
use crate::estimate::Rtt;
use crate::shell::expiry::{Expiry, SilenceAction};
use crate::shell::farewell::{Farewell, Parting};
use crate::shell::gap::Gap;
use crate::shell::progress::Progress;
use crate::stats::Totals;
use crate::timer::Timer;
use crate::transport::earliest;
use crate::udt::consts::{IP_UDP_HEADER, SYN_INTERVAL};
use crate::udt::handshake::Agreed;

/// Most confirmations that wait to be sent. A peer acknowledges once in 10 ms.
const MAX_CONFIRMATIONS: usize = 64;

/// Both halves of a connection with their shared state.
#[derive(Debug)]
pub(super) struct Established {
    /// The id agreed in the handshake, which distinguishes consecutive connections between two addresses.
    connection: u32,
    /// Sequence number of the first packet of both directions, and the packet size that the peer requested.
    isn: SeqNo,
    peer_mtu: u32,
    mtu: u32,
    pub(super) sender: Sender,
    pub(super) receiver: Receiver,
    pub(super) farewell: Farewell,
    progress: Progress,
    gap: Gap,
    rtt: Rtt,
    congestion: Congestion,
    exp: Exp,
    /// The SYN timer. It stops while nothing is sent or received.
    syn: Timer,
    /// Packets sent before the last SYN interval ended.
    sent_before: u64,
    /// Silence of the peer, and keep-alives.
    expiry: Expiry,
    confirmations: VecDeque<u16>,
    keep_alive: bool,
    /// Ranges of a report, and its body. Kept to reuse their memory.
    reported: Vec<SeqRange>,
    body: Vec<u8>,
    counts: Totals,
}

/// The meaning of a packet or a timer for the connection as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    GoOn,
    /// The peer left. `complete` is whether all its data has arrived.
    PeerLeft {
        complete: bool,
    },
    Lost(ConnectionLost),
}

impl Established {
    pub(super) fn new(agreed: &Agreed, window: u32, config: &Config, now: Instant, rng: &mut Rng) -> Self {
        let overhead = IP_UDP_HEADER + HEADER_LEN as u32;
        let controller = (config.controller)(rng.next_u64());
        let min_period = config.max_rate.map(|rate| SendPeriod::from_rate(rate, agreed.mss)).unwrap_or_default();
        let sizes = Sizes { payload: (config.mss - overhead) as usize, window };
        let payload = (agreed.mss - overhead) as usize;
        let mut established = Self {
            connection: agreed.peer_id.value(),
            isn: agreed.recv_isn,
            peer_mtu: agreed.peer_mss,
            mtu: agreed.mss,
            sender: Sender::new(agreed.send_isn, payload, agreed.flow_window, config.send_buffer, config.burst_time),
            receiver: Receiver::new(
                agreed.recv_isn,
                sizes,
                config.udt2004.reorder_tolerance,
                config.udt2004.delay_warnings,
                now,
            ),
            farewell: Farewell::default(),
            progress: Progress::new(now, config.stall_timeout, config.min_progress),
            gap: Gap::new(agreed.recv_isn, config.peer_timeout),
            rtt: Rtt::new(),
            congestion: Congestion::new(controller, min_period, now),
            exp: Exp::new(),
            syn: Timer::stopped(),
            sent_before: 0,
            expiry: Expiry::new(now, config.peer_timeout, config.keep_alive, rng.fork()),
            confirmations: VecDeque::new(),
            // The first packet after the handshake shows a listener that the connection is established.
            keep_alive: true,
            reported: Vec::new(),
            body: Vec::new(),
            counts: Totals::default(),
        };
        if let Some(sample) = agreed.round_trip {
            established.rtt.sample(sample, now);
        }
        let path = established.path(now);
        established.congestion.on_connect(&path);
        established.apply_control();
        established
    }

    // ---- input ----

    /// The next datagrams reached this computer at `arrived`.
    pub(super) const fn begin_batch(&mut self, arrived: Instant) {
        self.receiver.begin_batch(arrived);
    }

    /// Handles one datagram of the peer.
    pub(super) fn on_datagram(&mut self, datagram: &[u8], now: Instant) -> Result<Effect, DecodeError> {
        if is_control(datagram) {
            let control = Control::decode(datagram)?;
            return Ok(self.on_control(&control, now));
        }
        let (seq, payload) = split_data(datagram)?;
        if self.receiver.on_data(seq, payload, now) {
            self.expiry.on_heard(now);
        } else {
            self.counts.packets_invalid += 1;
        }
        Ok(Effect::GoOn)
    }

    /// All datagrams of one receive call were handled.
    pub(super) fn finish_batch(&mut self, now: Instant) {
        if self.receiver.finish_batch() {
            self.syn.start(now, SYN_INTERVAL);
            self.gap.look(&self.receiver.buffer, now);
        }
    }

    fn on_control(&mut self, control: &Control<'_>, now: Instant) -> Effect {
        match control {
            Control::Ack(ack) => self.on_ack(ack, now),
            Control::Nak(list) => self.on_nak(list, now),
            Control::Ack2(id) => self.on_ack2(*id, now),
            Control::DelayWarning => self.on_warning(now),
            Control::KeepAlive => self.expiry.on_heard(now),
            Control::Close { connection, end, acked } => return self.on_close(*connection, *end, *acked, now),
            // The connection handles handshakes.
            Control::Handshake(_) => {}
        }
        Effect::GoOn
    }

    fn on_ack(&mut self, ack: &Ack, now: Instant) {
        let Some((packets, seq)) = self.acknowledge(ack.seq, now) else { return };
        self.expiry.on_heard(now);
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
            self.progress.on_acknowledged(now, bytes);
        }
        Some((packets, seq))
    }

    fn on_nak(&mut self, list: &LossList<'_>, now: Instant) {
        self.clip(list);
        if self.reported.is_empty() {
            return;
        }
        let (rtt, largest_sent) = (self.rtt_of_peer(), self.sender.next().minus(1));
        self.expiry.on_heard(now);
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

    fn on_ack2(&mut self, id: u16, now: Instant) {
        let Some(sample) = self.receiver.on_ack2(id, now, self.rtt.smoothed()) else { return };
        self.expiry.on_heard(now);
        self.rtt.sample(sample, now);
    }

    fn on_warning(&mut self, now: Instant) {
        self.counts.delay_warnings_received += 1;
        if self.sender.in_flight() > 0 {
            let path = self.path(now);
            self.congestion.on_warning(&path);
            self.apply_control();
        }
    }

    fn on_close(&mut self, connection: u32, end: SeqNo30, acked: SeqNo30, now: Instant) -> Effect {
        // Attack B1: a stranger does not know the id.
        if connection != self.connection {
            self.counts.packets_invalid += 1;
            return Effect::GoOn;
        }
        self.acknowledge(acked, now);
        let buffer = &self.receiver.buffer;
        Effect::PeerLeft { complete: buffer.is_contiguous() && buffer.end() == end.near(buffer.end()) }
    }

    /// Fires due timers. The caller reads the deadline anew afterwards.
    pub(super) fn handle_timeout(&mut self, now: Instant) -> Effect {
        let rtt = self.rtt.smoothed();
        self.receiver.naks.handle_timeout(now, &self.receiver.buffer, rtt);
        if self.syn.fires(now) {
            self.on_syn(now, rtt);
        }
        if let Some(count) = self.exp.handle_timeout(now, self.rtt_of_peer()) {
            self.on_expiration(count, now);
        }
        if !self.sender.has_data() {
            self.progress.restart(now);
        } else if let Some(reason) = self.progress.check(now) {
            return Effect::Lost(reason);
        }
        if let Some(reason) = self.gap.check(now) {
            return Effect::Lost(reason);
        }
        match self.expiry.handle_timeout(now, false, rtt) {
            // This protocol has no packet that a silent peer must answer.
            SilenceAction::Nothing | SilenceAction::Expired(_) | SilenceAction::Ask => Effect::GoOn,
            SilenceAction::KeepAlive => {
                self.keep_alive = true;
                if !self.sender.has_data() {
                    self.sender.shrink();
                    self.receiver.buffer.shrink();
                }
                Effect::GoOn
            }
            SilenceAction::Silent(time) => Effect::Lost(ConnectionLost::PeerSilent(time)),
        }
    }

    //= paper:udt-2004 §3.3 algorithm 2, step 1 c
    fn on_syn(&mut self, now: Instant, rtt: Duration) {
        let busy = self.receiver.is_busy() || self.sender.in_flight() > 0;
        self.receiver.on_syn(rtt);
        if self.sender.sent > self.sent_before {
            self.sent_before = self.sender.sent;
            let path = self.path(now);
            self.congestion.on_syn(&path);
            self.apply_control();
        }
        if busy {
            self.syn.set(now + SYN_INTERVAL);
        }
    }

    fn on_expiration(&mut self, count: u32, now: Instant) {
        if self.sender.in_flight() == 0 {
            self.exp.on_word(now, self.rtt_of_peer(), false);
            return;
        }
        self.counts.timeouts += 1;
        self.sender.on_expiration();
        let mut event = TimeoutEvent::default();
        event.count = count;
        event.largest_sent = self.sender.next().minus(1);
        let path = self.path(now);
        self.congestion.on_timeout(&path, &event);
        self.apply_control();
    }

    /// This computer was suspended (attack B20). All time limits start again, and a keep-alive asks the peer.
    pub(super) fn on_suspended(&mut self, now: Instant) {
        self.expiry.on_suspended(now);
        self.exp.on_suspended(now, self.rtt_of_peer());
        self.progress.restart(now);
        self.gap.restart(now);
        self.keep_alive = true;
    }

    fn apply_control(&mut self) {
        let rtt = self.rtt_of_peer();
        self.sender.apply(self.congestion.control(), self.congestion.send_period(), rtt);
    }

    // ---- output ----

    /// Writes one due control packet into `out`. Returns false if none is due. `open` is whether this side has not
    /// closed.
    pub(super) fn poll_control(&mut self, now: Instant, open: bool, out: &mut Vec<u8>) -> bool {
        let rtt = self.rtt.smoothed();
        if let Some(id) = self.confirmations.pop_front() {
            Control::Ack2(id).encode(out);
        } else if let Some(ack) = self.receiver.poll_ack(now, rtt) {
            Control::Ack(ack).encode(out);
        } else if self.receiver.naks.is_pending() {
            return self.encode_nak(now, out);
        } else if self.receiver.poll_warning() {
            Control::DelayWarning.encode(out);
        } else if std::mem::take(&mut self.keep_alive) {
            Control::KeepAlive.encode(out);
        } else if let Some(parting) = (!open).then(|| self.farewell.poll(now, self.rtt.with_margin())).flatten() {
            // After an abort the packet names one packet too many, so that the peer never has the whole stream.
            let missing = u32::from(parting == Parting::Aborted);
            let (end, acked) = (self.sender.buffer().end().plus(missing), self.receiver.buffer.ack_point().into());
            Control::Close { connection: self.connection, end: end.into(), acked }.encode(out);
        } else {
            return false;
        }
        self.expiry.on_sent(now);
        true
    }

    /// Writes a loss report with as many ranges as fit in a packet.
    fn encode_nak(&mut self, now: Instant, out: &mut Vec<u8>) -> bool {
        let max_words = (self.mtu - IP_UDP_HEADER) as usize / 4 - HEADER_LEN / 4;
        let (body, mut count) = (&mut self.body, 0);
        body.clear();
        self.receiver.naks.poll(|ranges| {
            let ranges =
                ranges.iter().map(|range| LossRange { first: range.first.into(), end: range.last.next().into() });
            let (taken, losses) = encode_losses(ranges, max_words, body);
            count = losses;
            taken
        });
        let Ok(list) = LossList::from_body(count, &self.body) else { return false };
        Control::Nak(list).encode(out);
        self.expiry.on_sent(now);
        true
    }

    /// Data packets that may leave now.
    pub(super) fn plan(&mut self, now: Instant) -> Option<Transmission> {
        self.sender.plan(now)
    }

    /// The datagrams of a transmission. They count as sent.
    pub(super) fn emit(&mut self, transmission: Transmission, now: Instant) -> Option<Run<'_>> {
        let rtt = self.rtt_of_peer();
        self.expiry.on_sent(now);
        self.syn.start(now, SYN_INTERVAL);
        self.exp.on_sent(now, rtt);
        let run = self.sender.emit(transmission, now, rtt)?;
        self.congestion.note_sent(now, run.packets);
        Some(run)
    }

    pub(super) fn deadline(&self, now: Instant) -> Option<Instant> {
        let progress = self.progress.deadline().filter(|_| self.sender.has_data());
        let due = !self.confirmations.is_empty() || self.keep_alive || self.receiver.naks.is_pending();
        [
            due.then_some(now),
            self.sender.deadline(),
            self.receiver.acks.deadline(),
            self.receiver.naks.deadline(),
            self.syn.deadline(),
            self.exp.deadline(),
            self.expiry.deadline(),
            self.gap.deadline(),
            progress,
        ]
        .into_iter()
        .fold(None, earliest)
    }

    // ---- commands ----

    pub(super) fn write(&mut self, now: Instant, data: &[u8]) -> usize {
        if !self.sender.has_data() {
            self.progress.restart(now);
        }
        let taken = self.sender.write(data);
        self.counts.bytes_written += taken as u64;
        taken
    }

    pub(super) fn read(&mut self, now: Instant, out: &mut [u8]) -> usize {
        let before = self.receiver.acknowledged();
        let read = self.receiver.buffer.read(out);
        self.counts.bytes_read += read as u64;
        self.receiver.on_read(now, before);
        read
    }

    /// From now on, `linger` without progress ends the connection.
    pub(super) fn begin_linger(&mut self, now: Instant, linger: Duration) {
        self.progress.set_patience(now, linger);
    }

    pub(super) fn close(&mut self) {
        self.congestion.on_close();
    }

    // ---- facts ----

    /// The RTT of this side's data, which the other side measures.
    fn rtt_of_peer(&self) -> Duration {
        self.rtt.reported().unwrap_or_else(|| self.rtt.smoothed())
    }

    pub(super) fn round_trip(&self) -> Duration {
        self.rtt.with_margin()
    }

    pub(super) const fn connection(&self) -> u32 {
        self.connection
    }

    pub(super) const fn isn(&self) -> SeqNo {
        self.isn
    }

    pub(super) const fn peer_mtu(&self) -> u32 {
        self.peer_mtu
    }

    pub(super) const fn mtu(&self) -> u32 {
        self.mtu
    }

    pub(super) const fn was_heard(&self) -> bool {
        self.expiry.was_heard()
    }

    pub(super) const fn counts(&mut self) -> &mut Totals {
        &mut self.counts
    }
}
