//! What this side still may have to send: whole datagrams, ready to leave without another copy.
//!
//! Packets lie at a fixed stride with room for the header in front, so that a run of them is one slice that the kernel
//! can segment (GSO). Everything of the header except the time stamp is written when the application hands in the data.

use std::collections::VecDeque;

use farhaul_units::{MsgNo, SeqNo, SeqRange};
use farhaul_wire::udt4::{DataHeader, HEADER_LEN, MessageField, Position, SocketId, Timestamp};

/// Bytes of one train that the kernel segments: the largest UDP payload over IPv4.
const MAX_TRAIN_BYTES: usize = 65_507;
/// Datagrams in one train: the limit of Linux (UDP_MAX_SEGMENTS).
const MAX_TRAIN_PACKETS: usize = 64;
/// Chunks kept for reuse, about 2 MB: enough that a steady flow allocates nothing, little enough to forget.
const SPARE_CHUNKS: usize = 32;

/// Packets from the oldest unacknowledged to the newest written.
#[derive(Debug)]
pub(crate) struct SendBuffer {
    /// Payload bytes of a full packet.
    payload_size: usize,
    /// Packets per chunk; a chunk is at most one train.
    per_chunk: u32,
    destination: SocketId,
    /// Oldest packet held.
    first: SeqNo,
    /// The number that the next written packet gets.
    end: SeqNo,
    /// Packets at the front of the front chunk that have been released already.
    released_in_front: u32,
    chunks: VecDeque<Chunk>,
    spare: Vec<Chunk>,
    next_message: MsgNo,
}

#[derive(Debug)]
struct Chunk {
    /// `per_chunk` packets at stride header + payload.
    bytes: Box<[u8]>,
    /// Payload length of each packet.
    lens: Box<[u16]>,
}

/// Consecutive packets as one slice of datagrams.
#[derive(Debug)]
pub(crate) struct Run<'a> {
    /// The datagrams, back to back; all but the last have `segment_size` bytes.
    pub(crate) bytes: &'a mut [u8],
    pub(crate) segment_size: usize,
    pub(crate) packets: u32,
}

impl SendBuffer {
    /// An empty buffer whose first packet will be `first`, for packets of `payload_size` bytes to `destination`.
    pub(crate) fn new(first: SeqNo, payload_size: usize, destination: SocketId) -> Self {
        let per_chunk = (MAX_TRAIN_BYTES / (payload_size + HEADER_LEN)).clamp(1, MAX_TRAIN_PACKETS) as u32;
        Self {
            payload_size,
            per_chunk,
            destination,
            first,
            end: first,
            released_in_front: 0,
            chunks: VecDeque::new(),
            spare: Vec::new(),
            next_message: MsgNo::FIRST,
        }
    }

    /// Oldest packet held; equal to [`end`](Self::end) when empty.
    pub(crate) const fn first(&self) -> SeqNo {
        self.first
    }

    /// The number that the next written packet gets.
    pub(crate) const fn end(&self) -> SeqNo {
        self.end
    }

    pub(crate) const fn payload_size(&self) -> usize {
        self.payload_size
    }

    /// Packets held.
    pub(crate) fn packets(&self) -> u32 {
        SeqRange::new(self.first, self.end.minus(1)).len()
    }

    /// Bytes of memory held, reserves included.
    pub(crate) fn memory(&self) -> usize {
        (self.chunks.len() + self.spare.len()) * self.per_chunk as usize * (self.stride() + size_of::<u16>())
    }

    /// Gives back memory that is only kept for reuse.
    pub(crate) fn shrink(&mut self) {
        self.spare = Vec::new();
    }

    /// Takes stream data. A last packet that has not been sent yet (not before `next_to_send`) and has room is filled
    /// up first: the receiver of a stream does not care where one write ended.
    pub(crate) fn write_stream(&mut self, mut data: &[u8], next_to_send: SeqNo) {
        if self.end.is_after(next_to_send) && !data.is_empty() {
            data = self.fill_last(data);
        }
        while !data.is_empty() {
            let (packet, rest) = data.split_at(data.len().min(self.payload_size));
            let message = self.take_message_number();
            self.push(packet, MessageField { position: Position::Only, in_order: false, message });
            data = rest;
        }
    }

    /// Takes one message, cut into packets; says which packets carry it and under what number.
    pub(crate) fn write_message(&mut self, data: &[u8], in_order: bool) -> (SeqRange, MsgNo) {
        let message = self.take_message_number();
        let first = self.end;
        let count = self.packets_for(data.len()) as usize;
        for index in 0..count {
            let from = index * self.payload_size;
            let packet = &data[from..data.len().min(from + self.payload_size)];
            self.push(packet, MessageField { position: Position::of(index, count), in_order, message });
        }
        (SeqRange::new(first, self.end.minus(1)), message)
    }

    /// Packets that a message of `bytes` takes; an empty message is one empty packet.
    pub(crate) fn packets_for(&self, bytes: usize) -> u32 {
        bytes.div_ceil(self.payload_size).max(1) as u32
    }

    /// The packets from `seq` on that lie side by side, at most `max`, ending after one that is not full, each stamped
    /// with `now`. `None` for a packet that is not held.
    pub(crate) fn run(&mut self, seq: SeqNo, max: u32, now: Timestamp) -> Option<Run<'_>> {
        let (chunk, slot) = self.locate(seq)?;
        let available = SeqRange::new(seq, self.end.minus(1)).len();
        let most = max.min(available).min(self.per_chunk - slot as u32) as usize;
        let (stride, full) = (self.stride(), self.payload_size);
        let Chunk { bytes, lens } = &mut self.chunks[chunk];
        let lens = &lens[slot..slot + most];
        let packets = lens.iter().position(|&len| usize::from(len) < full).map_or(most, |short| short + 1);
        let last_len = usize::from(*lens.get(packets.checked_sub(1)?)?);
        let from = slot * stride;
        let bytes = &mut bytes[from..from + (packets - 1) * stride + HEADER_LEN + last_len];
        for packet in bytes.chunks_mut(stride) {
            DataHeader::set_timestamp(packet, now);
        }
        Some(Run { bytes, segment_size: stride, packets: packets as u32 })
    }

    /// When a held packet was last stamped for sending.
    pub(crate) fn stamped(&self, seq: SeqNo) -> Option<Timestamp> {
        let (chunk, slot) = self.locate(seq)?;
        let at = slot * self.stride();
        Some(DataHeader::timestamp_of(&self.chunks[chunk].bytes[at..at + HEADER_LEN]))
    }

    /// The payload of a held packet.
    #[cfg(test)]
    pub(crate) fn payload(&self, seq: SeqNo) -> Option<&[u8]> {
        let (chunk, slot) = self.locate(seq)?;
        let at = slot * self.stride() + HEADER_LEN;
        let Chunk { bytes, lens } = &self.chunks[chunk];
        Some(&bytes[at..at + usize::from(lens[slot])])
    }

    /// Releases everything before `seq`; says how many payload bytes that was.
    pub(crate) fn release(&mut self, seq: SeqNo) -> u64 {
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

    /// The next message has this number; before the first only.
    pub(crate) fn number_messages_from(&mut self, number: MsgNo) {
        self.next_message = number;
    }

    fn take_message_number(&mut self) -> MsgNo {
        let number = self.next_message;
        self.next_message = number.next();
        number
    }

    fn stride(&self) -> usize {
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

    fn push(&mut self, payload: &[u8], field: MessageField) {
        let held = self.packets() + self.released_in_front;
        if held == self.chunks.len() as u32 * self.per_chunk {
            let chunk = self.spare.pop().unwrap_or_else(|| self.new_chunk());
            self.chunks.push_back(chunk);
        }
        let slot = (held % self.per_chunk) as usize;
        let at = slot * self.stride();
        let header = DataHeader { seq: self.end, field, timestamp: Timestamp::ZERO, destination: self.destination };
        let chunk = self.chunks.back_mut().expect("a chunk was pushed if there was none with room");
        let (head, rest) = chunk.bytes[at..].split_at_mut(HEADER_LEN);
        header.encode(head.try_into().expect("split at the header length"));
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
    use proptest::prelude::*;

    use super::*;

    fn buffer(first: u32, payload_size: usize) -> SendBuffer {
        SendBuffer::new(SeqNo::new(first), payload_size, SocketId::new(7))
    }

    #[test]
    fn a_write_continues_in_the_last_packet_until_that_was_sent() {
        let mut buffer = buffer(0, 100);
        buffer.write_stream(&[1; 30], SeqNo::new(0));
        buffer.write_stream(&[2; 30], SeqNo::new(0));
        assert_eq!(buffer.packets(), 1);
        buffer.write_stream(&[3; 30], SeqNo::new(1));
        assert_eq!(buffer.packets(), 2, "packet 0 has left and is closed");
    }

    #[test]
    fn a_run_is_one_slice_and_ends_after_a_short_packet() {
        let mut buffer = buffer(5, 100);
        buffer.write_stream(&[1; 250], SeqNo::new(5));
        buffer.write_stream(&[2; 100], SeqNo::new(8));
        let run = buffer.run(SeqNo::new(5), 10, Timestamp::new(9)).unwrap();
        assert_eq!((run.packets, run.segment_size, run.bytes.len()), (3, 116, 2 * 116 + 66));
        assert_eq!(DataHeader::timestamp_of(&run.bytes[116..]), Timestamp::new(9));
    }

    #[test]
    fn a_message_is_cut_into_first_middle_last() {
        let mut buffer = buffer(0, 100);
        let (range, message) = buffer.write_message(&[1; 250], true);
        assert_eq!((range.len(), message), (3, MsgNo::FIRST));
        let run = buffer.run(SeqNo::new(0), 3, Timestamp::ZERO).unwrap();
        let fields: Vec<_> =
            run.bytes.chunks(116).map(|packet| DataHeader::decode(packet).unwrap().0.field.position).collect();
        assert_eq!(fields, [Position::First, Position::Middle, Position::Last]);
    }

    #[test]
    fn memory_returns_when_everything_is_acknowledged() {
        let mut buffer = buffer(0, 1456);
        buffer.write_stream(&vec![0; 10_000_000], SeqNo::new(0));
        buffer.release(buffer.end());
        buffer.shrink();
        assert_eq!((buffer.memory(), buffer.packets()), (0, 0));
    }

    proptest! {
        #[test]
        fn holds_exactly_what_was_written_and_not_released(
            first in prop_oneof![Just(0x7FFF_FFF0u32), 0u32..0x7FFF_FFFF],
            steps in proptest::collection::vec((1usize..5_000, 0u32..40), 1..40),
        ) {
            let mut buffer = SendBuffer::new(SeqNo::new(first), 97, SocketId::new(7));
            let (mut written, mut released) = (Vec::new(), 0usize);
            for (i, (bytes, acked)) in steps.into_iter().enumerate() {
                let data: Vec<u8> = (0..bytes).map(|b| (b * 31 + i) as u8).collect();
                buffer.write_stream(&data, buffer.first());
                written.extend_from_slice(&data);
                let to = buffer.first().plus(acked.min(buffer.packets().saturating_sub(1)));
                released += buffer.release(to) as usize;
                let mut held = Vec::new();
                let mut at = buffer.first();
                while at != buffer.end() {
                    held.extend_from_slice(buffer.payload(at).unwrap());
                    let run = buffer.run(at, 10, Timestamp::ZERO).unwrap();
                    let packet = DataHeader::decode(&run.bytes[..run.segment_size.min(run.bytes.len())]).unwrap().0;
                    prop_assert_eq!(packet.seq, at);
                    at = at.next();
                }
                prop_assert_eq!(&held[..], &written[released..]);
            }
        }
    }
}
