//! The connections of an endpoint, and the keys that find them.

use core::net::SocketAddr;
use std::collections::BTreeMap;

use farhaul_wire::udt4::SocketId;

use crate::event::ConnectionId;
use crate::shell::admission::Held;
use crate::shell::slots::{Occupant, Slots};
use crate::udt::connection::Connection;

/// All connections of an endpoint, by slot, by socket id, by caller, and by rendezvous.
#[derive(Default)]
pub(super) struct Table {
    slots: Slots<Connection>,
    by_id: BTreeMap<u32, u32>,
    /// Accepted connections by the caller's address and socket id, so that a repeated conclusion finds its connection.
    by_caller: BTreeMap<(SocketAddr, u32), u32>,
    /// Rendezvous in progress, by address.
    meetings: BTreeMap<SocketAddr, u32>,
}

impl Table {
    /// The connections held.
    pub(super) const fn held(&self) -> Held {
        self.slots.held()
    }

    // ---- finding ----

    /// The slot of the connection with this socket id.
    pub(super) fn find(&self, id: SocketId) -> Option<u32> {
        self.by_id.get(&id.value()).copied()
    }

    /// The slot of the connection that this caller opened.
    pub(super) fn find_caller(&self, from: SocketAddr, id: SocketId) -> Option<u32> {
        self.by_caller.get(&(from, id.value())).copied()
    }

    /// The slot of the rendezvous in progress with this address.
    pub(super) fn find_meeting(&self, with: SocketAddr) -> Option<u32> {
        self.meetings.get(&with).copied()
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

    // ---- coming and going ----

    /// Reserves a slot for a connection with this socket id.
    pub(super) fn reserve(&mut self, socket_id: SocketId) -> ConnectionId {
        let id = self.slots.reserve();
        self.by_id.insert(socket_id.value(), id.slot);
        id
    }

    /// Frees a reserved slot that stayed empty.
    pub(super) fn unreserve(&mut self, slot: u32, socket_id: SocketId) {
        self.by_id.remove(&socket_id.value());
        self.slots.unreserve(slot);
    }

    /// Puts a connection into its reserved slot.
    pub(super) fn install(&mut self, connection: Connection) {
        let slot = connection.id().slot;
        if let Some(caller) = connection.caller() {
            self.by_caller.insert((connection.peer(), caller.value()), slot);
        }
        if connection.is_meeting() {
            self.meetings.insert(connection.peer(), slot);
        }
        self.slots.install(connection);
    }

    /// Updates the counts after a change of the connection. Returns the address of a caller that was heard for the
    /// first time.
    pub(super) fn update(&mut self, slot: u32) -> Option<SocketAddr> {
        let connection = self.slots.at(slot)?;
        let (meeting, peer) = (connection.is_meeting(), connection.peer());
        if !meeting {
            self.end_meeting(peer, slot);
        }
        self.slots.update(slot)
    }

    /// Removes a connection and frees its slot.
    pub(super) fn forget(&mut self, slot: u32) {
        let Some(connection) = self.slots.forget(slot) else { return };
        self.by_id.remove(&connection.socket_id().value());
        if let Some(caller) = connection.caller() {
            self.by_caller.remove(&(connection.peer(), caller.value()));
        }
        self.end_meeting(connection.peer(), slot);
    }

    fn end_meeting(&mut self, peer: SocketAddr, slot: u32) {
        if self.meetings.get(&peer) == Some(&slot) {
            self.meetings.remove(&peer);
        }
    }
}
