//! Finds the connection of a datagram by its socket id, and receives callers.
//!
//! Beside secure connections on one port, it takes plain datagrams from admitted networks alone. These are compared before
//! anything is kept or answered, and UDT4's cookie then proves the address, as on a plain port. Protected packets never come here, and
//! plain datagrams never reach the secure protocol. So neither kind of client turns a connection of the other kind into its own.

use core::cell::Cell;
use core::net::SocketAddr;
use std::collections::BTreeMap;

use farhaul_units::{Instant, Network, SeqNo};
use farhaul_wire::secure::is_protected;
use farhaul_wire::udt4::{Control, Handshake, Request, SocketId, Timestamp, destination, is_control};

use super::established::{Role, UdtConnection};
use super::opening::UdtOpening;
use crate::config::{Config, Mode};
use crate::endpoint::Connections;
use crate::endpoint::Demultiplexer;
use crate::endpoint::connection::Connection;
use crate::endpoint::handshake::{Offer, Reception, mss_towards};
use crate::error::ConnectError;
use crate::event::ConnectionId;
use crate::transport::{AddressPair, ConnectOptions};

/// The connections of an endpoint by the keys that find them, and its callers.
pub(crate) struct Router {
    reception: Reception,
    /// The networks of callers; `None` for all.
    admitted: Option<Vec<Network>>,
    by_id: BTreeMap<u64, u32>,
    /// The connection that was found last, which usually gets the next datagram too.
    found: Cell<Option<(u64, u32)>>,
    /// Accepted connections by the caller's address and socket id, so that a repeated conclusion finds its connection.
    by_caller: BTreeMap<(SocketAddr, u32), u32>,
    /// Rendezvous in progress, by address.
    rendezvous: BTreeMap<SocketAddr, u32>,
}

impl Router {
    /// Without connections, for callers from these networks; `None` for all. `key` must be secret.
    pub(crate) fn new(key: [u8; 16], admitted: Option<Vec<Network>>) -> Self {
        let (by_id, by_caller, rendezvous) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { reception: Reception::new(key), admitted, by_id, found: Cell::new(None), by_caller, rendezvous }
    }

    /// Accepts a caller that has returned its cookie.
    fn accept(
        &mut self,
        connections: &mut Connections<'_>,
        now: Instant,
        packet: &Handshake,
        (from, mode): (AddressPair, Mode),
    ) {
        // Both directions start with the caller's number, because callers accept no other.
        let offer = self.offer(connections.config, from.peer, mode, packet.isn);
        let Ok(agreed) = offer.agree(packet, None) else { return };
        let mut established = UdtConnection::new(agreed, offer, Role::Listener, now, connections.setup(now));
        established.answer.give(Request::Conclusion, packet.cookie);
        self.reception.on_accepted(from.peer.ip(), now);
        self.enter(connections.accept(now, (offer.name(), from.local), established));
    }

    /// The endpoint has a new connection.
    fn enter(&mut self, connection: &Connection) -> ConnectionId {
        let (id, peer) = (connection.id(), connection.peer());
        self.by_id.insert(connection.key(), id.slot);
        if let Some(caller) = caller(connection) {
            self.by_caller.insert((peer, caller.value()), id.slot);
        }
        if is_rendezvous(connection) {
            self.rendezvous.insert(peer, id.slot);
        }
        id
    }

    /// This side's contribution to a handshake, with a new socket id.
    fn offer(&mut self, config: &Config, peer: SocketAddr, mode: Mode, isn: SeqNo) -> Offer {
        let is_ours = !config.udt.answers_as_libudt;
        Offer {
            mode,
            isn,
            mss: mss_towards(peer.ip(), config.mss),
            largest: config.largest_mss.filter(|_| is_ours).map(|largest| mss_towards(peer.ip(), largest)),
            wants_receipts: is_ours && config.supervised(0).wants_deliveries(),
            is_ours,
            flow_window: config.recv_window(),
            max_flow_window: config.max_flow_window,
            socket_id: self.new_socket_id(),
            peer,
        }
    }

    fn new_socket_id(&mut self) -> SocketId {
        loop {
            let id = SocketId::new(self.reception.draw());
            if !id.is_none() && !self.by_id.contains_key(&id.value().into()) {
                return id;
            }
        }
    }

    /// The connection that a datagram for socket id 0 concerns: the rendezvous with its sender, or the connection that
    /// a caller requests again.
    fn find_peer(&self, from: SocketAddr, packet: Option<&Handshake>) -> Option<u32> {
        let again = packet.filter(|packet| packet.request == Request::Conclusion);
        let rendezvous = self.rendezvous.get(&from).copied();
        rendezvous.or_else(|| self.by_caller.get(&(from, again?.socket_id.value())).copied())
    }

    fn end_rendezvous(&mut self, connection: &Connection) {
        let peer = connection.peer();
        if self.rendezvous.get(&peer) == Some(&connection.id().slot) {
            self.rendezvous.remove(&peer);
        }
    }
}

impl Demultiplexer for Router {
    fn recognizes(&self, from: SocketAddr, datagram: &[u8]) -> bool {
        let admits = |networks: &Vec<Network>| networks.iter().any(|network| network.contains(from.ip()));
        !is_protected(datagram) && self.admitted.as_ref().is_none_or(admits)
    }

    fn key(&self, _from: SocketAddr, datagram: &[u8]) -> Option<u64> {
        destination(datagram).filter(|id| !id.is_none()).map(|id| id.value().into())
    }

    fn find(&self, _from: AddressPair, key: u64) -> Option<u32> {
        if let Some((found, slot)) = self.found.get()
            && found == key
        {
            return Some(slot);
        }
        let slot = self.by_id.get(&key).copied()?;
        self.found.set(Some((key, slot)));
        Some(slot)
    }

    /// A datagram for socket id 0, from a caller or the peer of a rendezvous. Or one that is too short for an id.
    fn on_unaddressed(
        &mut self,
        connections: &mut Connections<'_>,
        now: Instant,
        from: AddressPair,
        datagram: &mut [u8],
    ) {
        match destination(datagram) {
            None => return connections.count_invalid(),
            Some(_) if !is_control(datagram) => return,
            Some(_) => {}
        }
        let packet = match Control::decode(datagram) {
            Ok((_, _, Control::Handshake(packet))) => Some(packet),
            _ => None,
        };
        if let Some(slot) = self.find_peer(from.peer, packet.as_ref()) {
            connections.deliver_alone(slot, now, from, datagram);
            return;
        }
        // Only a complete handshake is answered, and with no more bytes than it has (attack A11).
        let Some(packet) = packet else { return connections.count_invalid() };
        let mode = self.reception.on_call(&packet, from, now, (connections.held(), connections.config));
        if let Some(mode) = mode {
            self.accept(connections, now, &packet, (from, mode));
        }
    }

    fn connect(
        &mut self,
        connections: &mut Connections<'_>,
        now: Instant,
        peer: SocketAddr,
        options: ConnectOptions,
    ) -> Result<ConnectionId, ConnectError> {
        if options.rendezvous && self.rendezvous.contains_key(&peer) {
            return Err(ConnectError::RendezvousUnderWay);
        }
        let isn = connections.config.initial_seq.unwrap_or_else(|| SeqNo::new(self.reception.draw()));
        connections.check_room()?;
        let offer = self.offer(connections.config, peer, options.mode, isn);
        let config = connections.config;
        Ok(self.enter(match options.rendezvous {
            true => connections.meet(now, offer.name(), UdtOpening::meet(offer, config, now)),
            false => connections.open(now, offer.name(), UdtOpening::call(offer, config, now)),
        }))
    }

    fn listen(&mut self, mode: Option<Mode>) -> Result<(), ConnectError> {
        self.reception.listen(mode);
        Ok(())
    }

    fn admit(&mut self, networks: &[Network]) -> bool {
        let Some(admitted) = &mut self.admitted else { return false };
        *admitted = networks.to_vec();
        true
    }

    fn on_changed(&mut self, connection: &Connection) {
        if !self.rendezvous.is_empty() && !is_rendezvous(connection) {
            self.end_rendezvous(connection);
        }
    }

    fn on_forgotten(&mut self, connection: &Connection) {
        self.by_id.remove(&connection.key());
        self.found.set(None);
        if let Some(caller) = caller(connection) {
            self.by_caller.remove(&(connection.peer(), caller.value()));
        }
        self.end_rendezvous(connection);
    }

    fn on_caller_heard(&mut self, caller: SocketAddr) {
        self.reception.on_heard(caller.ip());
    }

    fn poll_reply(&mut self, out: &mut Vec<u8>) -> Option<AddressPair> {
        let (between, reply) = self.reception.pop_reply()?;
        Control::Handshake(reply).encode(Timestamp::ZERO, reply.socket_id, out);
        Some(between)
    }

    fn has_reply(&self) -> bool {
        self.reception.has_reply()
    }
}

/// The caller's own socket id; `None` if this side called.
fn caller(connection: &Connection) -> Option<SocketId> {
    connection.established_as().filter(|_| connection.is_accepted()).map(UdtConnection::peer_id)
}

/// Whether it is a rendezvous that is not complete.
fn is_rendezvous(connection: &Connection) -> bool {
    connection.opening_as().is_some_and(UdtOpening::is_rendezvous)
}
