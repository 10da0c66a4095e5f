//! Connections that finish in the background: without handles, while their data is still on its way.

use std::collections::VecDeque;

use farhaul_proto::ConnectionId;

/// Most such connections of one port. Each may last for the linger time if its peer acknowledges nothing. So a flood of
/// them must not hold more.
const MAX_PARTING: usize = 256;

/// Those connections, oldest first.
#[derive(Debug, Default)]
pub(super) struct Parting(VecDeque<ConnectionId>);

impl Parting {
    /// Adds a connection. Returns the oldest one to release, if there are too many now.
    pub(super) fn add(&mut self, id: ConnectionId) -> Option<ConnectionId> {
        self.0.push_back(id);
        if self.0.len() > MAX_PARTING { self.0.pop_front() } else { None }
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
        let mut parting = Parting::default();
        assert!((0..MAX_PARTING).all(|number| parting.add(id(number)).is_none()));
        parting.remove(id(0));
        assert_eq!(parting.add(id(MAX_PARTING)), None);
        assert_eq!(parting.add(id(MAX_PARTING + 1)), Some(id(1)));
        assert!(!parting.is_empty());
    }
}
