//! First in, first out. A full queue drops the arriving packet.

use farhaul_units::Instant;

use super::backlog::{Backlog, Limit, Queue, QueueTallies};
use crate::packet::WireLen;

/// A queue limited in packets or in bytes. A packet that does not fit as a whole is dropped.
#[derive(Debug)]
pub struct DropTail<P> {
    backlog: Backlog<P>,
}

impl<P: WireLen> DropTail<P> {
    /// Room for `limit`.
    pub fn new(limit: Limit) -> Self {
        Self { backlog: Backlog::new(limit) }
    }

    /// Room for `max` packets.
    #[cfg(test)]
    pub(crate) fn of_packets(max: u64) -> Self {
        Self::new(Limit::of_packets(max))
    }

    /// Room for `max` bytes.
    #[cfg(test)]
    pub(crate) fn of_bytes(max: u64) -> Self {
        Self::new(Limit::of_bytes(max))
    }
}

impl<P: WireLen> Queue<P> for DropTail<P> {
    const IS_PASSIVE: bool = true;

    fn enqueue(&mut self, _now: Instant, packet: P) {
        if self.backlog.has_room_for(&packet) {
            self.backlog.push(packet);
        } else {
            self.backlog.drop(packet);
        }
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
    use farhaul_units::{Duration, Rate};

    use super::*;
    use crate::testing::Numbered;
    use crate::{QueueSize, Tally};

    fn filled(mut queue: DropTail<Numbered>, packets: u32) -> DropTail<Numbered> {
        (0..packets).for_each(|number| queue.enqueue(Instant::ZERO, Numbered::new(number)));
        queue
    }

    #[test]
    fn drops_exactly_the_packets_beyond_its_size() {
        let mut queue = filled(DropTail::of_packets(3), 5);
        assert_eq!(queue.tallies().dropped.packets, 2);
        let left: Vec<u32> = core::iter::from_fn(|| queue.dequeue(Instant::ZERO)).map(|packet| packet.number).collect();
        assert_eq!(left, [0, 1, 2]);
        assert_eq!(queue.tallies().waiting, Tally::default());
    }

    #[test]
    fn a_byte_limit_counts_whole_packets() {
        assert_eq!(filled(DropTail::of_bytes(4_499), 5).tallies().waiting, Tally { packets: 2, bytes: 3_000 });
        assert_eq!(filled(DropTail::of_bytes(4_500), 5).tallies().waiting, Tally { packets: 3, bytes: 4_500 });
    }

    #[test]
    fn the_smallest_queue_holds_one_packet() {
        assert_eq!(filled(DropTail::of_packets(0), 5).tallies().waiting.packets, 1);
        assert_eq!(filled(DropTail::of_bytes(0), 5).tallies().waiting.packets, 1);
    }

    #[test]
    fn a_bdp_queue_holds_one_bandwidth_delay_product_and_at_least_a_hundred_packets() {
        let waiting = |megabits, millis| {
            let rate = Some(Rate::from_megabits_per_second(megabits));
            let size = QueueSize::Bdp(Duration::from_millis(millis));
            filled(size.drop_tail(rate), 20_000).tallies().waiting.packets
        };
        assert_eq!(waiting(1_000, 100), 8_334); // 12.5 MB
        assert_eq!(waiting(1_000, 1), 100);
    }
}
