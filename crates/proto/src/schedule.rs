//! Whose turn it is: connections that may have something to send, and connections that wait for a time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use farhaul_units::{Duration, Instant};

/// A deadline that is served this late means that this computer slept, not that a peer was silent (attack B20).
const SUSPENDED: Duration = Duration::from_secs(2);

/// The ready queue and the deadlines of a table of connections.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    ready: VecDeque<u32>,
    /// Earliest first; an entry that is not the slot's own deadline any more is stale, and skipped.
    deadlines: BinaryHeap<Reverse<(Instant, u32)>>,
    entries: Vec<Entry>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    /// It stands in the ready queue.
    queued: bool,
    /// The deadline that stands in the heap for it.
    deadline: Option<Instant>,
}

/// A connection that is to be woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    pub(crate) slot: u32,
    /// The time by which it is late, if that is so much that this computer must have slept.
    pub(crate) slept: Option<Duration>,
}

impl Schedule {
    /// The connection may have something to send, to say or to wait for.
    pub(crate) fn mark_ready(&mut self, slot: u32) {
        let entry = self.entry(slot);
        if !entry.queued {
            entry.queued = true;
            self.ready.push_back(slot);
        }
    }

    /// The next connection to ask.
    pub(crate) fn next_ready(&mut self) -> Option<u32> {
        let slot = self.ready.pop_front()?;
        self.entry(slot).queued = false;
        Some(slot)
    }

    /// Whether anybody is to be asked now.
    pub(crate) fn is_idle(&self) -> bool {
        self.ready.is_empty()
    }

    /// The connection wants to be woken at `deadline`. A later one than it has already is not noted: it says so again
    /// when it is woken.
    pub(crate) fn wake_at(&mut self, slot: u32, deadline: Instant) {
        let entry = self.entry(slot);
        if entry.deadline.is_none_or(|set| deadline < set) {
            entry.deadline = Some(deadline);
            self.deadlines.push(Reverse((deadline, slot)));
        }
    }

    /// A connection whose deadline has come.
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

    /// The earliest deadline; it may be a stale one.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadlines.peek().map(|Reverse((deadline, _))| *deadline)
    }

    /// The connection is gone. Its place in the ready queue stays, and finds nobody.
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
    fn a_connection_is_asked_once_however_often_it_was_marked() {
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
    fn a_wake_up_that_is_seconds_late_says_that_this_computer_slept() {
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
