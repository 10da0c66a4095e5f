//! Connections that finish in the background: without handles, while their data is still in flight.

use std::collections::VecDeque;

use farhaul_proto::ConnectionId;

/// Most such connections of one port. Each may last for the linger time if its peer acknowledges nothing. So a flood of
/// them must not hold more.
const MAX_LINGERING: usize = 256;

/// Those connections, oldest first.
#[derive(Debug, Default)]
pub(super) struct Lingering(VecDeque<ConnectionId>);

impl Lingering {
    /// Adds a connection. Returns the oldest one to release, if there are too many now.
    pub(super) fn add(&mut self, id: ConnectionId) -> Option<ConnectionId> {
        self.0.push_back(id);
        if self.0.len() > MAX_LINGERING { self.0.pop_front() } else { None }
    }

    /// Removes a connection that has finished or never will.
    pub(super) fn remove(&mut self, id: ConnectionId) {
        self.0.retain(|its| *its != id);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_eldest_makes_room_for_one_too_many() {
        let id = |number: usize| ConnectionId::from_parts(u32::try_from(number).unwrap(), 0);
        let mut lingering = Lingering::default();
        assert!((0..MAX_LINGERING).all(|number| lingering.add(id(number)).is_none()));
        lingering.remove(id(0));
        assert_eq!(lingering.add(id(MAX_LINGERING)), None);
        assert_eq!(lingering.add(id(MAX_LINGERING + 1)), Some(id(1)));
        assert!(!lingering.is_empty());
    }
}
