//! First in, first out. A full queue drops its oldest packet when another one arrives.

use farhaul_units::Instant;

use super::backlog::{Backlog, Limit, Queue, QueueTallies};
use crate::packet::WireLen;

/// A queue that makes room at its head. Senders detect the loss earlier than with drop-tail, by the queueing delay, and
/// the delivered packets are recent.
#[derive(Debug)]
pub struct DropHead<P> {
    backlog: Backlog<P>,
}

impl<P: WireLen> DropHead<P> {
    /// Room for `limit`.
    pub fn new(limit: Limit) -> Self {
        Self { backlog: Backlog::new(limit) }
    }
}

impl<P: WireLen> Queue<P> for DropHead<P> {
    const IS_PASSIVE: bool = true;

    fn enqueue(&mut self, _now: Instant, packet: P) {
        while !self.backlog.has_room_for(&packet) {
            let Some(oldest) = self.backlog.pop() else { break };
            self.backlog.drop(oldest);
        }
        self.backlog.push(packet);
    }

    fn dequeue(&mut self, _now: Instant) -> Option<P> {
        self.backlog.pop()
    }

    fn tallies(&self) -> &QueueTallies {
        &self.backlog.tallies
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Numbered;

    fn left(limit: Limit, lengths: &[u32]) -> Vec<u32> {
        let mut queue = DropHead::new(limit);
        for (number, bytes) in (0..).zip(lengths) {
            queue.enqueue(Instant::ZERO, Numbered { bytes: *bytes, ..Numbered::new(number) });
        }
        core::iter::from_fn(|| queue.dequeue(Instant::ZERO)).map(|packet| packet.number).collect()
    }

    #[test]
    fn a_full_queue_keeps_the_newest_packets() {
        assert_eq!(left(Limit::of_packets(3), &[100; 5]), [2, 3, 4]);
        assert_eq!(left(Limit::of_packets(0), &[100; 5]), [4]);
    }

    #[test]
    fn one_large_packet_can_evict_several_small_ones() {
        assert_eq!(left(Limit::of_bytes(1_000), &[400, 400, 100, 600]), [2, 3]);
        assert_eq!(left(Limit::of_bytes(1_000), &[400, 400, 5_000]), [2]);
    }
}
