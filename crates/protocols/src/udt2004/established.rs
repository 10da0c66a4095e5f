//! A connection after its handshake. It routes packets and timers to the parts and carries facts between them.

mod contract;
mod facts;
mod feedback;
mod packets;

use core::net::SocketAddr;
use std::collections::VecDeque;

use farhaul_cc::TimeoutEvent;
use farhaul_units::{Duration, Instant, Rate, SendPeriod, SeqRange};
use farhaul_wire::udt4;
use farhaul_wire::udt2004::{Control, HEADER_LEN, Handshake, LossList, LossRange, Request, encode_losses};

use super::Options;
use super::congestion::Congestion;
use super::exp::Exp;
use super::handshake::{offer, to_udt4};
use super::receiver::{Receiver, Sizes};
use super::sender::{Sender, Transmission};
use farhaul_proto::consts::{IP_UDP_HEADER, SYN_INTERVAL};
use farhaul_proto::endpoint::closing::{CloseKind, Closing};
use farhaul_proto::endpoint::handshake::{Agreed, Answer, Offer};
use farhaul_proto::endpoint::liveness::Liveness;
use farhaul_proto::endpoint::protocol::{Effect, Setup};
use farhaul_proto::error::ConnectionLost;
use farhaul_proto::estimate::Rtt;
use farhaul_proto::sent_packets::SentPackets;
use farhaul_proto::stats::Totals;
use farhaul_proto::timer::Timer;

/// Both halves of a connection with their shared state.
#[derive(Debug)]
pub(crate) struct Udt2004Connection {
    /// The id agreed in the handshake, which distinguishes consecutive connections between two addresses.
    connection: u32,
    mtu: u32,
    /// The answer to the caller's handshake; `None` if this side called.
    answer: Option<Answer>,
    sender: Sender,
    /// The data packets that leave next.
    planned: Option<Transmission>,
    sent_packets: SentPackets,
    receiver: Receiver,
    closing: Closing,
    rtt: Rtt,
    congestion: Congestion,
    exp: Exp,
    /// The SYN timer. It stops while nothing is sent or received.
    syn: Timer,
    /// Packets sent before the last SYN interval ended.
    sent_before: u64,
    liveness: Liveness,
    confirmations: VecDeque<u16>,
    /// Ranges of a report, and its body. Kept to reuse their memory.
    reported: Vec<SeqRange>,
    body: Vec<u8>,
    counts: Totals,
}

impl Udt2004Connection {
    pub(super) fn new(
        agreed: &Agreed,
        offer: &Offer,
        (answer, options): (Option<Answer>, Options),
        setup: Setup<'_>,
    ) -> Self {
        let Setup { config, rng, now } = setup;
        let overhead = IP_UDP_HEADER + HEADER_LEN as u32;
        let controller = config.supervised(rng.next_u64());
        let min_period = shortest_period(config.max_rate, agreed.mss);
        let sizes = Sizes { payload: (config.mss - overhead) as usize, window: offer.flow_window };
        let payload = (agreed.mss - overhead) as usize;
        let mut established = Self {
            connection: agreed.peer_id.value(),
            mtu: agreed.mss,
            answer,
            sender: Sender::new(agreed.send_isn, payload, agreed.flow_window, config.send_buffer, config.burst_time),
            planned: None,
            sent_packets: SentPackets::default(),
            receiver: Receiver::new(agreed.recv_isn, sizes, config.reorder_tolerance, options.delay_warnings, now),
            closing: Closing::default(),
            rtt: Rtt::default(),
            congestion: Congestion::new(controller, min_period, now),
            exp: Exp::new(),
            syn: Timer::stopped(),
            sent_before: 0,
            liveness: Liveness::new(now, agreed.recv_isn, config, rng.fork()),
            confirmations: VecDeque::new(),
            reported: Vec::new(),
            body: Vec::new(),
            counts: Totals::default(),
        };
        if let Some(sample) = agreed.round_trip {
            established.rtt.sample(sample, now);
        }
        if established.congestion.controller.wants_packets() {
            established.receiver.hear();
        }
        let path = established.path(now);
        established.congestion.controller.on_connect(&path);
        established.apply_control();
        established
    }

    /// The connection of a caller that has returned its cookie; `None` if its packets are too small. `mss` is the largest packet
    /// of this side.
    pub(super) fn accepted(
        packet: &udt4::Handshake,
        (from, mss): (SocketAddr, u32),
        options: Options,
        setup: Setup<'_>,
    ) -> Option<Self> {
        let offer = offer((setup.config, mss), from, packet.isn, packet.socket_id);
        let agreed = offer.agree(packet, None).ok()?;
        let mut answer = Answer::new(offer, agreed);
        answer.give(udt4::Request::Conclusion, packet.cookie);
        Some(Self::new(&agreed, &offer, (Some(answer), options), setup))
    }

    /// No legitimate peer sends this datagram.
    fn refuse(&mut self) -> Effect {
        self.counts.packets_invalid += 1;
        Effect::Invalid
    }

    fn on_control(&mut self, control: &Control<'_>, now: Instant) -> Effect {
        match control {
            Control::Ack(ack) => self.on_ack(ack, now),
            Control::Nak(list) => self.on_nak(list, now),
            Control::Ack2(id) => self.on_ack2(*id, now),
            Control::DelayWarning => self.on_warning(now),
            Control::KeepAlive => self.liveness.expiry.on_heard(now),
            Control::Close { connection, end, acked } => return self.on_close(*connection, *end, *acked, now),
            Control::Handshake(packet) => self.on_late_handshake(packet, now),
        }
        Effect::GoOn
    }

    //= paper:udt-2004 §3.3 algorithm 2, step 1 c
    fn on_syn(&mut self, now: Instant, rtt: Duration) {
        let busy = self.receiver.is_busy() || self.sender.in_flight() > 0;
        self.receiver.on_syn(rtt);
        if self.sender.sent > self.sent_before {
            self.sent_before = self.sender.sent;
            let path = self.path(now);
            self.congestion.controller.on_syn(&path);
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
        self.congestion.controller.on_timeout(&path, &event);
        self.apply_control();
    }

    /// A caller asks again. A side that is leaving does not answer.
    fn on_late_handshake(&mut self, packet: &Handshake, now: Instant) {
        let round_trip = self.rtt.with_margin();
        if let Some(answer) = &mut self.answer
            && packet.request == Request::Open
            && !self.closing.has_begun()
        {
            answer.repeat(&to_udt4(packet), udt4::Request::Conclusion, now, round_trip);
        }
    }

    fn apply_control(&mut self) {
        let rtt = self.rtt_of_peer();
        let capped = self.congestion.beyond_cap();
        self.sender.apply(self.congestion.controller.control(), self.congestion.send_period(), capped, rtt);
    }

    /// Whether the controller has failed, which ends the connection.
    const fn has_failed(&self) -> bool {
        self.congestion.controller.failure().is_some()
    }

    /// Ends the connection if its controller has failed. The peer is told that it is aborted.
    fn look_at_controller(&mut self, now: Instant) -> Effect {
        let is_closing = self.closing.has_begun();
        let Some(failure) = self.congestion.controller.failure().filter(|_| !is_closing) else { return Effect::GoOn };
        self.closing.begin(now, CloseKind::Aborted);
        Effect::Lost(ConnectionLost::ControllerFailed(failure))
    }

    /// Writes one due control packet into `out`. Returns false if none is due.
    fn poll_control(&mut self, now: Instant, out: &mut Vec<u8>) -> bool {
        let rtt = self.rtt.smoothed();
        if let Some(id) = self.confirmations.pop_front() {
            Control::Ack2(id).encode(out);
        } else if let Some(ack) = self.receiver.poll_ack(now, rtt) {
            Control::Ack(ack).encode(out);
        } else if self.receiver.naks.is_pending() {
            return self.encode_nak(now, out);
        } else if self.receiver.poll_warning() {
            Control::DelayWarning.encode(out);
        } else if self.liveness.take_keep_alive() {
            Control::KeepAlive.encode(out);
        } else if let Some(kind) = self.closing.poll(now, self.rtt.with_margin()) {
            // After an abort the packet names one packet too many, so that the peer never has the whole stream.
            let missing = u32::from(kind == CloseKind::Aborted);
            let (end, acked) = (self.sender.buffer().end().plus(missing), self.receiver.buffer.ack_point().into());
            Control::Close { connection: self.connection, end: end.into(), acked }.encode(out);
        } else {
            return false;
        }
        self.liveness.expiry.on_sent(now);
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
        self.liveness.expiry.on_sent(now);
        true
    }

    /// The RTT of this side's data, which the other side measures.
    fn rtt_of_peer(&self) -> Duration {
        self.rtt.reported().unwrap_or_else(|| self.rtt.smoothed())
    }
}

/// The shortest period under a cap on the rate, for packets of this size on the path.
fn shortest_period(max_rate: Option<Rate>, packet_size: u32) -> SendPeriod {
    max_rate.map(|rate| SendPeriod::from_rate(rate, packet_size)).unwrap_or_default()
}
