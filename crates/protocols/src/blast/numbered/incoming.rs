//! The datagrams that a receiver holds, and the account of its stream.

use farhaul_units::SeqNo;

use super::{FIELD, FIRST, payload_size};
use crate::blast::engine::Setup;
use farhaul_proto::buffer::{Insert, RecvBuffer};
use farhaul_proto::stats::Stats;

/// The datagrams of a receiver.
#[derive(Debug)]
pub(crate) struct Incoming {
    /// The datagrams. Their numbers begin at [`FIRST`].
    pub(crate) buffer: RecvBuffer,
    /// Most payload bytes of a datagram.
    pub(crate) payload_size: usize,
    /// Payload bytes read by the application.
    pub(crate) read: u64,
    datagrams: u64,
    duplicates: u64,
    invalid: u64,
    /// Payload bytes of datagrams that were new.
    stored: u64,
}

impl Incoming {
    /// None yet. The settings of the connection bound their number.
    pub(crate) fn new(setup: &Setup<'_>) -> Self {
        let payload_size = payload_size(setup);
        let by_memory = u32::try_from(setup.config.recv_buffer / payload_size as u64).unwrap_or(u32::MAX);
        let capacity = by_memory.clamp(2, farhaul_proto::seq_set::MAX_CAPACITY / 2);
        let buffer = RecvBuffer::new(FIRST, payload_size, capacity);
        Self { buffer, payload_size, read: 0, datagrams: 0, duplicates: 0, invalid: 0, stored: 0 }
    }

    /// Stores a datagram that was split into number and payload. Returns false if no sender sends it. `on_new` hears of
    /// a number that was missing so far.
    ///
    /// A datagram without room is covered by no credit. It is missing as if the path had lost it.
    pub(crate) fn take<E>(&mut self, datagram: Result<(SeqNo, &[u8]), E>, on_new: impl FnOnce(SeqNo)) -> bool {
        let (number, payload) = match datagram {
            Ok((number, payload)) if payload.len() <= self.payload_size => (number, payload),
            _ => {
                self.invalid += 1;
                return false;
            }
        };
        self.datagrams += 1;
        match self.buffer.insert(number, FIELD, payload) {
            Insert::New => {
                self.stored += payload.len() as u64;
                on_new(number);
            }
            Insert::Duplicate => self.duplicates += 1,
            Insert::Rejected => {}
        }
        true
    }

    /// The first number that has no room now.
    pub(crate) fn room_end(&self) -> SeqNo {
        self.buffer.next_to_read().plus(self.buffer.capacity())
    }

    /// Moves bytes in order into `out`, and returns their number.
    pub(crate) fn read(&mut self, out: &mut [u8]) -> usize {
        let read = self.buffer.read(out);
        self.read += read as u64;
        read
    }

    /// Bytes of the stream that have arrived without a gap, read or not.
    pub(crate) fn delivered(&self) -> u64 {
        self.read + self.buffer.available()
    }

    /// Fills in the figures that do not depend on the protocol.
    pub(crate) fn fill_stats(&self, stats: &mut Stats) {
        let totals = &mut stats.totals;
        totals.packets_received = self.datagrams;
        totals.packets_duplicate = self.duplicates;
        totals.packets_invalid += self.invalid;
        totals.bytes_received = self.stored;
        totals.bytes_read = self.read;
        stats.recv_buffer_packets = self.buffer.readable_packets();
        stats.recv_buffer_free = u64::from(self.buffer.free()) * self.payload_size as u64;
        stats.memory += self.buffer.memory() as u64;
    }
}
