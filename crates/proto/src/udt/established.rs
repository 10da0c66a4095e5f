//! A connection after its handshake. It routes packets and timers to the parts and carries facts between them.

mod contract;
mod controller;
mod facts;
mod feedback;
mod losses;
mod packet_size;
mod packets;

use std::collections::VecDeque;

use farhaul_cc::{Path, TimeoutEvent};
use farhaul_units::{AckNo, Duration, Instant, MsgNo, Rate, SendPeriod, SeqNo};
use farhaul_wire::udt4::{
    CONNECTION_BROKEN, Control, DataHeader, HEADER_LEN, Handshake, LossList, MessageField, Position, Request, SocketId,
    Timestamp, encode_losses,
};

use self::losses::Losses;
use self::packet_size::Discovery;
use super::challenge::{Challenge, silence};
use super::congestion::Congestion;
use super::half_close::HalfClose;
use super::receiver::{Receiver, Sizes};
use super::sender::{Sender, Transmission};
use crate::buffer::{Run, Scratch};
use crate::config::Mode;
use crate::consts::{IP_UDP_HEADER, SYN_INTERVAL};
use crate::endpoint::closing::{CloseKind, Closing};
use crate::endpoint::handshake::{Agreed, Answer, Offer, mss_towards};
use crate::endpoint::liveness::Liveness;
use crate::endpoint::protocol::{Effect, Setup};
use crate::error::ConnectionLost;
use crate::estimate::Rtt;
use crate::path_memory::Recollection;
use crate::sent_packets::SentPackets;
use crate::stats::Totals;

/// Most custom control messages that wait to be sent.
const MAX_CUSTOM: usize = 64;

/// Both halves of a connection with their shared state.
pub(crate) struct UdtConnection {
    peer_id: SocketId,
    /// Whether the peer is known to be of Farhaul.
    peer_is_ours: bool,
    /// The packet size now, and at first.
    mss: u32,
    first_mss: u32,
    /// Bytes that headers of IP and packet protection add to the packet size.
    margin: u32,
    /// Cap on the sending rate.
    max_rate: Option<Rate>,
    /// Bytes by which control packets must be smaller than data packets.
    control_surplus: u32,
    discovery: Option<Discovery>,
    mode: Mode,
    /// Whether data packets carry the number of their message. Those of encrypted streams do not.
    numbered: bool,
    role: Role,
    /// Time stamps count from here.
    opened: Instant,
    pub(super) answer: Answer,
    sender: Sender,
    /// The data packets that leave next.
    planned: Option<Transmission>,
    receiver: Receiver,
    /// `None` if one direction cannot end alone.
    half_close: Option<HalfClose>,
    closing: Closing,
    challenge: Challenge,
    liveness: Liveness,
    rtt: Rtt,
    congestion: Congestion,
    recollection: Recollection,
    sent_packets: SentPackets,
    max_window: u32,
    confirmations: VecDeque<AckNo>,
    error_signal: Option<u32>,
    custom: VecDeque<(u16, Vec<u8>)>,
    losses: Losses,
    counts: Totals,
}

/// How the connection came about. This decides the meaning of a repeated handshake from the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// This side called. Packets from the peer are answers, and answers are not answered.
    Caller,
    /// The peer called this side.
    Listener,
    Rendezvous,
}

impl UdtConnection {
    /// A connection that was `opened` then.
    pub(super) fn new(agreed: Agreed, offer: Offer, role: Role, opened: Instant, setup: Setup<'_>) -> Self {
        let Setup { config, rng, now } = setup;
        let overhead = IP_UDP_HEADER + HEADER_LEN as u32;
        let full = (agreed.mss - overhead) as usize;
        let storage = (config.mss - overhead) as usize;
        let mut controller = config.supervised(rng.next_u64());
        let mut recollection = Recollection::new(config.path_memory.as_ref(), offer.peer);
        recollection.recall(&mut controller);
        let margin = config.mss - mss_towards(offer.peer.ip(), config.mss) + agreed.protection.data;
        let min_period = shortest_period(config.max_rate, agreed.mss + margin);
        let liveness = Liveness::new(now, agreed.recv_isn, config, rng.fork());
        let largest = Self::largest(&agreed).map(|largest| (largest - overhead) as usize);
        let mut established = Self {
            peer_id: agreed.peer_id,
            peer_is_ours: agreed.is_ours,
            mss: agreed.mss,
            first_mss: agreed.mss,
            margin,
            max_rate: config.max_rate,
            control_surplus: agreed.protection.control_surplus,
            discovery: None,
            mode: offer.mode,
            numbered: offer.mode == Mode::Message || agreed.protection.data == 0,
            role,
            opened,
            answer: Answer::new(offer, agreed),
            sender: Sender::new(
                agreed.send_isn,
                full,
                agreed.peer_id,
                agreed.flow_window,
                config.send_buffer,
                rng.fork(),
            ),
            planned: None,
            receiver: Receiver::new(
                agreed.recv_isn,
                offer.mode,
                Sizes {
                    storage,
                    full,
                    largest,
                    max_window: config.recv_window(),
                    receipts: agreed.wants_receipts,
                    memory: config.recv_buffer,
                },
                config.reorder_tolerance,
                now,
            ),
            half_close: agreed.half_close.then(HalfClose::new),
            closing: Closing::default(),
            challenge: Challenge::default(),
            liveness,
            rtt: Rtt::default(),
            congestion: Congestion::new(controller, min_period, now),
            recollection,
            sent_packets: SentPackets::default(),
            max_window: agreed.flow_window,
            confirmations: VecDeque::new(),
            error_signal: None,
            custom: VecDeque::new(),
            losses: Losses::new(now),
            counts: Totals::default(),
        };
        established.sender.set_protection_overhead(agreed.protection);
        if config.udt.blank_payload && agreed.protection.data == 0 {
            established.sender.leave_blank();
            established.receiver.buffer.leave_blank();
        }
        established.follow_packets();
        if established.congestion.controller.wants_deliveries() {
            established.sender.follow_deliveries(agreed.sends_receipts);
        }
        if agreed.largest.is_some() {
            established.discovery = Discovery::new(&agreed, &offer, rng.fork());
            established.sender.set_payload_size(full);
        }
        established.receiver.acks.number_from(config.udt.initial_ack);
        if config.udt.answers_as_libudt {
            established.receiver.acks.imitate_libudt(now);
        }
        established.sender.number_messages_from(config.udt.initial_message);
        if config.udt.sends_as_libudt {
            established.sender.imitate_libudt();
        }
        established.sender.set_burst_time(config.burst_time);
        // Under packet protection the peer is known, and the owner of the port limits it.
        if config.udt.withhold_packets && offer.mode == Mode::Stream && agreed.protection.data == 0 {
            established.sender.withhold_packets(rng.fork());
        }
        if let Some(sample) = agreed.round_trip {
            established.rtt.sample(sample, now);
        }
        established.notify_controller(now, |congestion, path| congestion.controller.on_connect(path));
        established
    }

    /// A connection under packet protection, whose handshake has agreed on everything.
    pub(crate) fn enclosed(agreed: Agreed, offer: Offer, called: bool, opened: Instant, setup: Setup<'_>) -> Self {
        Self::new(agreed, offer, if called { Role::Listener } else { Role::Caller }, opened, setup)
    }

    /// Data of a stream arrived under packet protection. `order` is the place of the packet in the order in which packets left.
    pub(crate) fn on_stream_data(&mut self, seq: SeqNo, payload: &[u8], order: u32, now: Instant) -> Effect {
        let field = MessageField { position: Position::Only, in_order: false, message: MsgNo::FIRST };
        // Receivers compare time stamps alone.
        let header = DataHeader { seq, field, timestamp: Timestamp::new(order), destination: SocketId::NONE };
        self.on_data(&header, payload, now)
    }

    #[inline]
    fn on_data(&mut self, header: &DataHeader, payload: &[u8], now: Instant) -> Effect {
        self.liveness.expiry.on_heard(now);
        // Nobody reads what comes after the close, so the peer must not take it for delivered.
        if self.closing.has_begun() {
            return Effect::GoOn;
        }
        if let Err(effect) = self.admit(header.seq, payload.is_empty()) {
            return effect;
        }
        self.receiver.on_data(header, payload, now, &self.rtt);
        self.note_sign_of_life(now);
        Effect::GoOn
    }

    /// Checks a data packet against the end of the peer's direction. `is_end` is whether it has no payload.
    ///
    /// # Errors
    /// The effect of a contradiction.
    #[inline]
    fn admit(&mut self, seq: SeqNo, is_end: bool) -> Result<(), Effect> {
        let Some(half_close) = &mut self.half_close else { return Ok(()) };
        let admitted = half_close.admit(seq, is_end, &self.receiver.buffer);
        admitted.map_err(|fault| Effect::Lost(ConnectionLost::PeerMisbehaved(fault)))
    }

    /// The longest time until an answer of the peer, which may wait for its timer.
    pub(crate) fn answer_time(&self) -> Duration {
        self.rtt.with_margin() + SYN_INTERVAL
    }

    /// The path is another one. Its RTT and its rate are found anew.
    pub(crate) fn restart_path(&mut self, setup: Setup<'_>) {
        let Setup { config, rng, now } = setup;
        self.rtt = Rtt::default();
        self.sent_packets.forget();
        self.sender.restart_path(now);
        self.recollection.leave();
        let seed = rng.next_u64();
        self.congestion.restart(|| config.supervised(seed), now);
        self.notify_controller(now, |congestion, path| congestion.controller.on_connect(path));
    }

    /// No legitimate peer sends this datagram.
    fn refuse(&mut self) -> Effect {
        self.counts.packets_invalid += 1;
        Effect::Invalid
    }

    fn on_control(&mut self, control: &Control<'_>, sent: Timestamp, stamp: Timestamp, now: Instant) -> Effect {
        match control {
            Control::Ack(ack) => return self.on_ack(ack, stamp, now),
            Control::Receipt(receipt) => return self.on_receipt(receipt, sent, now),
            Control::Nak(list) => self.on_nak(list, stamp, now),
            Control::Ack2(number) => {
                if let Some(sample) = self.receiver.acks.on_ack2(*number, now) {
                    self.rtt.sample(sample, now);
                    self.challenge.on_answer(now.saturating_sub(sample));
                }
                if let Some(half_close) = &mut self.half_close {
                    half_close.on_confirmed(self.receiver.acks.confirmed());
                }
            }
            // A side that is closing need not know whether the peer does.
            Control::Shutdown if self.closing.has_begun() => {}
            Control::Shutdown => self.challenge.on_close(now, CloseKind::Closed, self.silence()),
            Control::DropRequest(request) => {
                self.receiver.on_drop_request(request, now);
                self.liveness.gap.look(&self.receiver.buffer, now);
            }
            Control::CongestionWarning => {
                self.notify_controller(now, |congestion, path| congestion.on_warning(path));
            }
            Control::ErrorSignal(CONNECTION_BROKEN) => {
                self.counts.error_signals_received += 1;
                if !self.closing.has_begun() {
                    self.challenge.on_close(now, CloseKind::Aborted, self.silence());
                }
            }
            Control::ErrorSignal(code) => {
                self.counts.error_signals_received += 1;
                if self.liveness.progress.on_complaint(now, *code) {
                    return Effect::Complained(*code);
                }
            }
            Control::Path(path) => return self.on_path(path, sent, now),
            Control::Custom { kind, body } => {
                self.notify_controller(now, |congestion, path| congestion.on_custom_message(path, *kind, body));
            }
            // Other code takes handshakes. The arrival of a keep-alive is its only content.
            _ => {}
        }
        Effect::GoOn
    }

    /// A plausible packet arrived, so an earlier shutdown may have been forged (attack B1).
    fn note_sign_of_life(&mut self, now: Instant) {
        if self.challenge.is_on() {
            self.challenge.on_sign_of_life(now, self.silence());
        }
    }

    fn silence(&self) -> Duration {
        let is_quiet = self.receiver.buffer.is_contiguous() && !self.sender.has_data();
        silence(self.rtt.with_margin(), is_quiet)
    }

    fn on_expiration(&mut self, count: u32, now: Instant) {
        self.counts.timeouts += 1;
        self.sender.on_expiration(count);
        let mut event = TimeoutEvent::default();
        event.count = count;
        event.largest_sent = self.sender.next().minus(1);
        self.notify_controller(now, |congestion, path| congestion.controller.on_timeout(path, &event));
    }

    /// Writes one due control packet into `out`. Returns false if none is due.
    fn poll_control(&mut self, now: Instant, out: &mut Vec<u8>) -> bool {
        let (peer, stamp) = (self.peer_id, Timestamp::ZERO);
        if self.challenge.poll_question(now) {
            self.receiver.acks.demand_confirmation();
        }
        if let Some(number) = self.confirmations.pop_front() {
            Control::Ack2(number).encode(stamp, peer, out);
        } else if let Some(receipt) = self.receiver.poll_receipt(now) {
            // Before the acknowledgement, because the sender forgets acknowledged packets.
            // By it the sender tells the delay of the forward path from that of the return path.
            Control::Receipt(receipt).encode(self.stamp(now), peer, out);
        } else if let Some(ack) = self.receiver.poll_ack(now, &self.rtt) {
            Control::Ack(ack).encode(stamp, peer, out);
        } else if self.receiver.naks.is_pending() {
            self.encode_nak(out);
        } else if let Some(request) = self.sender.poll_drop() {
            Control::DropRequest(request).encode(stamp, peer, out);
        } else if self.poll_path_reply(peer, out) {
        } else if self.liveness.take_keep_alive() {
            Control::KeepAlive.encode(stamp, peer, out);
        } else if let Some(code) = self.error_signal.take() {
            Control::ErrorSignal(code).encode(stamp, peer, out);
        } else if let Some((kind, body)) = self.custom.pop_front() {
            Control::Custom { kind, body: &body }.encode(stamp, peer, out);
        } else if let Some(kind) = self.closing.poll(now, self.rtt.with_margin()) {
            let control = match kind {
                CloseKind::Closed => Control::Shutdown,
                CloseKind::Aborted => Control::ErrorSignal(CONNECTION_BROKEN),
            };
            control.encode(stamp, peer, out);
        } else {
            return false;
        }
        self.liveness.expiry.on_sent(now);
        true
    }

    /// Writes a loss report with as many ranges as fit in a packet.
    fn encode_nak(&mut self, out: &mut Vec<u8>) {
        let max_words = (self.safe_size() - IP_UDP_HEADER) as usize / 4 - HEADER_LEN / 4;
        let mut body = Vec::with_capacity(8);
        self.receiver.naks.poll(|ranges| encode_losses(ranges.iter().copied(), max_words, &mut body));
        if let Ok(list) = LossList::from_body(&body) {
            Control::Nak(list).encode(Timestamp::ZERO, self.peer_id, out);
        }
    }

    /// Data packets that may leave now.
    fn plan(&mut self, now: Instant) -> Option<Transmission> {
        if self.sent_packets.event().is_some() {
            self.report_sent(now);
        } else if self.sender.scale_of_next() != self.congestion.scale().sent {
            // Packets of another size are next. Pace and window are those of the size before.
            self.apply_control();
        }
        let stamp = self.stamp(now);
        let transmission = self.sender.plan(now, stamp, self.rtt.smoothed());
        let restarts = self.congestion.controller.wants_deliveries() && self.sender.is_sampling_application();
        if transmission.is_some() && self.sender.in_flight() == 0 && restarts {
            self.notify_controller(now, |congestion, path| congestion.controller.on_restart(path));
        }
        transmission
    }

    /// Queues a user-defined control packet, if it fits into a packet.
    fn queue_custom(&mut self, kind: u16, body: Vec<u8>) {
        let most = self.mss.saturating_sub(IP_UDP_HEADER + self.control_surplus) as usize;
        if body.len() + HEADER_LEN <= most {
            self.custom.push_back((kind, body));
        }
    }

    pub(super) const fn peer_id(&self) -> SocketId {
        self.peer_id
    }

    /// The shortest period under the cap on the rate, for packets of the first size.
    fn min_period(&self) -> SendPeriod {
        shortest_period(self.max_rate, self.first_mss + self.margin)
    }

    /// Passes an event to the controller, and applies the settings that follow from it.
    fn notify_controller(&mut self, now: Instant, notify: impl FnOnce(&mut Congestion, &Path)) {
        let path = self.path(now);
        notify(&mut self.congestion, &path);
        self.apply_control();
    }

    fn apply_control(&mut self) {
        self.scale_packets();
        let control = self.congestion.control();
        let capped = self.congestion.beyond_cap();
        self.sender.apply(&control, self.congestion.send_period(), capped, self.rtt.smoothed());
        self.receiver.set_policy(&control);
        self.liveness.expiry.set_rto(control.rto);
        self.take_messages();
    }

    /// A handshake packet arrived: the answer to it was lost, or somebody replays it. A side that is closing does not
    /// answer.
    fn on_late_handshake(&mut self, packet: &Handshake, now: Instant) {
        let request = match (self.role, packet.request) {
            (Role::Listener, Request::Conclusion) => Request::Conclusion,
            (Role::Rendezvous, Request::Rendezvous | Request::Conclusion) => Request::RendezvousFinal,
            _ => return,
        };
        if !self.closing.has_begun() {
            self.answer.repeat(packet, request, now, self.rtt.smoothed());
        }
    }

    /// Time stamp of a packet sent now.
    fn stamp(&self, now: Instant) -> Timestamp {
        Timestamp::from_elapsed(now - self.opened)
    }

    // ---- messages ----

    /// Payload bytes of the longest message that the peer can hold.
    fn longest_message(&self) -> u64 {
        u64::from(self.max_window) * self.sender.buffer().payload_size() as u64
    }

    /// The application writes data. If nothing was outstanding, the time without progress starts now.
    fn begin_work(&mut self, now: Instant) {
        self.begin_discovery(now);
        if self.sender.is_flushed() {
            self.liveness.progress.restart(now);
        }
    }

    /// The datagrams of the transmission that was planned, in `scratch` if they are enclosed.
    pub(crate) fn emit_by<'a>(&'a mut self, now: Instant, scratch: Scratch<'a, '_>) -> Option<Run<'a>> {
        let transmission = self.planned.take()?;
        if self.sender.in_flight() == 0 {
            self.liveness.expiry.watch(now, self.rtt.with_margin());
        }
        self.liveness.expiry.on_sent(now);
        if self.congestion.controller.wants_packets() {
            self.sent_packets.list(self.sender.packets_of(&transmission), transmission.is_again(), now);
        }
        let stamp = self.stamp(now);
        let run = self.sender.emit(transmission, (now, stamp), self.rtt.with_margin(), scratch)?;
        self.congestion.note_sent(now, run.packets);
        self.sent_packets.keep(run.packets);
        Some(run)
    }

    /// The application read `bytes`.
    fn note_read(&mut self, bytes: usize) {
        self.counts.bytes_read += bytes as u64;
        self.receiver.on_read(&self.rtt);
    }
}

/// The shortest period under a cap on the rate, for packets of this size on the path.
fn shortest_period(max_rate: Option<Rate>, packet_size: u32) -> SendPeriod {
    max_rate.map(|rate| SendPeriod::from_rate(rate, packet_size)).unwrap_or_default()
}
