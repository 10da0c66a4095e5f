//! Whole datagrams with consecutive numbers, ready to leave.
//!
//! Packets have a fixed stride with room for the header in front. So a run of them is one slice that the kernel can
//! segment (GSO). The header is written when the application writes the data. Of blocks that the application hands over, only the headers
//! are stored. A run of their packets is put together as it leaves.

mod chunk;

use std::collections::VecDeque;
use std::ops::Range;

use bytes::{Buf, Bytes};
use farhaul_units::{SeqNo, SeqRange};

use self::chunk::{Chunk, Payloads};
use super::spares::Spares;

/// Bytes of one train for the kernel to segment: the largest UDP payload over IPv4.
const MAX_TRAIN_BYTES: usize = 65_507;
/// Datagrams in one train: Linux' limit (UDP_MAX_SEGMENTS).
const MAX_TRAIN_PACKETS: usize = 64;

/// Packets with headers of `HEADER` bytes, from the oldest not released to the newest written.
#[derive(Debug)]
pub struct PacketStore<const HEADER: usize> {
    /// Payload bytes of a full packet.
    payload_size: usize,
    /// Whether all payload is zero, so that only its length is stored.
    is_blank: bool,
    /// Packets per chunk. A chunk is at most one train.
    per_chunk: u32,
    /// Oldest packet held.
    first: SeqNo,
    /// The sequence number of the next written packet.
    end: SeqNo,
    /// Released packets at the front of the front chunk.
    released_in_front: u32,
    /// Packets written into the back chunk.
    written_in_back: u32,
    chunks: VecDeque<Chunk>,
    spare: Spares<Chunk>,
}

/// Consecutive packets as one slice of datagrams.
#[derive(Debug)]
pub struct Run<'a> {
    /// The datagrams, back to back. All but the last have `segment_size` bytes.
    pub bytes: &'a mut [u8],
    /// Length of each packet but the last, header included.
    pub segment_size: usize,
    /// Number of packets.
    pub packets: u32,
}

impl<const HEADER: usize> PacketStore<HEADER> {
    /// An empty store whose first packet will be `first`, for packets with `payload_size` bytes after the header.
    pub fn new(first: SeqNo, payload_size: usize) -> Self {
        let per_chunk = (MAX_TRAIN_BYTES / (payload_size + HEADER)).clamp(1, MAX_TRAIN_PACKETS) as u32;
        Self {
            payload_size,
            is_blank: false,
            per_chunk,
            first,
            end: first,
            released_in_front: 0,
            written_in_back: 0,
            chunks: VecDeque::new(),
            spare: Spares::default(),
        }
    }

    /// Packets become `margin` bytes longer before they leave. It must be empty.
    pub(crate) fn set_margin(&mut self, margin: usize) {
        self.per_chunk = (MAX_TRAIN_BYTES / (self.stride() + margin)).clamp(1, MAX_TRAIN_PACKETS) as u32;
    }

    /// Stores no payload, but sends as many zeros. It must be empty.
    pub(super) fn leave_blank(&mut self) {
        self.is_blank = true;
    }

    // ---- facts ----

    /// Whether no payload is stored.
    pub(super) const fn is_blank(&self) -> bool {
        self.is_blank
    }

    /// Whether [`run`](Self::run) has the packets from this one on.
    pub(super) fn is_stored(&self, seq: SeqNo) -> bool {
        self.locate(seq).is_some_and(|(chunk, _)| matches!(self.chunks[chunk].payloads, Payloads::Stored))
    }

    /// Oldest packet held. Equals [`end`](Self::end) if empty.
    pub const fn first(&self) -> SeqNo {
        self.first
    }

    /// The sequence number of the next written packet.
    pub const fn end(&self) -> SeqNo {
        self.end
    }

    /// Payload bytes of a full packet.
    pub const fn payload_size(&self) -> usize {
        self.payload_size
    }

    /// Most full packets of one train.
    pub const fn train(&self) -> u32 {
        self.per_chunk
    }

    /// Packets held.
    pub fn packets(&self) -> u32 {
        SeqRange::new(self.first, self.end.minus(1)).len()
    }

    /// Bytes of memory held, spare chunks and blocks included.
    pub fn memory(&self) -> usize {
        let in_blocks = |chunk: &Chunk| match &chunk.payloads {
            Payloads::Blocks(blocks) => blocks.iter().map(|(_, block)| block.len()).sum(),
            Payloads::Stored | Payloads::Blank => 0,
        };
        let of_chunk = |chunk: &Chunk| chunk.bytes.len() + size_of_val(&*chunk.lens) + in_blocks(chunk);
        self.chunks.iter().chain(self.spare.iter()).map(of_chunk).sum()
    }

    /// Of so many payload bytes to write, those up to the end of the last train that they fill; all if they fill none.
    pub(crate) fn whole_trains(&self, bytes: usize) -> usize {
        let begun = if self.chunks.is_empty() { 0 } else { self.written_in_back % self.per_chunk };
        let packets = (bytes / self.payload_size) as u32 + begun;
        let whole = packets - packets % self.per_chunk;
        if whole > begun { (whole - begun) as usize * self.payload_size } else { bytes }
    }

    /// Bytes from the start of one packet to that of the next.
    const fn stride(&self) -> usize {
        self.payload_size + HEADER
    }

    // ---- writing ----

    /// Stores stream data. `header` writes the header of each new packet.
    ///
    /// A last packet that has room and was not sent yet (not before `next_to_send`) is filled up first. A stream's
    /// receiver does not see where one write ended.
    pub fn write(&mut self, mut data: &[u8], next_to_send: SeqNo, mut header: impl FnMut(SeqNo, &mut [u8; HEADER])) {
        if self.end.is_after(next_to_send) {
            data = self.fill_last(data);
        }
        while !data.is_empty() {
            let (packet, rest) = data.split_at(data.len().min(self.payload_size));
            self.push(packet, &mut header);
            data = rest;
        }
    }

    /// The same, but keeps the block itself. Only what goes into packets together with other data is copied.
    pub(super) fn write_block(
        &mut self,
        mut block: Bytes,
        next_to_send: SeqNo,
        mut header: impl FnMut(SeqNo, &mut [u8; HEADER]),
    ) {
        if self.end.is_after(next_to_send) {
            let rest = self.fill_last(&block).len();
            block.advance(block.len() - rest);
        }
        while !block.is_empty() {
            if self.is_back_full() {
                self.begin_chunk(self.new_chunk(Payloads::Blocks(Vec::new())));
            }
            let (slot, size) = (self.written_in_back as usize, self.payload_size);
            let chunk = self.chunks.back_mut().expect("a chunk was pushed if there was none with room");
            let Payloads::Blocks(blocks) = &mut chunk.payloads else {
                let packet = block.split_to(block.len().min(size));
                self.push(&packet, &mut header);
                continue;
            };
            let part = block.split_to(block.len().min((self.per_chunk as usize - slot) * size));
            let (heads, _) = chunk.bytes[slot * HEADER..].as_chunks_mut();
            for ((packet, head), len) in part.chunks(size).zip(heads).zip(&mut chunk.lens[slot..]) {
                header(self.end, head);
                *len = packet.len() as u16;
                self.end = self.end.next();
                self.written_in_back += 1;
            }
            blocks.push((slot, part));
        }
    }

    /// Stores one packet of at most [`payload_size`](Self::payload_size) bytes. `header` writes its header.
    pub(crate) fn push(&mut self, payload: &[u8], header: impl FnOnce(SeqNo, &mut [u8; HEADER])) {
        if self.is_back_full() {
            let payloads = if self.is_blank { Payloads::Blank } else { Payloads::Stored };
            let chunk = self.spare.take().unwrap_or_else(|| self.new_chunk(payloads));
            self.begin_chunk(chunk);
        }
        let (slot, stride) = (self.written_in_back as usize, self.stride());
        let Chunk { bytes, lens, payloads } = self.chunks.back_mut().expect("a chunk was pushed if there was none");
        let at = slot * payloads.slot_size(HEADER, stride);
        let (head, rest) = bytes[at..].split_first_chunk_mut().expect("a slot begins with a header");
        header(self.end, head);
        match payloads {
            Payloads::Stored => rest[..payload.len()].copy_from_slice(payload),
            Payloads::Blocks(blocks) => blocks.push((slot, Bytes::copy_from_slice(payload))),
            Payloads::Blank => {}
        }
        lens[slot] = payload.len() as u16;
        self.end = self.end.next();
        self.written_in_back += 1;
    }

    /// Whether the next packet begins a chunk.
    fn is_back_full(&self) -> bool {
        self.chunks.is_empty() || self.written_in_back == self.per_chunk
    }

    fn begin_chunk(&mut self, chunk: Chunk) {
        self.chunks.push_back(chunk);
        self.written_in_back = 0;
    }

    /// Fills up the newest packet and returns the rest of the data.
    fn fill_last<'d>(&mut self, data: &'d [u8]) -> &'d [u8] {
        let Some((chunk, slot)) = self.locate(self.end.minus(1)) else { return data };
        let (at, size) = (slot * self.stride() + HEADER, self.payload_size);
        let Chunk { bytes, lens, payloads } = &mut self.chunks[chunk];
        let len = usize::from(lens[slot]);
        let (fits, rest) = data.split_at(data.len().min(size - len));
        match payloads {
            Payloads::Stored => bytes[at + len..at + len + fits.len()].copy_from_slice(fits),
            Payloads::Blocks(blocks) if !fits.is_empty() => {
                let (first, mut block) = blocks.pop().expect("a packet of such a chunk is in a block");
                let begin = (slot - first) * size;
                let filled = [&block[begin..], fits].concat();
                block.truncate(begin);
                // Many small writes leave no empty ones behind.
                blocks.extend((begin > 0).then_some((first, block)));
                blocks.push((slot, filled.into()));
            }
            Payloads::Blocks(_) | Payloads::Blank => {}
        }
        lens[slot] += fits.len() as u16;
        rest
    }

    fn new_chunk(&self, payloads: Payloads) -> Chunk {
        let packets = self.per_chunk as usize;
        Chunk {
            bytes: vec![0; packets * payloads.slot_size(HEADER, self.stride())].into_boxed_slice(),
            lens: vec![0; packets].into_boxed_slice(),
            payloads,
        }
    }

    // ---- reading ----

    /// Adjacent packets from `seq` on, at most `max`, ending after one that is not full. `None` for a packet that is
    /// not held.
    pub fn run(&mut self, seq: SeqNo, max: u32) -> Option<Run<'_>> {
        let (stride, full) = (self.stride(), self.payload_size);
        let (Chunk { bytes, lens, .. }, slots) = self.adjacent(seq, max)?;
        let short = full - usize::from(*lens[slots.clone()].last()?);
        let bytes = &mut bytes[slots.start * stride..slots.end * stride - short];
        Some(Run { bytes, segment_size: stride, packets: slots.len() as u32 })
    }

    /// The same for packets that need not be [stored](Self::is_stored): `append` is given the header and payload of each, and appends it to `out`.
    ///
    /// The copy ends in memory that the cache of the processor holds. With the kernel's copy from there it takes a third less time than one into
    /// the store and the kernel's from that (ADR 0044).
    pub(super) fn append_run<'o>(
        &mut self,
        (seq, max): (SeqNo, u32),
        out: &'o mut Vec<u8>,
        mut append: impl FnMut(&mut [u8; HEADER], &[u8], &mut Vec<u8>),
    ) -> Option<Run<'o>> {
        let (segment_size, full) = (self.stride(), self.payload_size);
        let (chunk, slots) = self.adjacent(seq, max)?;
        let (begin, packets) = (out.len(), slots.len());
        out.reserve(packets * segment_size);
        let slot_size = chunk.payloads.slot_size(HEADER, segment_size);
        for slot in slots {
            let mut header = *chunk.bytes[slot * slot_size..].first_chunk()?;
            append(&mut header, chunk.payload::<HEADER>(slot, full), out);
            chunk.bytes[slot * slot_size..][..HEADER].copy_from_slice(&header);
        }
        Some(Run { bytes: &mut out[begin..], segment_size, packets: packets as u32 })
    }

    /// The chunk and the slots of the packets of a run. At least one.
    fn adjacent(&mut self, seq: SeqNo, max: u32) -> Option<(&mut Chunk, Range<usize>)> {
        let (chunk, slot) = self.locate(seq)?;
        let available = SeqRange::new(seq, self.end.minus(1)).len();
        let most = max.min(available).min(self.per_chunk - slot as u32) as usize;
        let full = self.payload_size;
        let chunk = &mut self.chunks[chunk];
        let short = chunk.lens[slot..slot + most].iter().position(|&len| usize::from(len) < full);
        let packets = short.map_or(most, |short| short + 1);
        (packets > 0).then_some((chunk, slot..slot + packets))
    }

    /// The header of a held packet.
    pub(crate) fn header(&self, seq: SeqNo) -> Option<&[u8; HEADER]> {
        let (chunk, slot) = self.locate(seq)?;
        let Chunk { bytes, payloads, .. } = &self.chunks[chunk];
        bytes[slot * payloads.slot_size(HEADER, self.stride())..].first_chunk()
    }

    /// The payload of a held packet.
    pub(crate) fn payload(&self, seq: SeqNo) -> Option<&[u8]> {
        let (chunk, slot) = self.locate(seq)?;
        Some(self.chunks[chunk].payload::<HEADER>(slot, self.payload_size))
    }

    /// The first packet before `end` of which the oldest `bytes` bytes of payload do not cover all; `end` if they do.
    pub fn after_bytes(&self, mut bytes: u64, end: SeqNo) -> SeqNo {
        let mut at = self.first;
        while at.is_before(end)
            && let Some((chunk, slot)) = self.locate(at)
            && let Some(rest) = bytes.checked_sub(u64::from(self.chunks[chunk].lens[slot]))
        {
            bytes = rest;
            at = at.next();
        }
        at
    }

    /// Whether a held packet has no room left.
    pub fn is_full(&self, seq: SeqNo) -> bool {
        self.locate(seq).is_some_and(|(chunk, slot)| usize::from(self.chunks[chunk].lens[slot]) == self.payload_size)
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

    // ---- giving back ----

    /// Releases everything before `seq` and returns its payload bytes.
    pub fn release(&mut self, seq: SeqNo) -> u64 {
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
            && !matches!(chunk.payloads, Payloads::Blocks(_))
        {
            self.spare.put_back(chunk, self.chunks.len());
        }
    }

    /// Frees memory that is kept for reuse only.
    pub fn shrink(&mut self) {
        self.spare.clear();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// In these tests the header is the sequence number.
    fn number(seq: SeqNo, head: &mut [u8; 4]) {
        *head = seq.value().to_be_bytes();
    }

    fn store(first: u32, payload_size: usize) -> PacketStore<4> {
        PacketStore::new(SeqNo::new(first), payload_size)
    }

    #[test]
    fn a_write_continues_in_the_last_packet_until_that_was_sent() {
        let mut store = store(0, 100);
        store.write(&[1; 30], SeqNo::new(0), number);
        store.write(&[2; 30], SeqNo::new(0), number);
        assert_eq!(store.packets(), 1);
        store.write(&[3; 30], SeqNo::new(1), number);
        assert_eq!(store.packets(), 2, "packet 0 has left and is closed");
    }

    #[test]
    fn small_writes_behind_a_block_fill_its_last_packet_and_leave_two_pieces() {
        let mut store = store(0, 100);
        store.write_block(Bytes::from_static(&[1; 210]), SeqNo::new(0), number);
        (0..50).for_each(|byte| store.write(&[byte], SeqNo::new(0), number));
        assert_eq!((store.packets(), store.payload(SeqNo::new(2)).unwrap().len()), (3, 60));
        let Payloads::Blocks(blocks) = &store.chunks[0].payloads else { panic!("a chunk of blocks") };
        assert_eq!(blocks.iter().map(|(slot, block)| (*slot, block.len())).collect::<Vec<_>>(), [(0, 200), (2, 60)]);
    }

    #[test]
    fn whole_trains_end_where_the_kernel_can_take_no_more() {
        let mut store = store(0, 1_000);
        assert_eq!([63_999, 64_000, 200_000].map(|bytes| store.whole_trains(bytes)), [63_999, 64_000, 192_000]);
        store.write(&[1; 2_500], SeqNo::new(0), number);
        assert_eq!([60_999, 61_000, 130_000].map(|bytes| store.whole_trains(bytes)), [60_999, 61_000, 125_000]);
    }

    #[test]
    fn a_run_is_one_slice_and_ends_after_a_short_packet() {
        let mut store = store(5, 100);
        store.write(&[1; 250], SeqNo::new(5), number);
        store.write(&[2; 100], SeqNo::new(8), number);
        let run = store.run(SeqNo::new(5), 10).unwrap();
        assert_eq!((run.packets, run.segment_size, run.bytes.len()), (3, 104, 2 * 104 + 54));
    }

    #[test]
    fn bytes_cover_whole_packets_up_to_an_end() {
        let mut store = store(5, 100);
        store.write(&[1; 250], SeqNo::new(5), number);
        store.write(&[2; 100], SeqNo::new(8), number);
        for (bytes, after) in [(0, 5), (99, 5), (100, 6), (249, 7), (250, 8), (349, 8), (350, 9), (9_999, 9)] {
            assert_eq!(store.after_bytes(bytes, store.end()), SeqNo::new(after), "{bytes} bytes");
        }
        assert_eq!(store.after_bytes(9_999, SeqNo::new(6)), SeqNo::new(6));
        assert!(store.is_full(SeqNo::new(6)) && !store.is_full(SeqNo::new(7)) && !store.is_full(SeqNo::new(9)));
    }

    #[test]
    fn a_packet_before_the_first_or_from_the_end_on_is_not_held() {
        let mut store = store(0x7FFF_FFFF, 100);
        store.write(&[1; 300], SeqNo::MAX, number);
        store.release(SeqNo::new(0));
        for (seq, held) in [(0x7FFF_FFFF, false), (0, true), (1, true), (2, false)] {
            let seq = SeqNo::new(seq);
            assert_eq!((store.run(seq, 1).is_some(), store.header(seq).is_some()), (held, held), "{seq:?}");
        }
    }

    #[test]
    fn memory_returns_when_everything_is_acknowledged() {
        let mut store = store(0, 1456);
        store.write(&vec![0; 10_000_000], SeqNo::new(0), number);
        store.release(store.end());
        store.shrink();
        assert_eq!((store.memory(), store.packets()), (0, 0));
    }

    proptest! {
        #[test]
        fn holds_exactly_what_was_written_and_not_released(
            first in prop_oneof![Just(0x7FFF_FFF0u32), 0u32..0x7FFF_FFFF],
            steps in proptest::collection::vec((1usize..5_000, 0u32..40), 1..40),
        ) {
            let mut store = store(first, 97);
            let (mut written, mut released) = (Vec::new(), 0usize);
            for (i, (bytes, acked)) in steps.into_iter().enumerate() {
                let data: Vec<u8> = (0..bytes).map(|b| (b * 31 + i) as u8).collect();
                store.write(&data, store.first(), number);
                written.extend_from_slice(&data);
                let to = store.first().plus(acked.min(store.packets().saturating_sub(1)));
                released += store.release(to) as usize;
                let mut held = Vec::new();
                let mut at = store.first();
                while at != store.end() {
                    let payload = store.payload(at).unwrap().to_vec();
                    prop_assert_eq!(store.header(at), Some(&at.value().to_be_bytes()));
                    let run = store.run(at, 10).unwrap();
                    let packet = run.bytes.chunks(run.segment_size).next().unwrap();
                    prop_assert_eq!(&packet[4..], &payload[..]);
                    held.extend(payload);
                    at = at.next();
                }
                prop_assert_eq!(&held[..], &written[released..]);
            }
            store.release(store.end());
            store.shrink();
            prop_assert_eq!(store.memory(), 0);
        }
    }
}
