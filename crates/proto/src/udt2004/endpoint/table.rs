//! Which connections there are, and which one an address has.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use crate::event::ConnectionId;
use crate::udt2004::connection::Connection;

/// All connections of an endpoint, by place and by the address of the peer.
#[derive(Default)]
pub(super) struct Table {
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Connections that are not over.
    by_peer: BTreeMap<SocketAddr, u32>,
    /// Accepted connections that were not heard since; counted, because every caller asks.
    half_open: usize,
    /// Accepted connections that the application has not taken yet.
    unclaimed: usize,
}

#[derive(Default)]
struct Slot {
    connection: Option<Connection>,
    generation: u32,
    /// It is counted as such.
    half_open: bool,
    unclaimed: bool,
}

impl Table {
    /// Connections held, those on their way out included.
    pub(super) const fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(super) const fn half_open(&self) -> usize {
        self.half_open
    }

    pub(super) const fn unclaimed(&self) -> usize {
        self.unclaimed
    }

    /// Where the connection with this peer lies that is not over.
    pub(super) fn find(&self, peer: SocketAddr) -> Option<u32> {
        self.by_peer.get(&peer).copied()
    }

    /// What lies at a place.
    pub(super) fn at(&mut self, slot: u32) -> Option<&mut Connection> {
        self.slots.get_mut(slot as usize)?.connection.as_mut()
    }

    /// The connection with this name, unless it was released.
    pub(super) fn get(&self, id: ConnectionId) -> Option<&Connection> {
        self.slots.get(id.slot())?.connection.as_ref().filter(|connection| connection.id() == id)
    }

    /// The same, to change it.
    pub(super) fn get_mut(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        self.slots.get_mut(id.slot())?.connection.as_mut().filter(|connection| connection.id() == id)
    }

    /// Puts in the connection that `make` makes of its name; `None` if it makes none.
    pub(super) fn install(&mut self, make: impl FnOnce(ConnectionId) -> Option<Connection>) -> Option<u32> {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            (self.slots.len() - 1) as u32
        });
        let entry = &mut self.slots[slot as usize];
        let Some(connection) = make(ConnectionId { slot, generation: entry.generation }) else {
            self.free.push(slot);
            return None;
        };
        entry.half_open = connection.is_half_open();
        entry.unclaimed = connection.waits_for_application();
        self.half_open += usize::from(entry.half_open);
        self.unclaimed += usize::from(entry.unclaimed);
        self.by_peer.insert(connection.peer(), slot);
        entry.connection = Some(connection);
        Some(slot)
    }

    /// Notes what has become of a connection: nothing that was counted comes back, so this only ever counts down. Gives the
    /// address of a caller that was heard for the first time.
    pub(super) fn update(&mut self, slot: u32) -> Option<SocketAddr> {
        let entry = &self.slots[slot as usize];
        let connection = entry.connection.as_ref()?;
        let spoke = (entry.half_open && connection.was_heard()).then(|| connection.peer());
        let (half_open, unclaimed) = (connection.is_half_open(), connection.waits_for_application());
        if connection.is_over() {
            self.give_up_address(slot);
        }
        self.recount(slot, half_open, unclaimed);
        spoke
    }

    /// Takes a connection out. Its name is never used again.
    pub(super) fn forget(&mut self, slot: u32) {
        self.recount(slot, false, false);
        self.give_up_address(slot);
        let entry = &mut self.slots[slot as usize];
        if entry.connection.take().is_some() {
            entry.generation = entry.generation.wrapping_add(1);
            self.free.push(slot);
        }
    }

    /// The address is free for another connection.
    fn give_up_address(&mut self, slot: u32) {
        let Some(connection) = &self.slots[slot as usize].connection else { return };
        if self.by_peer.get(&connection.peer()) == Some(&slot) {
            self.by_peer.remove(&connection.peer());
        }
    }

    fn recount(&mut self, slot: u32, half_open: bool, unclaimed: bool) {
        let entry = &mut self.slots[slot as usize];
        self.half_open -= usize::from(entry.half_open && !half_open);
        self.unclaimed -= usize::from(entry.unclaimed && !unclaimed);
        entry.half_open &= half_open;
        entry.unclaimed &= unclaimed;
    }
}
