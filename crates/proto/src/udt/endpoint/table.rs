//! Which connections there are, and under which names they are found.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use farhaul_wire::udt4::SocketId;

use crate::event::ConnectionId;
use crate::udt::connection::Connection;

/// All connections of an endpoint, by place, by socket id, by caller, and by rendezvous.
#[derive(Default)]
pub(super) struct Table {
    slots: Vec<Slot>,
    free: Vec<u32>,
    by_id: BTreeMap<u32, u32>,
    /// Accepted connections by the caller's address and socket id: a repeated conclusion finds its connection.
    by_caller: BTreeMap<(SocketAddr, u32), u32>,
    /// Rendezvous under way, by address.
    meetings: BTreeMap<SocketAddr, u32>,
    /// Accepted connections that were not heard since; counted, because every caller asks.
    half_open: usize,
    /// Accepted connections that the application has not taken yet.
    unclaimed: usize,
}

#[derive(Default)]
struct Slot {
    connection: Option<Connection>,
    generation: u32,
    /// The caller's socket id, for accepted connections.
    caller: Option<u32>,
    /// It is counted as such.
    half_open: bool,
    unclaimed: bool,
}

impl Table {
    /// Connections held, those on their way out included.
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Accepted connections that were not heard since.
    pub(super) const fn half_open(&self) -> usize {
        self.half_open
    }

    /// Accepted connections that the application has not taken yet.
    pub(super) const fn unclaimed(&self) -> usize {
        self.unclaimed
    }

    // ---- finding ----

    /// Where the connection with this socket id lies.
    pub(super) fn find(&self, id: SocketId) -> Option<u32> {
        self.by_id.get(&id.value()).copied()
    }

    /// Where the connection lies that this caller opened.
    pub(super) fn find_caller(&self, from: SocketAddr, id: SocketId) -> Option<u32> {
        self.by_caller.get(&(from, id.value())).copied()
    }

    /// Where the rendezvous with this address lies, while it is under way.
    pub(super) fn find_meeting(&self, with: SocketAddr) -> Option<u32> {
        self.meetings.get(&with).copied()
    }

    /// What lies at a place.
    pub(super) fn at(&mut self, slot: u32) -> Option<&mut Connection> {
        self.slots[slot as usize].connection.as_mut()
    }

    /// The connection with this name, unless it was released.
    pub(super) fn get(&self, id: ConnectionId) -> Option<&Connection> {
        self.slots.get(id.slot())?.connection.as_ref().filter(|connection| connection.id() == id)
    }

    /// The same, to change it.
    pub(super) fn get_mut(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        self.slots.get_mut(id.slot())?.connection.as_mut().filter(|connection| connection.id() == id)
    }

    // ---- coming and going ----

    /// A place for a connection with this socket id.
    pub(super) fn reserve(&mut self, socket_id: SocketId) -> ConnectionId {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            (self.slots.len() - 1) as u32
        });
        self.by_id.insert(socket_id.value(), slot);
        ConnectionId { slot, generation: self.slots[slot as usize].generation }
    }

    /// Gives a place back. Its name is never used again.
    pub(super) fn unreserve(&mut self, slot: u32, socket_id: SocketId) {
        self.by_id.remove(&socket_id.value());
        let entry = &mut self.slots[slot as usize];
        *entry = Slot { generation: entry.generation.wrapping_add(1), ..Slot::default() };
        self.free.push(slot);
    }

    /// Puts a connection where its place was reserved.
    pub(super) fn install(&mut self, id: ConnectionId, connection: Connection) {
        self.slots[id.slot()].connection = Some(connection);
    }

    /// The same for one that was opened by a caller, who names itself `caller`: it is half-open and nobody's yet.
    pub(super) fn install_accepted(&mut self, id: ConnectionId, connection: Connection, caller: SocketId) {
        self.by_caller.insert((connection.peer(), caller.value()), id.slot);
        let slot = &mut self.slots[id.slot()];
        slot.caller = Some(caller.value());
        slot.half_open = true;
        slot.unclaimed = true;
        slot.connection = Some(connection);
        self.half_open += 1;
        self.unclaimed += 1;
    }

    /// The same for a rendezvous.
    pub(super) fn install_meeting(&mut self, id: ConnectionId, connection: Connection) {
        self.meetings.insert(connection.peer(), id.slot);
        self.install(id, connection);
    }

    /// Notes what has become of a connection: nothing that was counted comes back, so this only ever counts down. Gives
    /// the address of a caller that was heard for the first time.
    pub(super) fn update(&mut self, slot: u32) -> Option<SocketAddr> {
        let entry = &self.slots[slot as usize];
        let connection = entry.connection.as_ref()?;
        let spoke = (entry.half_open && connection.was_heard()).then(|| connection.peer());
        let (half_open, unclaimed) = (connection.is_half_open(), connection.waits_for_application());
        if !connection.is_meeting() && self.meetings.get(&connection.peer()) == Some(&slot) {
            self.meetings.remove(&connection.peer());
        }
        self.recount(slot, half_open, unclaimed);
        spoke
    }

    /// Takes a connection out and gives its place back.
    pub(super) fn forget(&mut self, slot: u32) {
        self.recount(slot, false, false);
        let Some(connection) = self.slots[slot as usize].connection.take() else { return };
        if let Some(caller) = self.slots[slot as usize].caller {
            self.by_caller.remove(&(connection.peer(), caller));
        }
        if self.meetings.get(&connection.peer()) == Some(&slot) {
            self.meetings.remove(&connection.peer());
        }
        self.unreserve(slot, connection.socket_id());
    }

    fn recount(&mut self, slot: u32, half_open: bool, unclaimed: bool) {
        let entry = &mut self.slots[slot as usize];
        self.half_open -= usize::from(entry.half_open && !half_open);
        self.unclaimed -= usize::from(entry.unclaimed && !unclaimed);
        entry.half_open &= half_open;
        entry.unclaimed &= unclaimed;
    }
}
