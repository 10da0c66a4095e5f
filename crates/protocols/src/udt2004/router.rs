//! Finds the connection of a datagram by its address, and receives callers.

use core::net::SocketAddr;
use std::collections::BTreeMap;

use farhaul_units::{Instant, SeqNo};
use farhaul_wire::udt4::{Handshake, Request, SocketId};
use farhaul_wire::udt2004::{Control, SeqNo30, is_handshake};

use super::Options;
use super::called::Called;
use super::established::Udt2004Connection;
use super::handshake::{from_udt4, offer, read_handshake};
use super::opening::Udt2004Opening;
use farhaul_proto::config::{Config, Mode};
use farhaul_proto::endpoint::Connections;
use farhaul_proto::endpoint::Demultiplexer;
use farhaul_proto::endpoint::connection::{Connection, Name};
use farhaul_proto::endpoint::handshake::Reception;
use farhaul_proto::endpoint::protocol::{self, Carried};
use farhaul_proto::error::ConnectError;
use farhaul_proto::event::ConnectionId;
use farhaul_proto::transport::{AddressPair, ConnectOptions};

/// The key of every connection: its packets name none.
const KEY: u64 = 0;

/// The connections of an endpoint by address, and its callers.
pub(crate) struct Router {
    reception: Reception,
    options: Options,
    /// Connections that are not over. Those of callers are known by the address that the caller asked as well.
    by_addresses: BTreeMap<AddressPair, u32>,
}

impl Router {
    /// Without connections. `key` must be secret.
    pub(super) fn new(key: [u8; 16], options: Options) -> Self {
        Self { reception: Reception::new(key), options, by_addresses: BTreeMap::new() }
    }

    /// Accepts a caller that has returned its cookie, unless its packets are too small.
    fn accept(&mut self, connections: &mut Connections<'_>, now: Instant, from: AddressPair, packet: &Handshake) {
        let mss = connections.config.mss;
        let Some(established) =
            Udt2004Connection::accepted(packet, (from.peer, mss), self.options, connections.setup(now))
        else {
            return;
        };
        self.reception.on_accepted(from.peer.ip(), now);
        self.enter(connections.accept(now, (name(from.peer), from.local), established));
    }

    /// A call of a peer whose packets have at most `mss` bytes.
    fn call_within(&mut self, mss: u32, peer: SocketAddr, config: &Config, now: Instant) -> Udt2004Opening {
        let isn = config.initial_seq.unwrap_or_else(|| SeqNo::new(self.reception.draw()));
        let isn = SeqNo::new(SeqNo30::from(isn).value());
        // Never zero, which means no connection.
        let connection = SocketId::new(self.reception.draw() | 1);
        Udt2004Opening::new(offer((config, mss), peer, isn, connection), self.options, now, config.connect_timeout)
    }

    /// The endpoint has a new connection.
    fn enter(&mut self, connection: &Connection) -> ConnectionId {
        self.by_addresses.insert(connection.between(), connection.id().slot);
        connection.id()
    }

    /// Frees the address for another connection.
    fn give_up_address(&mut self, connection: &Connection) {
        let between = connection.between();
        if self.by_addresses.get(&between) == Some(&connection.id().slot) {
            self.by_addresses.remove(&between);
        }
    }
}

impl Demultiplexer for Router {
    /// Two addresses have one connection.
    fn key(&self, _from: SocketAddr, datagram: &[u8]) -> Option<u64> {
        // A handshake may be meant for the listener.
        (!is_handshake(datagram)).then_some(KEY)
    }

    fn find(&self, from: AddressPair, _key: u64) -> Option<u32> {
        // This side's calls leave from the address that the system chooses.
        self.by_addresses.get(&from).or_else(|| self.by_addresses.get(&from.peer.into())).copied()
    }

    /// A handshake. Only a complete one of a caller is answered, and with no more bytes than it has (attack A11).
    fn on_unaddressed(
        &mut self,
        connections: &mut Connections<'_>,
        now: Instant,
        from: AddressPair,
        datagram: &mut [u8],
    ) {
        let packet = read_handshake(datagram);
        // A caller that does not know that its connection is established may request another cookie.
        let asks_listener = packet.is_some_and(|packet| packet.request == Request::Induction);
        if let Some(slot) = self.find(from, KEY)
            && let Some(connection) = connections.at(slot)
            && !(asks_listener && connection.is_accepted())
        {
            connections.deliver_alone(slot, now, from, datagram);
            return;
        }
        let Some(packet) = packet else { return connections.count_invalid() };
        let held = connections.held();
        if self.reception.on_call(&packet, from, now, (held, connections.config)).is_some() {
            self.accept(connections, now, from, &packet);
        }
    }

    fn connect(
        &mut self,
        connections: &mut Connections<'_>,
        now: Instant,
        peer: SocketAddr,
        options: ConnectOptions,
    ) -> Result<ConnectionId, ConnectError> {
        if options != ConnectOptions::default() {
            return Err(ConnectError::StreamsOnly);
        }
        if self.by_addresses.contains_key(&peer.into()) {
            return Err(ConnectError::AlreadyConnected);
        }
        connections.check_room()?;
        let opening = self.call_within(connections.config.mss, peer, connections.config, now);
        Ok(self.enter(connections.open(now, name(peer), opening)))
    }

    fn listen(&mut self, mode: Option<Mode>) -> Result<(), ConnectError> {
        if mode == Some(Mode::Message) {
            return Err(ConnectError::StreamsOnly);
        }
        self.reception.listen(mode);
        Ok(())
    }

    fn on_changed(&mut self, connection: &Connection) {
        if connection.is_closed() {
            self.give_up_address(connection);
        }
    }

    fn on_forgotten(&mut self, connection: &Connection) {
        self.give_up_address(connection);
    }

    fn on_caller_heard(&mut self, caller: SocketAddr) {
        self.reception.on_heard(caller.ip());
    }

    fn poll_reply(&mut self, out: &mut Vec<u8>) -> Option<AddressPair> {
        let (between, reply) = self.reception.pop_reply()?;
        Control::Handshake(from_udt4(&reply)).encode(out);
        Some(between)
    }

    fn has_reply(&self) -> bool {
        self.reception.has_reply()
    }
}

impl Carried for Router {
    fn needs_channel(&self) -> bool {
        false
    }

    fn call(&mut self, peer: SocketAddr, mss: u32, config: &Config, now: Instant) -> Box<dyn protocol::Opening> {
        Box::new(self.call_within(mss, peer, config, now))
    }

    fn answer(&mut self, peer: SocketAddr, mss: u32, _config: &Config, now: Instant) -> Box<dyn protocol::Opening> {
        let mut key = [0; 16];
        key.chunks_mut(4).for_each(|chunk| chunk.copy_from_slice(&self.reception.draw().to_be_bytes()));
        Box::new(Called::new((key, self.options), (peer, mss), now))
    }
}

const fn name(peer: SocketAddr) -> Name {
    Name { key: KEY, peer, mode: Mode::Stream }
}
