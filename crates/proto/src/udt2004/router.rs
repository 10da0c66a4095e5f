//! Finds the connection of a datagram by its address, and receives callers.

use core::net::SocketAddr;
use std::collections::BTreeMap;

use farhaul_units::{Instant, SeqNo};
use farhaul_wire::udt4::{Handshake, Request, SocketId};
use farhaul_wire::udt2004::{Control, SeqNo30, is_handshake};

use super::established::Established;
use super::handshake::{from_udt4, read_handshake};
use super::opening::Opening;
use crate::config::{Config, Mode};
use crate::error::ConnectError;
use crate::event::ConnectionId;
use crate::shell::connection::{Connection, Name};
use crate::shell::endpoint::Shell;
use crate::shell::handshake::{Answer, Offer, Reception, mss_towards};
use crate::shell::protocol::{Protocol, Setup};
use crate::shell::slots::Occupant;

/// The connections of an endpoint by address, and its callers.
pub(crate) struct Router {
    pub(super) reception: Reception,
    /// Connections that are not over.
    by_peer: BTreeMap<SocketAddr, u32>,
}

impl Router {
    pub(super) const fn new(reception: Reception) -> Self {
        Self { reception, by_peer: BTreeMap::new() }
    }

    /// Accepts a caller that has returned its cookie, unless its packets are too small.
    fn accept(shell: &mut Shell<Self>, now: Instant, from: SocketAddr, packet: &Handshake) {
        let offer = offer(&shell.config, from, packet.isn, packet.socket_id);
        let Ok(agreed) = offer.agree(packet, None) else { return };
        let mut answer = Answer::new(offer, agreed);
        answer.give(Request::Conclusion, packet.cookie);
        let setup = Setup { config: &shell.config, rng: &mut shell.rng, now };
        let established = Established::new(&agreed, &offer, Some(answer), setup);
        shell.protocol.reception.on_accepted(from.ip(), now);
        shell.accept(now, name(from), established);
    }

    /// Frees the address for another connection.
    fn give_up_address(&mut self, connection: &Connection<Self>) {
        let peer = connection.peer();
        if self.by_peer.get(&peer) == Some(&connection.id().slot) {
            self.by_peer.remove(&peer);
        }
    }
}

impl Protocol for Router {
    type Key = SocketAddr;
    type Opening = Opening;
    type Established = Established;

    fn key(from: SocketAddr, datagram: &[u8]) -> Option<SocketAddr> {
        // A handshake may be meant for the listener.
        (!is_handshake(datagram)).then_some(from)
    }

    fn find(&self, peer: SocketAddr) -> Option<u32> {
        self.by_peer.get(&peer).copied()
    }

    /// A handshake. Only a complete one of a caller is answered, and with no more bytes than it has (attack A11).
    fn on_unaddressed(shell: &mut Shell<Self>, now: Instant, from: SocketAddr, datagram: &mut [u8]) {
        let packet = read_handshake(datagram);
        // A caller that does not know that its connection is established may request another cookie.
        let asks_listener = packet.is_some_and(|packet| packet.request == Request::Induction);
        if let Some(slot) = shell.protocol.find(from)
            && let Some(connection) = shell.at(slot)
            && !(asks_listener && connection.is_accepted())
        {
            shell.deliver_alone(slot, now, from, datagram);
            return;
        }
        let Some(packet) = packet else { return shell.count_invalid() };
        let held = shell.held();
        if shell.protocol.reception.on_call(&packet, from, now, (held, &shell.config)).is_some() {
            Self::accept(shell, now, from, &packet);
        }
    }

    fn connect(shell: &mut Shell<Self>, now: Instant, peer: SocketAddr) -> Result<ConnectionId, ConnectError> {
        if shell.protocol.find(peer).is_some() {
            return Err(ConnectError::AlreadyConnected);
        }
        shell.check_room()?;
        let reception = &mut shell.protocol.reception;
        let isn = shell.config.udt2004.initial_seq.unwrap_or_else(|| SeqNo::new(reception.draw()));
        let isn = SeqNo::new(SeqNo30::from(isn).value());
        // Never zero, which means no connection.
        let connection = SocketId::new(reception.draw() | 1);
        let offer = offer(&shell.config, peer, isn, connection);
        Ok(shell.open(now, name(peer), Opening::new(offer, now, shell.config.connect_timeout)))
    }

    fn on_entered(&mut self, connection: &Connection<Self>) {
        self.by_peer.insert(connection.peer(), connection.id().slot);
    }

    fn on_changed(&mut self, connection: &Connection<Self>) {
        if connection.is_over() {
            self.give_up_address(connection);
        }
    }

    fn on_forgotten(&mut self, connection: &Connection<Self>) {
        self.give_up_address(connection);
    }

    fn on_caller_heard(&mut self, caller: SocketAddr) {
        self.reception.on_heard(caller.ip());
    }

    fn poll_reply(&mut self, out: &mut Vec<u8>) -> Option<SocketAddr> {
        let (to, reply) = self.reception.pop_reply()?;
        Control::Handshake(from_udt4(&reply)).encode(out);
        Some(to)
    }

    fn has_reply(&self) -> bool {
        self.reception.has_reply()
    }
}

const fn name(peer: SocketAddr) -> Name<SocketAddr> {
    Name { key: peer, peer, mode: Mode::Stream }
}

/// This side's contribution to a handshake. The window is half of the buffer. The other half is for data that the
/// application has not read.
fn offer(config: &Config, peer: SocketAddr, isn: SeqNo, connection: SocketId) -> Offer {
    Offer {
        mode: Mode::Stream,
        isn,
        mss: mss_towards(peer.ip(), config.mss),
        largest: None,
        wants_receipts: false,
        flow_window: (config.recv_window(config.udt2004.max_flow_window) / 2).max(2),
        max_flow_window: config.udt2004.max_flow_window,
        socket_id: connection,
        peer,
    }
}
