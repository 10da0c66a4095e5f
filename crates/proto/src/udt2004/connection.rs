//! One connection from its first handshake packet to its last close packet. It conducts the parts.

mod commands;

use core::net::SocketAddr;

use farhaul_units::{Duration, Instant, Rng};
use farhaul_wire::udt4::{Handshake, Request};
use farhaul_wire::udt2004::{Control, is_handshake};

use super::established::{Effect, Established};
use super::handshake::{from_udt4, to_udt4};
use super::sender::Transmission;
use crate::config::Config;
use crate::error::ConnectionLost;
use crate::event::{ConnectionId, Event};
use crate::shell::farewell::Parting;
use crate::shell::handshake::{Answer, Caller, Offer, Step};
use crate::shell::life::{Ending, Life};
use crate::shell::slots::Occupant;
use crate::shell::standing::Standing;
use crate::stats::Stats;
use crate::transport::earliest;

/// A connection.
#[derive(Debug)]
pub(super) struct Connection {
    standing: Standing,
    offer: Offer,
    opened: Instant,
    phase: Phase,
    /// The peer called this side.
    accepted: bool,
    answer: Answer,
    linger: Duration,
}

#[derive(Debug)]
enum Phase {
    Calling(Box<Caller>),
    Established(Box<Established>),
}

/// The source of a connection's next datagrams.
#[derive(Debug)]
pub(super) enum Output {
    /// One datagram was written into the scratch buffer.
    Scratch,
    /// These data packets are in the send buffer.
    Data(Transmission),
}

impl Connection {
    /// Calls a listener.
    pub(super) fn call(id: ConnectionId, offer: Offer, config: &Config, now: Instant) -> Self {
        let caller = Caller::new(offer, now, config.connect_timeout);
        Self::new(id, offer, Phase::Calling(Box::new(caller)), config, now)
    }

    /// Accepts a caller that has returned its cookie; `None` if its packets are too small.
    pub(super) fn accept(
        id: ConnectionId,
        offer: Offer,
        packet: &Handshake,
        config: &Config,
        (now, rng): (Instant, &mut Rng),
    ) -> Option<Self> {
        let agreed = offer.agree(packet, None).ok()?;
        let established = Established::new(&agreed, offer.flow_window, config, now, rng);
        let mut connection = Self::new(id, offer, Phase::Established(Box::new(established)), config, now);
        connection.accepted = true;
        connection.standing = Standing::accepted(id);
        connection.answer.give(Handshake { mss: agreed.mss, ..offer.packet(Request::Conclusion, packet.cookie) });
        Some(connection)
    }

    fn new(id: ConnectionId, offer: Offer, phase: Phase, config: &Config, now: Instant) -> Self {
        Self {
            standing: Standing::opening(id),
            offer,
            opened: now,
            phase,
            accepted: false,
            answer: Answer::default(),
            linger: config.linger,
        }
    }

    // ---- input ----

    /// A handshake packet from the peer's address.
    pub(super) fn on_handshake(&mut self, packet: &Handshake, config: &Config, (now, rng): (Instant, &mut Rng)) {
        match &mut self.phase {
            // Answers repeat the id of the request, which strangers do not know.
            Phase::Calling(caller) if packet.socket_id == self.offer.socket_id => {
                match caller.on_handshake(packet, now) {
                    Step::Wait => {}
                    Step::Failed(reason) => self.conclude(Ending::early(reason)),
                    Step::Done(agreed) => {
                        let established = Established::new(&agreed, self.offer.flow_window, config, now, rng);
                        self.phase = Phase::Established(Box::new(established));
                        self.standing.established();
                    }
                }
            }
            Phase::Calling(_) => {}
            Phase::Established(_) => self.repeat_answer(packet, now),
        }
    }

    /// A handshake packet arrived on an established connection: the answer to it was lost, or somebody replays it. This
    /// side answers at most once per RTT, and only the packet that made this connection (attack A7).
    fn repeat_answer(&mut self, packet: &Handshake, now: Instant) {
        let Phase::Established(established) = &self.phase else { return };
        let same = packet.socket_id.value() == established.connection()
            && packet.isn == established.isn()
            && packet.mss == established.peer_mtu();
        let asks = self.accepted && packet.request == Request::Conclusion;
        if same && asks && self.standing.life().is_alive() && self.answer.is_rested(now, established.round_trip()) {
            let answer = self.offer.packet(Request::Conclusion, packet.cookie);
            self.answer.give(Handshake { mss: established.mtu(), ..answer });
        }
    }

    /// Any other datagram from the peer's address. Returns false if it is invalid.
    pub(super) fn on_datagram(&mut self, datagram: &[u8], now: Instant) -> bool {
        if self.standing.is_over() {
            return true;
        }
        // Packets that overtake the handshake answer are lost. The peer retransmits them.
        let Phase::Established(established) = &mut self.phase else { return true };
        let Ok(effect) = established.on_datagram(datagram, now) else {
            established.counts().packets_invalid += 1;
            return false;
        };
        self.apply(effect);
        true
    }

    /// The next datagrams reached this computer at `arrived`.
    pub(super) fn begin_batch(&mut self, arrived: Instant) {
        if let Phase::Established(established) = &mut self.phase {
            established.begin_batch(arrived);
        }
    }

    /// Ends a batch: all datagrams of one receive call were handled.
    pub(super) fn finish_batch(&mut self, now: Instant) {
        if let Phase::Established(established) = &mut self.phase {
            established.finish_batch(now);
        }
        self.wake();
        self.check_flushed(now);
    }

    /// The driver called `gap` late after a deadline, so this computer was suspended.
    pub(super) fn on_suspended(&mut self, now: Instant, gap: Duration) {
        match &mut self.phase {
            Phase::Calling(caller) => caller.on_suspended(gap),
            Phase::Established(established) => established.on_suspended(now),
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        match &mut self.phase {
            Phase::Calling(caller) => {
                if let Step::Failed(reason) = caller.check(now) {
                    self.conclude(Ending::early(reason));
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
            Effect::Lost(reason) => self.conclude(Ending::early(reason)),
            Effect::PeerLeft { complete } => {
                let Phase::Established(established) = &self.phase else { return };
                let all_sent = !established.sender.has_data();
                let reason = if complete && all_sent { ConnectionLost::ClosedByPeer } else { ConnectionLost::Aborted };
                self.conclude(Ending { reason, complete });
            }
        }
    }

    fn conclude(&mut self, ending: Ending) {
        if self.standing.lost(ending) {
            if let Phase::Established(established) = &mut self.phase {
                established.close();
            }
            self.wake();
        }
    }

    fn check_flushed(&mut self, now: Instant) {
        let Phase::Established(established) = &mut self.phase else { return };
        if self.standing.life() == Life::Finishing && !established.sender.has_data() {
            established.farewell.begin(now, Parting::Closed);
            // Nothing more will arrive. As far as this side can know, the received data is complete.
            let complete = established.receiver.buffer.is_contiguous();
            self.standing.flushed(complete);
            self.wake();
        }
    }

    /// Wakes waiting readers and writers if their state changed.
    fn wake(&mut self) {
        let Phase::Established(established) = &self.phase else {
            self.standing.wake_reader(|| false);
            return;
        };
        self.standing.wake_reader(|| established.receiver.buffer.available() > 0);
        self.standing.wake_writer(|| established.sender.has_room_again());
    }

    // ---- output ----

    /// The next datagrams to send, if any.
    pub(super) fn poll_output(&mut self, now: Instant, scratch: &mut Vec<u8>) -> Option<Output> {
        if self.standing.is_over() {
            return None;
        }
        let handshake = match &mut self.phase {
            Phase::Calling(caller) => caller.poll(now),
            Phase::Established(_) => self.answer.poll(now),
        };
        if let Some(packet) = handshake {
            Control::Handshake(from_udt4(&packet)).encode(scratch);
            return Some(Output::Scratch);
        }
        let Phase::Established(established) = &mut self.phase else { return None };
        let leaving = self.standing.life() == Life::Leaving;
        if established.poll_control(now, !leaving, scratch) {
            return Some(Output::Scratch);
        }
        if leaving {
            if established.farewell.is_told() {
                established.close();
                self.standing.told();
            }
            return None;
        }
        established.plan(now).map(Output::Data)
    }

    /// The data packets of an output.
    pub(super) fn emit(&mut self, transmission: Transmission, now: Instant) -> Option<(usize, &[u8])> {
        let Phase::Established(established) = &mut self.phase else { return None };
        established.emit(transmission, now).map(|run| (run.segment_size, &*run.bytes))
    }

    /// When to call this connection next.
    pub(super) fn deadline(&self, now: Instant) -> Option<Instant> {
        if self.standing.is_over() {
            return None;
        }
        let phase = match &self.phase {
            Phase::Calling(caller) => caller.deadline(),
            Phase::Established(established) if self.standing.life() == Life::Leaving => established.farewell.deadline(),
            Phase::Established(established) => established.deadline(now),
        };
        earliest(phase, self.answer.is_due().then_some(now))
    }

    /// The events since the last call.
    pub(super) fn take_events(&mut self) -> impl Iterator<Item = Event> + '_ {
        self.standing.take_events()
    }

    // ---- facts ----

    /// Whether nothing is sent or received any more.
    pub(super) fn is_over(&self) -> bool {
        self.standing.is_over()
    }

    /// Whether it can be forgotten.
    pub(super) const fn is_done(&self) -> bool {
        self.standing.is_done()
    }

    /// Whether this side has closed it and still repeats its shutdown.
    pub(super) fn is_leaving(&self) -> bool {
        self.standing.life() == Life::Leaving
    }

    /// Whether the peer called.
    pub(super) const fn is_accepted(&self) -> bool {
        self.accepted
    }

    pub(super) fn stats(&self, now: Instant) -> Stats {
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
        self.offer.peer
    }

    fn was_heard(&self) -> bool {
        match &self.phase {
            Phase::Established(established) => established.was_heard(),
            Phase::Calling(_) => false,
        }
    }

    fn is_half_open(&self) -> bool {
        self.accepted && !self.was_heard() && self.standing.life().is_alive()
    }

    fn waits_for_application(&self) -> bool {
        self.standing.waits_for_application()
    }
}

/// The handshake packet in this datagram, if any, translated for UDT4's state machines.
pub(super) fn read_handshake(datagram: &[u8]) -> Option<Handshake> {
    // Checked first, because data packets come here as well.
    match is_handshake(datagram).then(|| Control::decode(datagram)) {
        Some(Ok(Control::Handshake(packet))) => Some(to_udt4(&packet)),
        _ => None,
    }
}
