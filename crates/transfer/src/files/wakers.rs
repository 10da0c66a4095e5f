//! Tasks that wait for a connection to a server of files.

use std::collections::{BTreeMap, VecDeque};
use std::task::Waker;

use farhaul_session::RequestId;

/// The wakers of waiting tasks. Whoever takes some wakes them without a lock: they run foreign code.
#[derive(Debug, Default)]
pub(super) struct Wakers {
    /// For the answer to a request, or for room for the bytes of a put.
    requests: BTreeMap<RequestId, Waker>,
    /// For room for another request, the oldest first.
    room: VecDeque<(u64, Waker)>,
    next: u64,
}

/// The place of a task among those that wait for room.
#[derive(Debug, Default)]
pub(super) struct RoomPlace(Option<u64>);

impl Wakers {
    /// The task is woken when something happens to its request.
    pub(super) fn await_request(&mut self, id: RequestId, waker: &Waker) {
        self.requests.insert(id, waker.clone());
    }

    /// Nobody waits for this request any more.
    pub(super) fn forget(&mut self, id: RequestId) {
        self.requests.remove(&id);
    }

    /// The task is woken once there may be room for another request. It keeps its place until then.
    pub(super) fn await_room(&mut self, place: &mut RoomPlace, waker: &Waker) {
        if let Some(waiting) = self.room.iter_mut().find(|(number, _)| Some(*number) == place.0) {
            waiting.1.clone_from(waker);
            return;
        }
        place.0 = Some(self.next);
        self.room.push_back((self.next, waker.clone()));
        self.next += 1;
    }

    /// Gives up a place. Returns whether its task was woken: then the room is for the next one.
    pub(super) fn leave_room(&mut self, place: &RoomPlace) -> bool {
        let Some(number) = place.0 else { return false };
        let before = self.room.len();
        self.room.retain(|(its, _)| *its != number);
        before == self.room.len()
    }

    /// Takes the tasks whose requests `is_ready`, and as many of those that wait for room.
    pub(super) fn take(&mut self, is_ready: impl Fn(&RequestId) -> bool, room: usize) -> Vec<Waker> {
        let ready: Vec<RequestId> = self.requests.keys().filter(|id| is_ready(id)).copied().collect();
        let mut taken: Vec<Waker> = ready.iter().filter_map(|id| self.requests.remove(id)).collect();
        let room = room.min(self.room.len());
        taken.extend(self.room.drain(..room).map(|(_, waker)| waker));
        taken
    }

    /// Takes all.
    pub(super) fn take_all(&mut self) -> Vec<Waker> {
        self.take(|_| true, usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_keeps_its_place_until_there_is_room_and_passes_it_on() {
        let mut wakers = Wakers::default();
        let (mut first, mut second) = (RoomPlace::default(), RoomPlace::default());
        wakers.await_room(&mut first, Waker::noop());
        wakers.await_room(&mut second, Waker::noop());
        wakers.await_room(&mut first, Waker::noop());
        assert_eq!(wakers.take(|_| false, 1).len(), 1, "the first one");
        assert!(wakers.leave_room(&first), "it was woken, and leaves its room to the second one");
        assert!(!wakers.leave_room(&second), "nobody has room for it yet");
        assert!(wakers.take_all().is_empty());
    }
}
