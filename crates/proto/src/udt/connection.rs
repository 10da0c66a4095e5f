//! One connection from its first handshake packet to its last shutdown. It conducts the parts.

mod commands;

use core::net::SocketAddr;

use farhaul_units::{Duration, Instant, Rng};
use farhaul_wire::udt4::{Control, Handshake, Request, SocketId, Timestamp, is_handshake};

use super::established::{Effect, Established};
use super::handshake::{Agreed, Answer, Caller, Offer, Rendezvous, Step};
use super::sender::Transmission;
use crate::config::{Config, Mode};
use crate::error::ConnectionLost;
use crate::event::{ConnectionId, Event};
use crate::shell::farewell::Parting;
use crate::shell::life::{Ending, Life};
use crate::shell::slots::Occupant;
use crate::shell::standing::Standing;
use crate::stats::Stats;
use crate::transport::earliest;

/// A connection.
#[derive(Debug)]
pub(crate) struct Connection {
    standing: Standing,
    mode: Mode,
    role: Role,
    offer: Offer,
    peer: SocketAddr,
    opened: Instant,
    phase: Phase,
    answer: Answer,
    linger: Duration,
}

/// How the connection came about. This decides the meaning of a repeated handshake from the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// This side called. Packets from the peer are answers, and answers are not answered.
    Caller,
    /// The peer called this side.
    Listener,
    Rendezvous,
}

#[derive(Debug)]
enum Phase {
    Calling(Box<Caller>),
    Meeting(Box<Rendezvous>),
    Established(Box<Established>),
}

/// The source of a connection's next datagrams.
#[derive(Debug)]
pub(crate) enum Output {
    /// One datagram was written into the scratch buffer.
    Scratch,
    /// These data packets are in the send buffer.
    Data(Transmission),
}

impl Connection {
    /// Calls a listener.
    pub(crate) fn call(id: ConnectionId, offer: Offer, config: &Config, now: Instant) -> Self {
        let caller = Caller::new(offer, now, config.connect_timeout);
        Self::new(id, Role::Caller, offer, Phase::Calling(Box::new(caller)), config, now)
    }

    /// Meets a peer that also calls.
    pub(crate) fn meet(id: ConnectionId, offer: Offer, config: &Config, now: Instant) -> Self {
        let rendezvous = Rendezvous::new(offer, now, config.udt.rendezvous_timeout);
        Self::new(id, Role::Rendezvous, offer, Phase::Meeting(Box::new(rendezvous)), config, now)
    }

    /// Accepts a caller that has returned its cookie.
    pub(crate) fn accept(
        id: ConnectionId,
        offer: Offer,
        packet: &Handshake,
        config: &Config,
        (now, rng): (Instant, &mut Rng),
    ) -> Result<Self, ConnectionLost> {
        // Both directions start with the caller's number, because callers accept no other.
        let agreed = offer.agree(packet, None).map_err(ConnectionLost::PeerIncompatible)?;
        let established = Established::new(&agreed, offer.mode, config, now, rng);
        let mut connection =
            Self::new(id, Role::Listener, offer, Phase::Established(Box::new(established)), config, now);
        connection.standing = Standing::accepted(id);
        connection.answer.give(Handshake { mss: agreed.mss, ..offer.packet(Request::Conclusion, packet.cookie) });
        Ok(connection)
    }

    fn new(id: ConnectionId, role: Role, offer: Offer, phase: Phase, config: &Config, now: Instant) -> Self {
        Self {
            standing: Standing::opening(id),
            mode: offer.mode,
            role,
            offer,
            peer: offer.peer,
            opened: now,
            phase,
            answer: Answer::default(),
            linger: config.linger,
        }
    }

    // ---- input ----

    /// A datagram from the peer's address, addressed to this socket. Returns false if it is invalid.
    pub(crate) fn on_datagram(&mut self, datagram: &[u8], config: &Config, (now, rng): (Instant, &mut Rng)) -> bool {
        if self.standing.is_over() {
            return true;
        }
        let stamp = self.stamp(now);
        if let Phase::Established(established) = &mut self.phase {
            if is_handshake(datagram) {
                return self.on_late_handshake(datagram, now);
            }
            let Ok(effect) = established.on_datagram(datagram, stamp, now) else {
                established.counts().packets_invalid += 1;
                return false;
            };
            self.apply(effect);
            return true;
        }
        self.on_setup(datagram, config, (now, rng))
    }

    fn on_setup(&mut self, datagram: &[u8], config: &Config, (now, rng): (Instant, &mut Rng)) -> bool {
        let packet = match (is_handshake(datagram), Control::decode(datagram)) {
            (true, Ok((_, _, Control::Handshake(packet)))) => Some(packet),
            (true, _) => return false,
            (false, _) => None,
        };
        let step = match (&mut self.phase, packet) {
            (Phase::Calling(caller), Some(packet)) => caller.on_handshake(&packet, now),
            (Phase::Meeting(rendezvous), Some(packet)) => rendezvous.on_handshake(&packet, now),
            (Phase::Meeting(rendezvous), None) => rendezvous.on_other_packet(),
            _ => Step::Wait,
        };
        let was_meeting = matches!(self.phase, Phase::Meeting(_));
        match step {
            Step::Wait => {}
            Step::Failed(reason) => self.end(reason),
            Step::Done(agreed) => {
                self.establish(&agreed, config, now, rng);
                // A data packet may complete a rendezvous.
                if was_meeting && !is_handshake(datagram) {
                    self.on_datagram(datagram, config, (now, rng));
                } else if was_meeting {
                    self.queue_rendezvous_answer(packet.map(|packet| packet.request));
                }
            }
        }
        true
    }

    fn establish(&mut self, agreed: &Agreed, config: &Config, now: Instant, rng: &mut Rng) {
        let established = Established::new(agreed, self.mode, config, now, rng);
        self.phase = Phase::Established(Box::new(established));
        self.standing.established();
    }

    /// The peer of a rendezvous may not know yet that it is connected.
    fn queue_rendezvous_answer(&mut self, heard: Option<Request>) {
        if heard != Some(Request::RendezvousFinal) {
            self.answer.give(self.offer.packet(Request::RendezvousFinal, 0));
        }
    }

    /// A handshake packet arrived on an established connection: the answer to it was lost, or somebody replays it. This
    /// side answers at most once per RTT, and only the packet that made this connection (attack A7).
    fn on_late_handshake(&mut self, datagram: &[u8], now: Instant) -> bool {
        let Ok((_, _, Control::Handshake(packet))) = Control::decode(datagram) else { return false };
        self.repeat_answer(&packet, now);
        true
    }

    /// Repeats the handshake answer to a caller or rendezvous peer that asks again.
    pub(crate) fn repeat_answer(&mut self, packet: &Handshake, now: Instant) {
        let Phase::Established(established) = &self.phase else { return };
        let same = packet.socket_id == established.peer_id()
            && packet.isn == established.peer_isn()
            && packet.mss == established.peer_mss();
        let rested = self.answer.is_rested(now, established.round_trip());
        let request = match (self.role, packet.request) {
            (Role::Listener, Request::Conclusion) => Request::Conclusion,
            (Role::Rendezvous, Request::Rendezvous | Request::Conclusion) => Request::RendezvousFinal,
            _ => return,
        };
        // A dead connection is not polled for the answer.
        if same && rested && self.standing.life().is_alive() {
            let answer = self.offer.packet(request, packet.cookie);
            self.answer.give(Handshake { mss: established.mss(), ..answer });
        }
    }

    /// The next datagrams reached this computer at `arrived`.
    pub(crate) fn begin_batch(&mut self, arrived: Instant) {
        if let Phase::Established(established) = &mut self.phase {
            established.begin_batch(arrived);
        }
    }

    /// Ends a batch: all datagrams of one receive call were handled.
    pub(crate) fn finish_batch(&mut self, now: Instant) {
        if let Phase::Established(established) = &mut self.phase {
            established.finish_batch(now);
        }
        self.wake();
        self.check_flushed(now);
    }

    /// The driver called `gap` late after a deadline, so this computer was suspended.
    pub(crate) fn on_suspended(&mut self, now: Instant, gap: Duration) {
        match &mut self.phase {
            Phase::Calling(caller) => caller.on_suspended(gap),
            Phase::Meeting(rendezvous) => rendezvous.on_suspended(gap),
            Phase::Established(established) => established.on_suspended(now),
        }
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        match &mut self.phase {
            Phase::Calling(caller) => {
                if let Step::Failed(reason) = caller.check(now) {
                    self.end(reason);
                }
            }
            Phase::Meeting(rendezvous) => {
                if let Step::Failed(reason) = rendezvous.check(now) {
                    self.end(reason);
                }
            }
            Phase::Established(established) => {
                if !self.standing.is_over() {
                    let effect = established.handle_timeout(now);
                    self.apply(effect);
                }
            }
        }
        self.check_flushed(now);
        self.wake();
    }

    fn apply(&mut self, effect: Effect) {
        match effect {
            Effect::GoOn => {}
            Effect::Lost(reason) => self.end(reason),
            Effect::PeerLeft(parting) => self.on_peer_left(parting),
            Effect::Complained(code) => self.standing.complain(code),
        }
    }

    fn on_peer_left(&mut self, parting: Parting) {
        let Phase::Established(established) = &self.phase else { return };
        let complete = parting == Parting::Closed && established.receiver.buffer.is_contiguous();
        let all_sent = !established.sender.has_data();
        let reason = if complete && all_sent { ConnectionLost::ClosedByPeer } else { ConnectionLost::Aborted };
        self.conclude(Ending { reason, complete });
    }

    fn end(&mut self, reason: ConnectionLost) {
        self.conclude(Ending::early(reason));
    }

    fn conclude(&mut self, mut ending: Ending) {
        if let Phase::Established(established) = &self.phase {
            ending.reason = established.explain(ending.reason);
        }
        if self.standing.lost(ending) {
            if let Phase::Established(established) = &mut self.phase {
                established.close();
            }
            self.wake();
        }
    }

    fn check_flushed(&mut self, now: Instant) {
        let Phase::Established(established) = &mut self.phase else { return };
        if self.standing.life() == Life::Finishing && established.sender.is_flushed() {
            established.farewell.begin(now, Parting::Closed);
            // Nothing more will arrive. As far as this side can know, the received data is complete.
            let complete = established.receiver.buffer.is_contiguous();
            self.standing.flushed(complete);
            self.wake();
        }
    }

    /// Wakes waiting readers and writers if their state changed.
    fn wake(&mut self) {
        let Phase::Established(established) = &mut self.phase else {
            self.standing.wake_reader(|| false);
            return;
        };
        let buffer = &mut established.receiver.buffer;
        self.standing.wake_reader(|| match self.mode {
            Mode::Stream => buffer.available() > 0,
            Mode::Message => buffer.next_message().is_some(),
        });
        self.standing.wake_writer(|| established.sender.has_room_again());
    }

    // ---- output ----

    /// The next datagrams to send, if any.
    pub(crate) fn poll_output(&mut self, now: Instant, scratch: &mut Vec<u8>) -> Option<Output> {
        let stamp = self.stamp(now);
        if let Some((packet, to)) = self.poll_handshake(now) {
            Control::Handshake(packet).encode(stamp, to, scratch);
            return Some(Output::Scratch);
        }
        let Phase::Established(established) = &mut self.phase else { return None };
        match self.standing.life() {
            Life::Open | Life::Finishing => {
                if established.poll_control(now, true, scratch) {
                    return Some(Output::Scratch);
                }
                if let Some(transmission) = established.plan(now, stamp) {
                    return Some(Output::Data(transmission));
                }
                // Messages may just have been given up, which the peer is told before it gets what follows them.
                established.poll_control(now, true, scratch).then_some(Output::Scratch)
            }
            Life::Leaving => {
                if established.poll_control(now, false, scratch) {
                    return Some(Output::Scratch);
                }
                if established.farewell.is_told() {
                    established.close();
                    self.standing.told();
                }
                None
            }
            Life::Connecting | Life::Over => None,
        }
    }

    /// The data packets of an output.
    pub(crate) fn emit(&mut self, transmission: Transmission, now: Instant) -> Option<(usize, &[u8])> {
        let stamp = self.stamp(now);
        let Phase::Established(established) = &mut self.phase else { return None };
        established.emit(transmission, now, stamp).map(|run| (run.segment_size, &*run.bytes))
    }

    fn poll_handshake(&mut self, now: Instant) -> Option<(Handshake, SocketId)> {
        if self.standing.is_over() {
            return None;
        }
        match &mut self.phase {
            Phase::Calling(caller) => caller.poll(now).map(|packet| (packet, SocketId::NONE)),
            Phase::Meeting(rendezvous) => rendezvous.poll(now),
            Phase::Established(established) => self.answer.poll(now).map(|packet| (packet, established.peer_id())),
        }
    }

    fn stamp(&self, now: Instant) -> Timestamp {
        Timestamp::from_elapsed(now - self.opened)
    }

    /// When to call this connection next.
    pub(crate) fn deadline(&self, now: Instant) -> Option<Instant> {
        if self.standing.is_over() {
            return None;
        }
        let phase = match &self.phase {
            Phase::Calling(caller) => caller.deadline(),
            Phase::Meeting(rendezvous) => rendezvous.deadline(),
            Phase::Established(established) if self.standing.life() == Life::Leaving => {
                established.leaving_deadline(now)
            }
            Phase::Established(established) => established.deadline(now),
        };
        earliest(phase, self.answer.is_due().then_some(now))
    }

    /// The events since the last call.
    pub(crate) fn take_events(&mut self) -> impl Iterator<Item = Event> + '_ {
        self.standing.take_events()
    }

    // ---- facts ----

    pub(crate) const fn socket_id(&self) -> SocketId {
        self.offer.socket_id
    }

    /// The caller's own socket id; `None` if this side called.
    pub(crate) const fn caller(&self) -> Option<SocketId> {
        match (&self.phase, self.role) {
            (Phase::Established(established), Role::Listener) => Some(established.peer_id()),
            _ => None,
        }
    }

    /// Whether it can be forgotten.
    pub(crate) const fn is_done(&self) -> bool {
        self.standing.is_done()
    }

    /// Whether this side has closed it and still repeats its shutdown.
    pub(crate) fn is_leaving(&self) -> bool {
        self.standing.life() == Life::Leaving
    }

    /// Whether it is a rendezvous that is not complete.
    pub(crate) const fn is_meeting(&self) -> bool {
        matches!(self.phase, Phase::Meeting(_))
    }

    pub(crate) fn stats(&self, now: Instant) -> Stats {
        let mut stats = Stats { elapsed: now - self.opened, ..Stats::default() };
        if let Phase::Established(established) = &self.phase {
            established.fill_stats(now, &mut stats);
        }
        stats
    }
}

impl Occupant for Connection {
    fn id(&self) -> ConnectionId {
        self.standing.id()
    }

    fn peer(&self) -> SocketAddr {
        self.peer
    }

    fn was_heard(&self) -> bool {
        match &self.phase {
            Phase::Established(established) => established.was_heard(),
            _ => false,
        }
    }

    fn is_half_open(&self) -> bool {
        match &self.phase {
            Phase::Established(established) => !established.was_heard() && self.standing.life().is_alive(),
            _ => false,
        }
    }

    fn waits_for_application(&self) -> bool {
        self.standing.waits_for_application()
    }
}
