//! The connections of an endpoint, and the addresses that find them.

use core::net::SocketAddr;
use std::collections::BTreeMap;

use crate::event::ConnectionId;
use crate::shell::admission::Held;
use crate::shell::slots::{Occupant, Slots};
use crate::udt2004::connection::Connection;

/// All connections of an endpoint, by slot and by the peer's address.
#[derive(Default)]
pub(super) struct Table {
    slots: Slots<Connection>,
    /// Connections that are not over.
    by_peer: BTreeMap<SocketAddr, u32>,
}

impl Table {
    /// The connections held.
    pub(super) const fn held(&self) -> Held {
        self.slots.held()
    }

    /// The slot of the connection with this peer that is not over.
    pub(super) fn find(&self, peer: SocketAddr) -> Option<u32> {
        self.by_peer.get(&peer).copied()
    }

    /// The connection in a slot.
    pub(super) fn at(&mut self, slot: u32) -> Option<&mut Connection> {
        self.slots.at(slot)
    }

    /// The connection with this id, unless it was released.
    pub(super) fn get(&self, id: ConnectionId) -> Option<&Connection> {
        self.slots.get(id)
    }

    /// The same, mutable.
    pub(super) fn get_mut(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        self.slots.get_mut(id)
    }

    /// Installs the connection that `make` builds from its id; `None` if it builds none.
    pub(super) fn install(&mut self, make: impl FnOnce(ConnectionId) -> Option<Connection>) -> Option<ConnectionId> {
        let id = self.slots.reserve();
        let Some(connection) = make(id) else {
            self.slots.unreserve(id.slot);
            return None;
        };
        self.by_peer.insert(connection.peer(), id.slot);
        self.slots.install(connection);
        Some(id)
    }

    /// Updates the counts after a change of the connection. Returns the address of a caller that was heard for the
    /// first time.
    pub(super) fn update(&mut self, slot: u32) -> Option<SocketAddr> {
        let connection = self.slots.at(slot)?;
        let (over, peer) = (connection.is_over(), connection.peer());
        if over {
            self.give_up_address(peer, slot);
        }
        self.slots.update(slot)
    }

    /// Removes a connection and frees its slot.
    pub(super) fn forget(&mut self, slot: u32) {
        if let Some(connection) = self.slots.forget(slot) {
            self.give_up_address(connection.peer(), slot);
        }
    }

    /// Frees the address for another connection.
    fn give_up_address(&mut self, peer: SocketAddr, slot: u32) {
        if self.by_peer.get(&peer) == Some(&slot) {
            self.by_peer.remove(&peer);
        }
    }
}
