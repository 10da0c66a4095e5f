//! The interface of a discipline, and a FIFO of waiting packets with a limit, the base of each.

use std::collections::VecDeque;

use farhaul_units::Instant;

use crate::counters::Tally;
use crate::packet::WireLen;

/// Size of a full packet in bytes, the usual MTU. Converts a bandwidth-delay product to packets.
pub const FULL_PACKET: u32 = 1_500;

/// A queueing discipline. It decides which packet leaves next and which are dropped, on arrival or on departure.
pub trait Queue<P> {
    /// Whether a packet that finds the link idle leaves no trace in the queue. The link then sends it past the queue.
    const IS_PASSIVE: bool = false;

    /// Takes in a packet that arrives at `now`, or drops it or another one.
    fn enqueue(&mut self, now: Instant, packet: P);

    /// The packet to send at `now`; `None` if the queue is empty. The link asks whenever it can send, so the first
    /// `None` marks the instant since which it is idle.
    fn dequeue(&mut self, now: Instant) -> Option<P>;

    /// What waits, and what was dropped so far.
    fn tallies(&self) -> &QueueTallies;

    /// The average length in packets on which the discipline bases its drops. Zero for disciplines without one.
    fn average(&self) -> f64 {
        0.0
    }
}

/// The packets that a queue holds and has dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueTallies {
    /// The waiting packets.
    pub waiting: Tally,
    /// The packets dropped so far.
    pub dropped: Tally,
    /// The part of them for which there was room.
    pub dropped_early: Tally,
}

/// How much may wait.
///
/// A packet must fit as a whole. An empty queue takes any packet, so the smallest queue holds one and an idle link
/// never drops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    packets: u64,
    bytes: u64,
}

impl Limit {
    /// At most this many packets.
    pub const fn of_packets(packets: u64) -> Self {
        Self { packets, bytes: u64::MAX }
    }

    /// At most this many bytes.
    pub const fn of_bytes(bytes: u64) -> Self {
        Self { packets: u64::MAX, bytes }
    }

    fn admits(&self, waiting: Tally, bytes: u32) -> bool {
        let fits_packets = waiting.packets < self.packets;
        let fits_bytes = waiting.bytes.saturating_add(u64::from(bytes)) <= self.bytes;
        waiting.packets == 0 || (fits_packets && fits_bytes)
    }
}

/// The waiting packets of one queue.
#[derive(Debug)]
pub(super) struct Backlog<P> {
    packets: VecDeque<P>,
    limit: Limit,
    pub(super) tallies: QueueTallies,
}

impl<P: WireLen> Backlog<P> {
    pub(super) fn new(limit: Limit) -> Self {
        Self { packets: VecDeque::new(), limit, tallies: QueueTallies::default() }
    }

    pub(super) fn has_room_for(&self, packet: &P) -> bool {
        self.limit.admits(self.tallies.waiting, room_taken(packet))
    }

    /// Appends a packet, whether or not there is room.
    pub(super) fn push(&mut self, packet: P) {
        self.tallies.waiting.add(room_taken(&packet));
        self.packets.push_back(packet);
    }

    pub(super) fn pop(&mut self) -> Option<P> {
        let packet = self.packets.pop_front()?;
        self.tallies.waiting.remove(room_taken(&packet));
        Some(packet)
    }

    /// Counts a packet that is not in the queue as dropped.
    pub(super) fn drop(&mut self, packet: P) {
        self.tallies.dropped.add(room_taken(&packet));
    }

    /// The same for a packet for which there was room.
    pub(super) fn drop_early(&mut self, packet: P) {
        self.tallies.dropped_early.add(room_taken(&packet));
        self.drop(packet);
    }
}

/// The share of the byte limit that a packet takes. At least one byte, so that packets without a length cannot fill
/// memory.
pub(super) fn room_taken<P: WireLen>(packet: &P) -> u32 {
    packet.wire_len().max(1)
}
