//! Delayed packets, released when they are due.

use core::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

use farhaul_units::Instant;

/// Packets ordered by due time. Packets with equal due times keep the order in which they were pushed.
///
/// Packets usually arrive in order of their due time and go through a FIFO in constant time. Only a packet due before
/// the last one of the FIFO goes through a heap.
#[derive(Debug)]
pub(crate) struct DelayLine<P> {
    in_order: VecDeque<DelayedPacket<P>>,
    overtaking: BinaryHeap<DelayedPacket<P>>,
    pushed: u64,
}

impl<P> DelayLine<P> {
    pub(crate) fn new() -> Self {
        Self { in_order: VecDeque::new(), overtaking: BinaryHeap::new(), pushed: 0 }
    }

    pub(crate) fn push(&mut self, due: Instant, packet: P) {
        let entry = DelayedPacket { due, number: self.pushed, packet };
        self.pushed += 1;
        match self.in_order.back() {
            Some(last) if due < last.due => self.overtaking.push(entry),
            _ => self.in_order.push_back(entry),
        }
    }

    /// When the next packet is due. A packet due at [`Instant::FAR_FUTURE`] never comes.
    pub(crate) fn next_event(&self) -> Option<Instant> {
        let next = if self.overtaking_is_next() { self.overtaking.peek() } else { self.in_order.front() };
        next.map(|entry| entry.due).filter(|due| *due < Instant::FAR_FUTURE)
    }

    pub(crate) fn pop(&mut self, now: Instant) -> Option<P> {
        self.next_event().filter(|due| *due <= now)?;
        let entry = if self.overtaking_is_next() { self.overtaking.pop() } else { self.in_order.pop_front() };
        entry.map(|entry| entry.packet)
    }

    fn overtaking_is_next(&self) -> bool {
        match (self.overtaking.peek(), self.in_order.front()) {
            (Some(overtaking), Some(in_order)) => overtaking.key() < in_order.key(),
            (overtaking, _) => overtaking.is_some(),
        }
    }
}

#[derive(Debug)]
struct DelayedPacket<P> {
    due: Instant,
    /// Breaks ties: packets due at the same instant leave in the order of arrival.
    number: u64,
    packet: P,
}

impl<P> DelayedPacket<P> {
    fn key(&self) -> (Instant, u64) {
        (self.due, self.number)
    }
}

impl<P> PartialEq for DelayedPacket<P> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<P> Eq for DelayedPacket<P> {}

impl<P> PartialOrd for DelayedPacket<P> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<P> Ord for DelayedPacket<P> {
    /// Reversed, because the heap keeps its largest entry on top and the earliest must be there.
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_packet_due_in_the_far_future_never_comes() {
        let mut line = DelayLine::new();
        line.push(Instant::FAR_FUTURE, 'a');
        assert_eq!(line.next_event(), None);
        assert_eq!(line.pop(Instant::FAR_FUTURE), None);
    }

    #[test]
    fn repeated_load_allocates_no_more_memory() {
        let mut line = DelayLine::new();
        let load = |line: &mut DelayLine<u64>, start: u64| {
            (0..100).for_each(|i| line.push(Instant::from_nanos(start + i * 7 % 50), i));
            while line.pop(Instant::from_nanos(start + 50)).is_some() {}
            (line.in_order.capacity(), line.overtaking.capacity())
        };
        let grown = load(&mut line, 0);
        assert!((1..100).all(|round| load(&mut line, round * 1_000) == grown));
    }

    proptest! {
        #[test]
        fn leaves_like_a_stable_sort_by_due_time(dues in prop::collection::vec(0u64..40, 0..60)) {
            let mut line = DelayLine::new();
            for (number, due) in dues.iter().enumerate() {
                line.push(Instant::from_nanos(*due), number);
            }
            let mut expected: Vec<usize> = (0..dues.len()).collect();
            expected.sort_by_key(|number| dues[*number]);
            let mut left = Vec::new();
            while let Some(due) = line.next_event() {
                if let Some(before) = due.as_nanos().checked_sub(1) {
                    prop_assert_eq!(line.pop(Instant::from_nanos(before)), None);
                }
                left.extend(line.pop(due));
            }
            prop_assert_eq!(left, expected);
        }
    }
}
