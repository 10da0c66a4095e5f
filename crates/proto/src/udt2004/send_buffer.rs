//! What this side still may have to send: whole datagrams, ready to leave without another copy.
//!
//! Like that of UDT4 (`buffer/send.rs`), but for a header that is complete as soon as the packet has its number: packets lie
//! at a fixed stride with the header in front, so that a run of them is one slice.

use std::collections::VecDeque;

use farhaul_units::{SeqNo, SeqRange};
use farhaul_wire::udt2004::{HEADER_LEN, SeqNo30, encode_data_header};

/// Bytes of one train that the kernel segments: the largest UDP payload over IPv4.
const MAX_TRAIN_BYTES: usize = 65_507;
/// Datagrams in one train: the limit of Linux (UDP_MAX_SEGMENTS).
const MAX_TRAIN_PACKETS: usize = 64;
/// Chunks kept for reuse, about 2 MB: enough that a steady flow allocates nothing.
const SPARE_CHUNKS: usize = 32;

/// Packets from the oldest unacknowledged to the newest written.
#[derive(Debug)]
pub(super) struct SendBuffer {
    payload_size: usize,
    per_chunk: u32,
    /// Oldest packet held.
    first: SeqNo,
    /// The number that the next written packet gets.
    end: SeqNo,
    /// Packets at the front of the front chunk that have been released already.
    released_in_front: u32,
    chunks: VecDeque<Chunk>,
    spare: Vec<Chunk>,
}

#[derive(Debug)]
struct Chunk {
    /// Packets at stride header + payload.
    bytes: Box<[u8]>,
    /// Payload length of each.
    lens: Box<[u16]>,
}

/// Consecutive packets as one slice of datagrams; all but the last have `segment_size` bytes.
#[derive(Debug)]
pub(super) struct Run<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) segment_size: usize,
    pub(super) packets: u32,
}

impl SendBuffer {
    /// An empty buffer whose first packet will be `first`.
    pub(super) fn new(first: SeqNo, payload_size: usize) -> Self {
        let per_chunk = (MAX_TRAIN_BYTES / (payload_size + HEADER_LEN)).clamp(1, MAX_TRAIN_PACKETS) as u32;
        Self {
            payload_size,
            per_chunk,
            first,
            end: first,
            released_in_front: 0,
            chunks: VecDeque::new(),
            spare: Vec::new(),
        }
    }

    pub(super) const fn first(&self) -> SeqNo {
        self.first
    }

    pub(super) const fn end(&self) -> SeqNo {
        self.end
    }

    pub(super) const fn payload_size(&self) -> usize {
        self.payload_size
    }

    /// Packets held.
    pub(super) fn packets(&self) -> u32 {
        SeqRange::new(self.first, self.end.minus(1)).len()
    }

    /// Bytes of memory held, reserves included.
    pub(super) fn memory(&self) -> usize {
        (self.chunks.len() + self.spare.len()) * self.per_chunk as usize * (self.stride() + size_of::<u16>())
    }

    /// Gives back memory that is only kept for reuse.
    pub(super) fn shrink(&mut self) {
        self.spare = Vec::new();
    }

    /// Takes stream data. A last packet that has not been sent yet (not before `next_to_send`) and has room is filled up first.
    pub(super) fn write(&mut self, mut data: &[u8], next_to_send: SeqNo) {
        if self.end.is_after(next_to_send) {
            data = self.fill_last(data);
        }
        while !data.is_empty() {
            let (packet, rest) = data.split_at(data.len().min(self.payload_size));
            self.push(packet);
            data = rest;
        }
    }

    /// The packets from `seq` on that lie side by side, at most `max`, ending after one that is not full. `None` for a packet
    /// that is not held.
    pub(super) fn run(&self, seq: SeqNo, max: u32) -> Option<Run<'_>> {
        let (chunk, slot) = self.locate(seq)?;
        let available = SeqRange::new(seq, self.end.minus(1)).len();
        let most = max.min(available).min(self.per_chunk - slot as u32) as usize;
        let stride = self.stride();
        let Chunk { bytes, lens } = &self.chunks[chunk];
        let lens = &lens[slot..slot + most];
        let packets = lens.iter().position(|&len| usize::from(len) < self.payload_size).map_or(most, |short| short + 1);
        let last_len = usize::from(*lens.get(packets.checked_sub(1)?)?);
        let from = slot * stride;
        let bytes = &bytes[from..from + (packets - 1) * stride + HEADER_LEN + last_len];
        Some(Run { bytes, segment_size: stride, packets: packets as u32 })
    }

    /// Releases everything before `seq`; says how many payload bytes that was.
    pub(super) fn release(&mut self, seq: SeqNo) -> u64 {
        let seq = seq.earlier(self.end);
        let mut released = 0;
        while self.first.is_before(seq) {
            let slot = self.released_in_front as usize;
            let in_chunk = (self.per_chunk - self.released_in_front).min(SeqRange::new(self.first, seq.minus(1)).len());
            let front = self.chunks.front().expect("a packet before the end is held in a chunk");
            released += front.lens[slot..slot + in_chunk as usize].iter().map(|&len| u64::from(len)).sum::<u64>();
            self.first = self.first.plus(in_chunk);
            self.released_in_front += in_chunk;
            if self.released_in_front == self.per_chunk {
                self.retire_front();
            }
        }
        if self.first == self.end && self.released_in_front > 0 {
            self.retire_front();
        }
        released
    }

    fn retire_front(&mut self) {
        self.released_in_front = 0;
        if let Some(chunk) = self.chunks.pop_front()
            && self.spare.len() < SPARE_CHUNKS
        {
            self.spare.push(chunk);
        }
    }

    const fn stride(&self) -> usize {
        self.payload_size + HEADER_LEN
    }

    /// Chunk and slot of a held packet.
    fn locate(&self, seq: SeqNo) -> Option<(usize, usize)> {
        let offset = u32::try_from(seq.distance_from(self.first)).ok()?;
        if !seq.is_before(self.end) {
            return None;
        }
        let index = offset + self.released_in_front;
        Some(((index / self.per_chunk) as usize, (index % self.per_chunk) as usize))
    }

    /// Fills up the newest packet; gives back what did not fit.
    fn fill_last<'d>(&mut self, data: &'d [u8]) -> &'d [u8] {
        let Some((chunk, slot)) = self.locate(self.end.minus(1)) else { return data };
        let at = slot * self.stride() + HEADER_LEN;
        let Chunk { bytes, lens } = &mut self.chunks[chunk];
        let len = usize::from(lens[slot]);
        let (fits, rest) = data.split_at(data.len().min(self.payload_size - len));
        bytes[at + len..at + len + fits.len()].copy_from_slice(fits);
        lens[slot] += fits.len() as u16;
        rest
    }

    fn push(&mut self, payload: &[u8]) {
        let held = self.packets() + self.released_in_front;
        if held == self.chunks.len() as u32 * self.per_chunk {
            let chunk = self.spare.pop().unwrap_or_else(|| self.new_chunk());
            self.chunks.push_back(chunk);
        }
        let slot = (held % self.per_chunk) as usize;
        let at = slot * self.stride();
        let chunk = self.chunks.back_mut().expect("a chunk was pushed if there was none with room");
        let (head, rest) = chunk.bytes[at..].split_at_mut(HEADER_LEN);
        head.copy_from_slice(&encode_data_header(SeqNo30::from(self.end)));
        rest[..payload.len()].copy_from_slice(payload);
        chunk.lens[slot] = payload.len() as u16;
        self.end = self.end.next();
    }

    fn new_chunk(&self) -> Chunk {
        let packets = self.per_chunk as usize;
        Chunk { bytes: vec![0; packets * self.stride()].into_boxed_slice(), lens: vec![0; packets].into_boxed_slice() }
    }
}

#[cfg(test)]
mod tests {
    use farhaul_wire::udt2004::split_data;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_write_continues_in_the_last_packet_until_that_was_sent() {
        let mut buffer = SendBuffer::new(SeqNo::new(0), 100);
        buffer.write(&[1; 30], SeqNo::new(0));
        buffer.write(&[2; 30], SeqNo::new(0));
        assert_eq!(buffer.packets(), 1);
        buffer.write(&[3; 30], SeqNo::new(1));
        assert_eq!(buffer.packets(), 2, "packet 0 has left and is closed");
    }

    #[test]
    fn a_run_is_one_slice_and_ends_after_a_short_packet() {
        let mut buffer = SendBuffer::new(SeqNo::new(5), 100);
        buffer.write(&[1; 250], SeqNo::new(5));
        buffer.write(&[2; 100], SeqNo::new(8));
        let run = buffer.run(SeqNo::new(5), 10).unwrap();
        assert_eq!((run.packets, run.segment_size, run.bytes.len()), (3, 104, 2 * 104 + 54));
    }

    proptest! {
        #[test]
        fn holds_exactly_what_was_written_and_not_released(
            first in prop_oneof![Just(0x3FFF_FFF0u32), Just(0x7FFF_FFF0), 0u32..0x7FFF_FFFF],
            steps in proptest::collection::vec((1usize..5_000, 0u32..40), 1..40),
        ) {
            let mut buffer = SendBuffer::new(SeqNo::new(first), 97);
            let (mut written, mut released) = (Vec::new(), 0usize);
            for (i, (bytes, acked)) in steps.into_iter().enumerate() {
                let data: Vec<u8> = (0..bytes).map(|b| (b * 31 + i) as u8).collect();
                buffer.write(&data, buffer.first());
                written.extend_from_slice(&data);
                let to = buffer.first().plus(acked.min(buffer.packets().saturating_sub(1)));
                released += buffer.release(to) as usize;
                let mut held = Vec::new();
                let mut at = buffer.first();
                while at != buffer.end() {
                    let run = buffer.run(at, 10).unwrap();
                    for packet in run.bytes.chunks(run.segment_size) {
                        let (seq, payload) = split_data(packet).unwrap();
                        prop_assert_eq!(seq, SeqNo30::from(at));
                        held.extend_from_slice(payload);
                        at = at.next();
                    }
                }
                prop_assert_eq!(&held[..], &written[released..]);
            }
            buffer.release(buffer.end());
            buffer.shrink();
            prop_assert_eq!(buffer.memory(), 0);
        }
    }
}
