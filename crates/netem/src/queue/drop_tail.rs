//! First in, first out; who comes when the queue is full is dropped.

use std::collections::VecDeque;

use farhaul_units::Instant;

use crate::{Queue, Tally, WireLen};

/// A queue limited in packets or in bytes.
///
/// A packet that does not fit as a whole is dropped. An empty queue takes every packet, so the smallest queue holds
/// one and an idle link never drops.
#[derive(Debug)]
pub struct DropTail<P> {
    packets: VecDeque<P>,
    max_packets: u64,
    max_bytes: u64,
    waiting: Tally,
    dropped: Tally,
}

impl<P> DropTail<P> {
    /// Room for `max` packets.
    pub fn of_packets(max: u64) -> Self {
        Self::new(max, u64::MAX)
    }

    /// Room for `max` bytes.
    pub fn of_bytes(max: u64) -> Self {
        Self::new(u64::MAX, max)
    }

    fn new(max_packets: u64, max_bytes: u64) -> Self {
        let (waiting, dropped) = (Tally::default(), Tally::default());
        Self { packets: VecDeque::new(), max_packets, max_bytes, waiting, dropped }
    }

    fn has_room_for(&self, bytes: u32) -> bool {
        let fits_packets = self.waiting.packets < self.max_packets;
        let fits_bytes = self.waiting.bytes.saturating_add(u64::from(bytes)) <= self.max_bytes;
        self.packets.is_empty() || (fits_packets && fits_bytes)
    }
}

/// What a packet takes of the byte limit. Never nothing: packets that claim no length must not fill memory.
fn room_taken<P: WireLen>(packet: &P) -> u32 {
    packet.wire_len().max(1)
}

impl<P: WireLen> Queue<P> for DropTail<P> {
    fn enqueue(&mut self, _now: Instant, packet: P) {
        let bytes = room_taken(&packet);
        if self.has_room_for(bytes) {
            self.waiting.add(bytes);
            self.packets.push_back(packet);
        } else {
            self.dropped.add(bytes);
        }
    }

    fn dequeue(&mut self, _now: Instant) -> Option<P> {
        let packet = self.packets.pop_front()?;
        self.waiting.remove(room_taken(&packet));
        Some(packet)
    }

    fn waiting(&self) -> Tally {
        self.waiting
    }

    fn dropped(&self) -> Tally {
        self.dropped
    }
}

#[cfg(test)]
mod tests {
    use farhaul_units::{Duration, Rate};

    use super::*;
    use crate::QueueSize;
    use crate::testing::Numbered;

    fn filled(mut queue: DropTail<Numbered>, packets: u32) -> DropTail<Numbered> {
        (0..packets).for_each(|number| queue.enqueue(Instant::ZERO, Numbered::new(number)));
        queue
    }

    #[test]
    fn drops_exactly_the_packets_beyond_its_size() {
        let mut queue = filled(DropTail::of_packets(3), 5);
        assert_eq!(queue.dropped().packets, 2);
        let left: Vec<u32> = core::iter::from_fn(|| queue.dequeue(Instant::ZERO)).map(|packet| packet.number).collect();
        assert_eq!(left, [0, 1, 2]);
        assert_eq!(queue.waiting(), Tally::default());
    }

    #[test]
    fn a_byte_limit_counts_whole_packets() {
        assert_eq!(filled(DropTail::of_bytes(4_499), 5).waiting(), Tally { packets: 2, bytes: 3_000 });
        assert_eq!(filled(DropTail::of_bytes(4_500), 5).waiting(), Tally { packets: 3, bytes: 4_500 });
    }

    #[test]
    fn the_smallest_queue_holds_one_packet() {
        assert_eq!(filled(DropTail::of_packets(0), 5).waiting().packets, 1);
        assert_eq!(filled(DropTail::of_bytes(0), 5).waiting().packets, 1);
    }

    #[test]
    fn a_bdp_queue_holds_one_bandwidth_delay_product_and_at_least_a_hundred_packets() {
        let waiting = |megabits, millis| {
            let rate = Some(Rate::from_megabits_per_second(megabits));
            let size = QueueSize::Bdp(Duration::from_millis(millis));
            filled(size.drop_tail(rate), 20_000).waiting().packets
        };
        assert_eq!(waiting(1_000, 100), 8_334); // 12.5 MB
        assert_eq!(waiting(1_000, 1), 100);
    }
}
