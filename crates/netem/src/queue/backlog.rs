//! A FIFO of waiting packets with a limit, the base of every discipline.

use std::collections::VecDeque;

use crate::{Tally, WireLen};

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
    waiting: Tally,
    dropped: Tally,
}

impl<P: WireLen> Backlog<P> {
    pub(super) fn new(limit: Limit) -> Self {
        Self { packets: VecDeque::new(), limit, waiting: Tally::default(), dropped: Tally::default() }
    }

    pub(super) fn has_room_for(&self, packet: &P) -> bool {
        self.limit.admits(self.waiting, room_taken(packet))
    }

    /// Appends a packet, whether or not there is room.
    pub(super) fn push(&mut self, packet: P) {
        self.waiting.add(room_taken(&packet));
        self.packets.push_back(packet);
    }

    pub(super) fn pop(&mut self) -> Option<P> {
        let packet = self.packets.pop_front()?;
        self.waiting.remove(room_taken(&packet));
        Some(packet)
    }

    /// Counts a packet that is not in the queue as dropped.
    pub(super) fn drop(&mut self, packet: P) {
        self.dropped.add(room_taken(&packet));
    }

    pub(super) fn waiting(&self) -> Tally {
        self.waiting
    }

    pub(super) fn dropped(&self) -> Tally {
        self.dropped
    }
}

/// The share of the byte limit that a packet takes. At least one byte, so that packets without a length cannot fill
/// memory.
pub(super) fn room_taken<P: WireLen>(packet: &P) -> u32 {
    packet.wire_len().max(1)
}
