//! Finds the connection of a datagram by its tag, and admits callers.

use core::net::SocketAddr;
use std::collections::BTreeMap;

use farhaul_units::Instant;
use farhaul_wire::blast::Tag;

use super::engine;
use super::opening::BlastOpening;
use farhaul_proto::endpoint::Connections;
use farhaul_proto::endpoint::Demultiplexer;
use farhaul_proto::endpoint::connection::{Connection, Name};
use farhaul_proto::endpoint::control_channel::ControlChannel;
use farhaul_proto::endpoint::handshake::admission::Admission;
use farhaul_proto::endpoint::handshake::{Room, mss_towards};
use farhaul_proto::endpoint::protocol::{self, Carried};
use farhaul_proto::entropy::Secrets;
use farhaul_proto::error::ConnectError;
use farhaul_proto::event::ConnectionId;
use farhaul_proto::transport::{AddressPair, ConnectOptions};
use farhaul_proto::{Config, Entropy, Mode};

/// Bytes of IPv4 and of UDP headers, which the packet size includes.
const HEADERS: u32 = 28;

/// The connections of an endpoint by tag, and its callers.
pub(crate) struct Tags<P: engine::Protocol> {
    options: P::Options,
    secrets: Secrets,
    listens: bool,
    admission: Admission,
    by_tag: BTreeMap<Tag, u32>,
}

impl<P: engine::Protocol> Tags<P> {
    pub(super) fn new(options: P::Options, entropy: Entropy) -> Self {
        Self {
            options,
            secrets: Secrets::new(entropy.cookie_key),
            listens: false,
            admission: Admission::new(entropy.cookie_key),
            by_tag: BTreeMap::new(),
        }
    }

    fn new_tag(&mut self) -> Tag {
        loop {
            let tag = Tag(u64::from(self.secrets.draw()) << 32 | u64::from(self.secrets.draw()));
            if !self.by_tag.contains_key(&tag) {
                return tag;
            }
        }
    }

    /// A new connection on `line`; `called` is whether this side called.
    fn begin(
        &mut self,
        (config, mss): (&Config, u32),
        now: Instant,
        peer: SocketAddr,
        (line, called): (ControlChannel, bool),
    ) -> (Name, BlastOpening<P>) {
        let tag = self.new_tag();
        let datagram = u16::try_from(mss_towards(peer.ip(), mss) - HEADERS).unwrap_or(u16::MAX);
        let opening = BlastOpening::new(&self.options, (line, called), (tag, datagram), config, now);
        (Name { key: tag.0, peer, mode: Mode::Stream }, opening)
    }

    /// The endpoint has a new connection.
    fn enter(&mut self, connection: &Connection) -> ConnectionId {
        self.by_tag.insert(Tag(connection.key()), connection.id().slot);
        connection.id()
    }
}

impl<P: engine::Protocol> Demultiplexer for Tags<P> {
    fn key(&self, _from: SocketAddr, datagram: &[u8]) -> Option<u64> {
        Tag::split(datagram).ok().map(|(tag, _)| tag.0)
    }

    fn find(&self, _from: AddressPair, key: u64) -> Option<u32> {
        self.by_tag.get(&Tag(key)).copied()
    }

    /// Callers open a channel, so a datagram without a tag is nobody's.
    fn on_unaddressed(
        &mut self,
        connections: &mut Connections<'_>,
        _now: Instant,
        _from: AddressPair,
        _datagram: &mut [u8],
    ) {
        connections.count_invalid();
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
        connections.check_room()?;
        let (name, opening) =
            self.begin((connections.config, connections.config.mss), now, peer, (ControlChannel::wanted(), true));
        Ok(self.enter(connections.open(now, name, opening)))
    }

    fn listen(&mut self, mode: Option<Mode>) -> Result<(), ConnectError> {
        if mode == Some(Mode::Message) {
            return Err(ConnectError::StreamsOnly);
        }
        self.listens = mode.is_some();
        Ok(())
    }

    fn needs_channels(&self) -> bool {
        true
    }

    fn accept_channel(
        &mut self,
        connections: &mut Connections<'_>,
        now: Instant,
        from: SocketAddr,
    ) -> Option<ConnectionId> {
        let room = self.admission.room(from.ip(), now, connections.held(), connections.config);
        if !self.listens || room != Room::Free {
            return None;
        }
        let (name, opening) =
            self.begin((connections.config, connections.config.mss), now, from, (ControlChannel::accepted(), false));
        self.admission.on_accepted(from.ip(), now);
        Some(self.enter(connections.answer(now, name, opening)))
    }

    fn on_changed(&mut self, _connection: &Connection) {}

    fn on_forgotten(&mut self, connection: &Connection) {
        self.by_tag.remove(&Tag(connection.key()));
    }

    fn on_caller_heard(&mut self, caller: SocketAddr) {
        self.admission.on_heard(caller.ip());
    }
}

impl<P: engine::Protocol> Carried for Tags<P> {
    fn needs_channel(&self) -> bool {
        true
    }

    fn call(&mut self, peer: SocketAddr, mss: u32, config: &Config, now: Instant) -> Box<dyn protocol::Opening> {
        Box::new(self.begin((config, mss), now, peer, (ControlChannel::wanted(), true)).1)
    }

    fn answer(&mut self, peer: SocketAddr, mss: u32, config: &Config, now: Instant) -> Box<dyn protocol::Opening> {
        Box::new(self.begin((config, mss), now, peer, (ControlChannel::accepted(), false)).1)
    }
}
