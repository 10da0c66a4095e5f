//! The connections of an endpoint, as a protocol of its port sees them when it opens some.

use core::net::IpAddr;

use farhaul_units::{Instant, Rng};

use super::table::Table;
use crate::config::Config;
use crate::endpoint::connection::{Connection, Name, NewConnection, Phase};
use crate::endpoint::connection_state::ConnectionState;
use crate::endpoint::handshake::admission::Held;
use crate::endpoint::protocol::{Established, Opening, Setup};
use crate::endpoint::route::{Route, Source};
use crate::error::ConnectError;
use crate::event::ConnectionId;
use crate::transport::AddressPair;

/// The connections of an endpoint, for one of its protocols.
pub struct Connections<'a> {
    /// The settings of the protocol at this port.
    pub config: &'a Config,
    /// The randomness of the protocol's connections.
    pub rng: &'a mut Rng,
    protocol: usize,
    table: &'a mut Table,
}

impl<'a> Connections<'a> {
    /// The connections of `table` for one protocol.
    pub(crate) const fn new(config: &'a Config, rng: &'a mut Rng, protocol: usize, table: &'a mut Table) -> Self {
        Self { config, rng, protocol, table }
    }

    /// The connections of the protocol, closing ones included.
    pub fn held(&self) -> Held {
        self.table.slots.held(self.protocol)
    }

    /// The reason to open no further connection.
    ///
    /// # Errors
    /// The protocol has its most connections.
    pub fn check_room(&self) -> Result<(), ConnectError> {
        let most = self.config.max_connections;
        if self.held().connections < most { Ok(()) } else { Err(ConnectError::TooManyConnections(most)) }
    }

    // ---- opening ----

    /// Adds a connection that this side opens.
    pub fn open(&mut self, now: Instant, name: Name, opening: impl Opening) -> &Connection {
        let route = Route::to(name.peer, Source::OfRoutes);
        self.install(now, name, route, ConnectionState::opening, Phase::Opening(Box::new(opening)))
    }

    /// Adds a connection that both sides open. It answers from the address that the peer calls.
    pub fn meet(&mut self, now: Instant, name: Name, opening: impl Opening) -> &Connection {
        let route = Route::to(name.peer, Source::Asked(None));
        self.install(now, name, route, ConnectionState::opening, Phase::Opening(Box::new(opening)))
    }

    /// Adds a connection that a caller opens by a channel. The application learns of it once it is established.
    pub fn answer(&mut self, now: Instant, name: Name, opening: impl Opening) -> &Connection {
        let route = Route::from_host(name.peer.ip());
        self.install(now, name, route, ConnectionState::called, Phase::Opening(Box::new(opening)))
    }

    /// The same for a caller that opens it by datagrams. They come to `local`, an address of this side.
    pub fn answer_datagram(
        &mut self,
        now: Instant,
        (name, local): (Name, Option<IpAddr>),
        opening: impl Opening,
    ) -> &Connection {
        let route = Route::to(name.peer, Source::Asked(local));
        self.install(now, name, route, ConnectionState::called, Phase::Opening(Box::new(opening)))
    }

    /// Adds a connection that a caller opened by datagrams to `local`, and that the application must take.
    pub fn accept(
        &mut self,
        now: Instant,
        (name, local): (Name, Option<IpAddr>),
        established: impl Established,
    ) -> &Connection {
        let route = Route::to(name.peer, Source::Asked(local));
        self.install(now, name, route, ConnectionState::accepted, Phase::Established(Box::new(established)))
    }

    fn install(
        &mut self,
        now: Instant,
        name: Name,
        route: Route,
        state: impl FnOnce(ConnectionId) -> ConnectionState,
        phase: Phase,
    ) -> &Connection {
        let id = self.table.slots.reserve();
        let place = NewConnection { protocol: self.protocol, opened: now, linger: self.config.linger };
        self.table.mark(id.slot);
        self.table.slots.install(Connection::new(place, name, route, state(id), phase))
    }

    // ---- one of them ----

    /// The connection in a slot.
    pub fn at(&mut self, slot: u32) -> Option<&mut Connection> {
        self.table.at_mut(slot)
    }

    /// Changes a connection that is being opened, if its opening is of this type.
    pub fn on_opening<T: Opening>(&mut self, slot: u32, change: impl FnOnce(&mut T)) {
        if let Some(opening) = self.table.at_mut(slot).and_then(Connection::opening_as_mut) {
            change(opening);
            self.table.mark(slot);
        }
    }

    /// The peer of a connection that both sides open has called between these addresses.
    pub fn note_call(&mut self, slot: u32, between: AddressPair) {
        if let Some(connection) = self.table.at_mut(slot) {
            connection.note_call(between);
        }
    }

    /// Forgets a connection that a caller opens, and that the application does not know yet.
    pub fn evict(&mut self, slot: u32) -> Option<Connection> {
        self.table.forget(slot)
    }

    /// Delivers a datagram without a key.
    pub fn deliver_alone(&mut self, slot: u32, now: Instant, from: AddressPair, datagram: &mut [u8]) {
        self.table.deliver(slot, from, datagram, Setup { config: self.config, rng: &mut *self.rng, now });
        self.table.mark(slot);
    }

    /// A datagram was invalid or belonged to no connection.
    pub const fn count_invalid(&mut self) {
        self.table.count_invalid();
    }

    /// What a connection begins with.
    pub const fn setup(&mut self, now: Instant) -> Setup<'_> {
        Setup { config: self.config, rng: &mut *self.rng, now }
    }
}
