//! Finds the connection of a datagram by its socket id, and receives callers.

use core::net::SocketAddr;
use std::collections::BTreeMap;

use farhaul_units::{Instant, SeqNo};
use farhaul_wire::udt4::{Control, Handshake, Request, SocketId, Timestamp, destination, is_control};

use super::endpoint::ConnectOptions;
use super::established::{Established, Role};
use super::opening::Opening;
use crate::config::{Config, Mode};
use crate::error::ConnectError;
use crate::event::ConnectionId;
use crate::shell::connection::{Connection, Name};
use crate::shell::endpoint::Shell;
use crate::shell::handshake::{Offer, Reception, mss_towards};
use crate::shell::protocol::{Protocol, Setup};
use crate::shell::slots::Occupant;

/// The connections of an endpoint by the keys that find them, and its callers.
pub(crate) struct Router {
    pub(super) reception: Reception,
    by_id: BTreeMap<u32, u32>,
    /// Accepted connections by the caller's address and socket id, so that a repeated conclusion finds its connection.
    by_caller: BTreeMap<(SocketAddr, u32), u32>,
    /// Rendezvous in progress, by address.
    meetings: BTreeMap<SocketAddr, u32>,
}

impl Router {
    pub(super) const fn new(reception: Reception) -> Self {
        Self { reception, by_id: BTreeMap::new(), by_caller: BTreeMap::new(), meetings: BTreeMap::new() }
    }

    /// Opens a connection with options.
    pub(super) fn connect_with(
        shell: &mut Shell<Self>,
        now: Instant,
        peer: SocketAddr,
        options: ConnectOptions,
    ) -> Result<ConnectionId, ConnectError> {
        if options.rendezvous && shell.protocol.meetings.contains_key(&peer) {
            return Err(ConnectError::RendezvousUnderWay);
        }
        let router = &mut shell.protocol;
        let isn = shell.config.udt.initial_seq.unwrap_or_else(|| SeqNo::new(router.reception.draw()));
        shell.check_room()?;
        let offer = shell.protocol.offer(&shell.config, peer, options.mode, isn);
        let open = if options.rendezvous { Opening::meet } else { Opening::call };
        let opening = open(offer, &shell.config, now);
        Ok(shell.open(now, name(&offer), opening))
    }

    /// Accepts a caller that has returned its cookie.
    fn accept(shell: &mut Shell<Self>, now: Instant, packet: &Handshake, (from, mode): (SocketAddr, Mode)) {
        // Both directions start with the caller's number, because callers accept no other.
        let offer = shell.protocol.offer(&shell.config, from, mode, packet.isn);
        let Ok(agreed) = offer.agree(packet, None) else { return };
        let setup = Setup { config: &shell.config, rng: &mut shell.rng, now };
        let mut established = Established::new(agreed, offer, Role::Listener, now, setup);
        established.answer.give(Request::Conclusion, packet.cookie);
        shell.protocol.reception.on_accepted(from.ip(), now);
        shell.accept(now, name(&offer), established);
    }

    /// This side's contribution to a handshake, with a new socket id.
    fn offer(&mut self, config: &Config, peer: SocketAddr, mode: Mode, isn: SeqNo) -> Offer {
        Offer {
            mode,
            isn,
            mss: mss_towards(peer.ip(), config.mss),
            largest: config.largest_mss.map(|largest| mss_towards(peer.ip(), largest)),
            wants_receipts: (config.controller)(0).wants_deliveries(),
            flow_window: config.recv_window(config.udt.max_flow_window),
            max_flow_window: config.udt.max_flow_window,
            socket_id: self.new_socket_id(),
            peer,
        }
    }

    fn new_socket_id(&mut self) -> SocketId {
        loop {
            let id = SocketId::new(self.reception.draw());
            if !id.is_none() && self.find(id).is_none() {
                return id;
            }
        }
    }

    /// The connection that a datagram for socket id 0 concerns: the rendezvous with its sender, or the connection that
    /// a caller requests again.
    fn find_peer(&self, from: SocketAddr, packet: Option<&Handshake>) -> Option<u32> {
        let again = packet.filter(|packet| packet.request == Request::Conclusion);
        let meeting = self.meetings.get(&from).copied();
        meeting.or_else(|| self.by_caller.get(&(from, again?.socket_id.value())).copied())
    }

    fn end_meeting(&mut self, connection: &Connection<Self>) {
        let peer = connection.peer();
        if self.meetings.get(&peer) == Some(&connection.id().slot) {
            self.meetings.remove(&peer);
        }
    }
}

impl Protocol for Router {
    type Key = SocketId;
    type Opening = Opening;
    type Established = Established;

    fn key(_from: SocketAddr, datagram: &[u8]) -> Option<SocketId> {
        destination(datagram).filter(|id| !id.is_none())
    }

    fn find(&self, id: SocketId) -> Option<u32> {
        self.by_id.get(&id.value()).copied()
    }

    /// A datagram for socket id 0, from a caller or the peer of a rendezvous. Or one that is too short for an id.
    fn on_unaddressed(shell: &mut Shell<Self>, now: Instant, from: SocketAddr, datagram: &mut [u8]) {
        match destination(datagram) {
            None => return shell.count_invalid(),
            Some(_) if !is_control(datagram) => return,
            Some(_) => {}
        }
        let packet = match Control::decode(datagram) {
            Ok((_, _, Control::Handshake(packet))) => Some(packet),
            _ => None,
        };
        if let Some(slot) = shell.protocol.find_peer(from, packet.as_ref()) {
            shell.deliver_alone(slot, now, from, datagram);
            return;
        }
        // Only a complete handshake is answered, and with no more bytes than it has (attack A11).
        let Some(packet) = packet else { return shell.count_invalid() };
        let held = shell.held();
        let mode = shell.protocol.reception.on_call(&packet, from, now, (held, &shell.config));
        if let Some(mode) = mode {
            Self::accept(shell, now, &packet, (from, mode));
        }
    }

    fn connect(shell: &mut Shell<Self>, now: Instant, peer: SocketAddr) -> Result<ConnectionId, ConnectError> {
        Self::connect_with(shell, now, peer, ConnectOptions::default())
    }

    fn on_entered(&mut self, connection: &Connection<Self>) {
        let (slot, peer) = (connection.id().slot, connection.peer());
        self.by_id.insert(connection.key().value(), slot);
        if let Some(caller) = caller(connection) {
            self.by_caller.insert((peer, caller.value()), slot);
        }
        if is_meeting(connection) {
            self.meetings.insert(peer, slot);
        }
    }

    fn on_changed(&mut self, connection: &Connection<Self>) {
        if !is_meeting(connection) {
            self.end_meeting(connection);
        }
    }

    fn on_forgotten(&mut self, connection: &Connection<Self>) {
        self.by_id.remove(&connection.key().value());
        if let Some(caller) = caller(connection) {
            self.by_caller.remove(&(connection.peer(), caller.value()));
        }
        self.end_meeting(connection);
    }

    fn on_caller_heard(&mut self, caller: SocketAddr) {
        self.reception.on_heard(caller.ip());
    }

    fn poll_reply(&mut self, out: &mut Vec<u8>) -> Option<SocketAddr> {
        let (to, reply) = self.reception.pop_reply()?;
        Control::Handshake(reply).encode(Timestamp::ZERO, reply.socket_id, out);
        Some(to)
    }

    fn has_reply(&self) -> bool {
        self.reception.has_reply()
    }
}

const fn name(offer: &Offer) -> Name<SocketId> {
    Name { key: offer.socket_id, peer: offer.peer, mode: offer.mode }
}

/// The caller's own socket id; `None` if this side called.
fn caller(connection: &Connection<Router>) -> Option<SocketId> {
    connection.established().filter(|_| connection.is_accepted()).map(Established::peer_id)
}

/// Whether it is a rendezvous that is not complete.
fn is_meeting(connection: &Connection<Router>) -> bool {
    connection.as_opening().is_some_and(Opening::is_meeting)
}
