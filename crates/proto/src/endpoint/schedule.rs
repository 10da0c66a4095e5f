//! The ready queue and the deadlines of connections.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use farhaul_units::{Duration, Instant};

/// A deadline served this late means that this computer was suspended, not that a peer was silent (attack B20).
const SUSPENDED: Duration = Duration::from_secs(2);

/// The ready queue and the deadlines of a table of connections.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    ready: VecDeque<u32>,
    /// Earliest first. An entry that differs from its slot's deadline is stale and skipped.
    deadlines: BinaryHeap<Reverse<(Instant, u32)>>,
    entries: Vec<Entry>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    /// Whether the ready queue contains the slot.
    queued: bool,
    /// The slot's deadline in the heap.
    deadline: Option<Instant>,
}

/// A connection whose deadline has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    pub(crate) slot: u32,
    /// The delay of the call, if it is long enough to mean that this computer was suspended.
    pub(crate) slept: Option<Duration>,
}

impl Schedule {
    /// Queues a connection that may have something to send, to report or to wait for.
    pub(crate) fn mark_ready(&mut self, slot: u32) {
        let entry = self.entry(slot);
        if !entry.queued {
            entry.queued = true;
            self.ready.push_back(slot);
        }
    }

    /// The next connection to poll.
    pub(crate) fn next_ready(&mut self) -> Option<u32> {
        let slot = self.ready.pop_front()?;
        self.entry(slot).queued = false;
        Some(slot)
    }

    /// Whether no connection is ready.
    pub(crate) fn is_idle(&self) -> bool {
        self.ready.is_empty()
    }

    /// Sets the time to wake a connection. A later deadline than its present one is ignored, because the connection
    /// sets it again when it wakes.
    pub(crate) fn wake_at(&mut self, slot: u32, deadline: Instant) {
        let entry = self.entry(slot);
        if entry.deadline.is_none_or(|set| deadline < set) {
            entry.deadline = Some(deadline);
            self.deadlines.push(Reverse((deadline, slot)));
        }
    }

    /// The next connection whose deadline has come.
    pub(crate) fn next_due(&mut self, now: Instant) -> Option<Due> {
        while let Some(&Reverse((deadline, slot))) = self.deadlines.peek().filter(|due| due.0.0 <= now) {
            self.deadlines.pop();
            let entry = self.entry(slot);
            if entry.deadline == Some(deadline) {
                entry.deadline = None;
                return Some(Due { slot, slept: Some(now - deadline).filter(|&late| late > SUSPENDED) });
            }
        }
        None
    }

    /// The earliest deadline, possibly a stale one.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadlines.peek().map(|Reverse((deadline, _))| *deadline)
    }

    /// Drops the deadline of a removed connection. Its entry in the ready queue stays and is skipped later.
    pub(crate) fn forget(&mut self, slot: u32) {
        self.entry(slot).deadline = None;
    }

    fn entry(&mut self, slot: u32) -> &mut Entry {
        let slot = slot as usize;
        if slot >= self.entries.len() {
            self.entries.resize(slot + 1, Entry::default());
        }
        &mut self.entries[slot]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn a_connection_is_polled_once_however_often_it_was_marked() {
        let mut schedule = Schedule::default();
        for slot in [3, 1, 3, 1] {
            schedule.mark_ready(slot);
        }
        assert_eq!([schedule.next_ready(), schedule.next_ready(), schedule.next_ready()], [Some(3), Some(1), None]);
    }

    #[test]
    fn each_connection_is_woken_at_the_earliest_time_it_asked_for_and_once() {
        let mut schedule = Schedule::default();
        schedule.wake_at(2, at(30));
        schedule.wake_at(2, at(10));
        schedule.wake_at(2, at(20));
        schedule.wake_at(5, at(15));
        assert_eq!(schedule.next_due(at(9)), None);
        assert_eq!(schedule.next_due(at(40)), Some(Due { slot: 2, slept: None }));
        assert_eq!(schedule.next_due(at(40)), Some(Due { slot: 5, slept: None }));
        assert_eq!(schedule.next_due(at(40)), None);
    }

    #[test]
    fn a_wake_up_seconds_late_means_that_the_computer_was_suspended() {
        let mut schedule = Schedule::default();
        for (slot, late) in [(1, 2_000), (2, 2_001)] {
            schedule.wake_at(slot, at(10));
            let slept = (late > 2_000).then(|| Duration::from_millis(late));
            assert_eq!(schedule.next_due(at(10 + late)), Some(Due { slot, slept }));
        }
    }

    #[test]
    fn a_connection_that_is_gone_is_not_woken() {
        let mut schedule = Schedule::default();
        schedule.wake_at(0, at(10));
        schedule.forget(0);
        assert_eq!(schedule.next_due(at(40)), None);
    }
}
