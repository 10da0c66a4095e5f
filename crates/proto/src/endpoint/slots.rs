//! The table of an endpoint's connections. Slots are reused, ids are not.

use core::net::SocketAddr;

use crate::endpoint::handshake::admission::Held;
use crate::event::ConnectionId;

/// The properties of a connection that the table counts.
pub(crate) trait Occupant {
    fn id(&self) -> ConnectionId;
    /// The index of its protocol among those of the port.
    fn protocol(&self) -> usize;
    fn peer(&self) -> SocketAddr;
    /// The peer has sent a valid packet after the handshake.
    fn was_heard(&self) -> bool;
    /// Accepted, and not heard from since.
    fn is_half_open(&self) -> bool;
    /// Accepted, and not taken by the application yet.
    fn waits_for_application(&self) -> bool;
}

/// All connections of an endpoint by slot. It also counts those that limit further callers, because every caller needs
/// these numbers.
#[derive(Debug)]
pub(crate) struct Slots<C> {
    slots: Vec<Slot<C>>,
    free: Vec<u32>,
    /// The counts of each protocol, so that the callers of one do not take the places of another.
    held: Vec<Held>,
}

#[derive(Debug)]
struct Slot<C> {
    connection: Option<C>,
    generation: u32,
    /// Whether the table's counts include it.
    half_open: bool,
    unclaimed: bool,
}

impl<C> Default for Slots<C> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: Vec::new(), held: Vec::new() }
    }
}

impl<C: Occupant> Slots<C> {
    /// The connections of a protocol, closing ones included.
    pub(crate) fn held(&self, protocol: usize) -> Held {
        self.held.get(protocol).copied().unwrap_or_default()
    }

    /// All connections, closing ones included.
    pub(crate) fn connections(&self) -> usize {
        self.held.iter().map(|held| held.connections).sum()
    }

    /// The connection in a slot.
    pub(crate) fn at(&mut self, slot: u32) -> Option<&mut C> {
        self.slots.get_mut(slot as usize)?.connection.as_mut()
    }

    /// The connection with this id, unless it was forgotten.
    pub(crate) fn get(&self, id: ConnectionId) -> Option<&C> {
        self.slots.get(id.slot())?.connection.as_ref().filter(|connection| connection.id() == id)
    }

    /// The same, mutable.
    pub(crate) fn get_mut(&mut self, id: ConnectionId) -> Option<&mut C> {
        self.slots.get_mut(id.slot())?.connection.as_mut().filter(|connection| connection.id() == id)
    }

    /// The ids of all connections.
    pub(crate) fn ids(&self) -> Vec<ConnectionId> {
        self.slots.iter().filter_map(|slot| slot.connection.as_ref().map(Occupant::id)).collect()
    }

    /// Reserves a slot and an id for a connection.
    pub(crate) fn reserve(&mut self) -> ConnectionId {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { connection: None, generation: 0, half_open: false, unclaimed: false });
            (self.slots.len() - 1) as u32
        });
        ConnectionId { slot, generation: self.slots[slot as usize].generation }
    }

    /// Frees a reserved slot that stayed empty. Its id is never used again.
    pub(crate) fn unreserve(&mut self, slot: u32) {
        let entry = &mut self.slots[slot as usize];
        entry.generation = entry.generation.wrapping_add(1);
        self.free.push(slot);
    }

    /// Puts a connection into its reserved slot.
    pub(crate) fn install(&mut self, connection: C) -> &C {
        let protocol = connection.protocol();
        if self.held.len() <= protocol {
            self.held.resize_with(protocol + 1, Held::default);
        }
        let (entry, held) = (&mut self.slots[connection.id().slot()], &mut self.held[protocol]);
        entry.half_open = connection.is_half_open();
        entry.unclaimed = connection.waits_for_application();
        held.connections += 1;
        held.half_open += usize::from(entry.half_open);
        held.unclaimed += usize::from(entry.unclaimed);
        entry.connection.insert(connection)
    }

    /// Updates the counts after a change of the connection. No property comes back once lost, so counts only fall.
    /// Returns the address of a caller that was heard for the first time.
    pub(crate) fn update(&mut self, slot: u32) -> Option<SocketAddr> {
        let entry = self.slots.get(slot as usize)?;
        let connection = entry.connection.as_ref()?;
        let spoke = (entry.half_open && connection.was_heard()).then(|| connection.peer());
        let (half_open, unclaimed) = (connection.is_half_open(), connection.waits_for_application());
        self.recount(slot, half_open, unclaimed);
        spoke
    }

    /// Removes a connection and frees its slot.
    pub(crate) fn forget(&mut self, slot: u32) -> Option<C> {
        self.recount(slot, false, false);
        let connection = self.slots[slot as usize].connection.take()?;
        self.held[connection.protocol()].connections -= 1;
        self.unreserve(slot);
        Some(connection)
    }

    fn recount(&mut self, slot: u32, half_open: bool, unclaimed: bool) {
        let entry = &mut self.slots[slot as usize];
        let Some(connection) = &entry.connection else { return };
        let held = &mut self.held[connection.protocol()];
        held.half_open -= usize::from(entry.half_open && !half_open);
        held.unclaimed -= usize::from(entry.unclaimed && !unclaimed);
        entry.half_open &= half_open;
        entry.unclaimed &= unclaimed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Guest {
        id: ConnectionId,
        heard: bool,
        taken: bool,
        is_of_second: bool,
    }

    impl Occupant for Guest {
        fn id(&self) -> ConnectionId {
            self.id
        }

        fn protocol(&self) -> usize {
            usize::from(self.is_of_second)
        }

        fn peer(&self) -> SocketAddr {
            SocketAddr::from(([10, 0, 0, 1], 9000))
        }

        fn was_heard(&self) -> bool {
            self.heard
        }

        fn is_half_open(&self) -> bool {
            !self.heard
        }

        fn waits_for_application(&self) -> bool {
            !self.taken
        }
    }

    fn install(slots: &mut Slots<Guest>) -> ConnectionId {
        let id = slots.reserve();
        slots.install(Guest { id, heard: false, taken: false, is_of_second: false });
        id
    }

    fn counts(slots: &Slots<Guest>) -> [usize; 3] {
        let Held { connections, half_open, unclaimed } = slots.held(0);
        [connections, half_open, unclaimed]
    }

    #[test]
    fn a_place_is_used_again_under_another_name() {
        let mut slots = Slots::default();
        let old = install(&mut slots);
        assert!(slots.forget(old.slot).is_some() && slots.forget(old.slot).is_none());
        let reserved = slots.reserve();
        slots.unreserve(reserved.slot);
        let new = install(&mut slots);
        assert_eq!([old.slot, reserved.slot], [new.slot; 2]);
        assert!(slots.get(old).is_none() && slots.get(reserved).is_none() && slots.get(new).is_some());
        assert_eq!(counts(&slots), [1, 1, 1]);
    }

    #[test]
    fn a_caller_heard_and_taken_stops_counting_and_is_reported_once() {
        let mut slots = Slots::default();
        let (first, second) = (install(&mut slots), install(&mut slots));
        assert_eq!(slots.update(first.slot), None);
        slots.get_mut(first).unwrap().heard = true;
        assert!(slots.update(first.slot).is_some() && slots.update(first.slot).is_none());
        assert_eq!(counts(&slots), [2, 1, 2]);
        slots.get_mut(first).unwrap().taken = true;
        slots.update(first.slot);
        assert_eq!(counts(&slots), [2, 1, 1]);
        slots.forget(second.slot);
        assert_eq!(counts(&slots), [1, 0, 0]);
    }

    #[test]
    fn each_protocol_has_counts_of_its_own() {
        let mut slots = Slots::default();
        install(&mut slots);
        let id = slots.reserve();
        slots.install(Guest { id, heard: false, taken: true, is_of_second: true });
        assert_eq!(counts(&slots), [1, 1, 1]);
        assert_eq!(slots.held(1), Held { connections: 1, half_open: 1, unclaimed: 0 });
        assert_eq!(slots.connections(), 2);
        slots.forget(id.slot);
        assert_eq!((slots.held(1), slots.connections()), (Held::default(), 1));
    }
}
