//! The part that the receivers of all protocols share: the packets in order, their counts, and the sender's records.

use farhaul_units::{Duration, MsgNo, SeqNo, SeqRange};
use farhaul_wire::udt4::{MessageField, Position};

use super::partial::Partial;
use super::setup::Setup;
use farhaul_proto::buffer::{Insert, RecvBuffer};
use farhaul_proto::stats::Stats;

/// A field of packets in memory that these protocols do not use.
const FIELD: MessageField = MessageField { position: Position::Only, in_order: false, message: MsgNo::FIRST };

/// The state of a receiver that does not depend on the protocol.
#[derive(Debug)]
pub struct ReceiverState {
    /// The packets of the stream.
    pub(crate) buffer: RecvBuffer,
    /// Most payload bytes of a packet.
    pub(crate) payload_size: usize,
    /// The latest estimate of the RTT.
    pub(crate) round_trip: Duration,
    /// The beginning of a record of the sender whose end has not arrived.
    pub(crate) partial: Partial,
    pub(crate) counts: Counts,
}

/// Counts of a receiver.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Packets that arrived, and those of them that had arrived before.
    pub(crate) packets: u64,
    pub(crate) duplicates: u64,
    /// Datagrams that no sender sends, of those that the connection does not count by itself: the ones that
    /// [`handle_datagram`](super::engine::Receiver::handle_datagram) refuses.
    pub(crate) invalid: u64,
    /// Packets that were missing, by the rule of the protocol.
    pub(crate) lost: u64,
    /// Acknowledgements and reports of losses.
    pub(crate) acks: u64,
    pub(crate) naks: u64,
    /// Payload bytes of packets that were new, and those that the application has read.
    pub(crate) stored: u64,
    pub(crate) read: u64,
}

impl ReceiverState {
    /// No packet yet. It expects `first`, and holds at most `capacity` packets with at most `payload_size` bytes.
    pub(crate) fn new(first: SeqNo, payload_size: usize, capacity: u32, setup: &Setup<'_>) -> Self {
        Self {
            buffer: RecvBuffer::new(first, payload_size, capacity),
            payload_size,
            round_trip: setup.round_trip,
            partial: Partial::default(),
            counts: Counts::default(),
        }
    }

    /// Stores and counts a packet. One beyond the room is covered by no credit. It is missing as if the path had lost it.
    pub(crate) fn store(&mut self, number: SeqNo, payload: &[u8]) -> Insert {
        self.counts.packets += 1;
        let stored = self.insert(number, payload);
        match stored {
            Insert::New => self.counts.stored += payload.len() as u64,
            Insert::Duplicate => self.counts.duplicates += 1,
            Insert::Rejected => {}
        }
        stored
    }

    /// Stores a packet without counting it.
    pub(crate) fn insert(&mut self, number: SeqNo, payload: &[u8]) -> Insert {
        self.buffer.insert(number, FIELD, payload)
    }

    /// The first number that has no room now.
    pub(crate) fn room_end(&self) -> SeqNo {
        self.buffer.next_to_read().plus(self.buffer.capacity())
    }

    /// The packets of a range that have not arrived. Those after the furthest that arrived may be among them.
    pub(crate) fn missing(&self, range: SeqRange) -> impl Iterator<Item = SeqRange> + '_ {
        let beyond = SeqRange::new(range.first.later(self.buffer.end()), range.last);
        self.buffer.missing(range).chain(Some(beyond).filter(|beyond| !beyond.is_empty()))
    }

    /// Counts a datagram that the host refuses.
    pub fn count_invalid(&mut self) {
        self.counts.invalid += 1;
    }

    /// Moves bytes in order into `out`, and returns their number.
    pub(crate) fn read(&mut self, out: &mut [u8]) -> usize {
        let read = self.buffer.read(out);
        self.counts.read += read as u64;
        read
    }

    /// Bytes of the stream that have arrived without a gap, read or not.
    pub(crate) fn delivered(&self) -> u64 {
        self.counts.read + self.buffer.available()
    }

    /// Fills in the figures of the receiver. The connection counts the datagrams that it refuses.
    pub(crate) fn fill_stats(&self, stats: &mut Stats) {
        let totals = &mut stats.totals;
        totals.packets_received = self.counts.packets;
        totals.packets_duplicate = self.counts.duplicates;
        totals.packets_invalid += self.counts.invalid;
        totals.packets_lost_receiving = self.counts.lost;
        totals.acks_sent = self.counts.acks;
        totals.naks_sent = self.counts.naks;
        totals.bytes_received = self.counts.stored;
        totals.bytes_read = self.counts.read;
        stats.recv_buffer_packets = self.buffer.readable_packets();
        stats.recv_buffer_free = u64::from(self.buffer.free()) * self.payload_size as u64;
        stats.memory += self.buffer.memory() as u64;
    }
}

/// Packets with `payload_size` bytes that a memory of `bytes` bytes holds.
pub(crate) fn packets_in(bytes: u64, payload_size: usize) -> u32 {
    u32::try_from(bytes / payload_size as u64).unwrap_or(u32::MAX)
}
