//! Received data that was not read yet, in order or not.
//!
//! Payloads have a fixed stride in chunks that are allocated when data arrives. So memory follows the data, never a
//! peer's claim (attack A4). A bit per slot marks the filled ones.

mod message;

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use farhaul_units::{MsgNo, SeqNo, SeqRange};
use farhaul_wire::udt4::MessageField;

use super::BLANK;
use super::spares::Spares;
use crate::seq_set::SeqSet;

/// Packets per chunk. Small, so that a single packet far ahead takes little memory (attack B11).
const CHUNK_PACKETS: u32 = 32;

/// Most chunks whose memory may come back from the reader: some more than it takes in a turn of 256 KiB.
const MOST_LENT: usize = 16;

/// Packets from the first unread to the furthest received, and the window in which more are accepted.
#[derive(Debug)]
pub struct RecvBuffer {
    /// Payload bytes of each packet for which new chunks have room. It grows to the limit once.
    stride: usize,
    /// Largest payload that is accepted.
    limit: usize,
    /// Whether only lengths are stored, and zeros are read.
    is_blank: bool,
    /// First packet that was not read completely.
    pub(super) read_seq: SeqNo,
    /// Bytes of that packet that were read.
    read_offset: usize,
    /// First missing packet. Everything before it can be acknowledged.
    ack_point: SeqNo,
    /// One after the furthest packet.
    end: SeqNo,
    /// Stream mode: payload bytes between the read position and the acknowledgement point.
    available: u64,
    /// Packets that arrived, or need not arrive because their message was dropped.
    present: SeqSet,
    /// Message mode: packets without content, or with content that was delivered out of order.
    pub(super) skipped: SeqSet,
    /// Most packets that the buffer holds.
    capacity: u32,
    /// First packet of the front chunk.
    chunk_base: SeqNo,
    chunks: VecDeque<Option<Chunk>>,
    spare: Spares<Chunk>,
    /// The memory of chunks that the reader took as blocks, oldest first. It is free again once the reader has dropped them.
    lent: VecDeque<Bytes>,
    messages: message::Found,
}

#[derive(Debug)]
struct Chunk {
    /// Bytes from one payload to the next.
    stride: usize,
    bytes: BytesMut,
    lens: [u16; CHUNK_PACKETS as usize],
    fields: [u32; CHUNK_PACKETS as usize],
}

/// The result for an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Insert {
    /// Stored.
    New,
    /// A duplicate.
    Duplicate,
    /// Outside the window, or larger than any packet of this connection.
    Rejected,
}

impl RecvBuffer {
    /// An empty buffer that expects `first`, with room for `capacity` packets of at most `payload_size` bytes.
    pub fn new(first: SeqNo, payload_size: usize, capacity: u32) -> Self {
        Self {
            stride: payload_size,
            limit: payload_size,
            is_blank: false,
            read_seq: first,
            read_offset: 0,
            ack_point: first,
            end: first,
            available: 0,
            present: SeqSet::new(first),
            skipped: SeqSet::new(first),
            capacity,
            chunk_base: first,
            chunks: VecDeque::new(),
            spare: Spares::default(),
            lent: VecDeque::new(),
            messages: message::Found::default(),
        }
    }

    /// Stores no payload. As many zeros are read. It must be empty.
    pub(crate) fn leave_blank(&mut self) {
        self.is_blank = true;
    }

    /// Accepts payloads of up to `limit` bytes. Memory for them is taken once the first one arrives that is larger than before.
    pub(crate) fn set_limit(&mut self, limit: usize) {
        self.limit = self.limit.max(limit);
    }

    /// Payload bytes for which each packet takes memory.
    pub(crate) const fn stride(&self) -> usize {
        self.stride
    }

    /// Largest payload that is accepted.
    pub(crate) const fn limit(&self) -> usize {
        self.limit
    }

    /// Whether a packet would be stored.
    pub(crate) fn wants(&self, seq: SeqNo) -> bool {
        let offset = seq.distance_from(self.read_seq);
        offset >= 0
            && offset.unsigned_abs() < self.capacity
            && !seq.is_before(self.ack_point)
            && !self.present.contains(seq)
    }

    /// First missing packet.
    pub const fn ack_point(&self) -> SeqNo {
        self.ack_point
    }

    /// One after the furthest packet.
    pub const fn end(&self) -> SeqNo {
        self.end
    }

    /// Bytes that a stream reader can have now.
    pub const fn available(&self) -> u64 {
        self.available
    }

    /// First packet that was not read completely.
    pub const fn next_to_read(&self) -> SeqNo {
        self.read_seq
    }

    /// Packets between the reader and the acknowledgement point.
    pub fn readable_packets(&self) -> u32 {
        SeqRange::new(self.read_seq, self.ack_point.minus(1)).len()
    }

    /// Most packets that it holds.
    pub const fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Raises the capacity. It never shrinks, because it was promised to the peer.
    pub(crate) fn raise_capacity(&mut self, capacity: u32) {
        self.capacity = self.capacity.max(capacity);
    }

    /// Lowers the capacity, because packets take more memory now. What was stored stays. The peer repeats what it had sent beyond.
    pub(crate) fn lower_capacity(&mut self, capacity: u32) {
        self.capacity = self.capacity.min(capacity);
    }

    /// Packets that may still arrive beyond the acknowledgement point: the window to advertise.
    pub fn free(&self) -> u32 {
        self.capacity.saturating_sub(self.readable_packets())
    }

    /// The missing packets of `range`: those that have not arrived although a later one has.
    pub fn missing(&self, range: SeqRange) -> impl Iterator<Item = SeqRange> + '_ {
        let first = range.first.later(self.ack_point);
        self.present.absent_runs(first, range.last.next().earlier(self.end))
    }

    /// Whether nothing is missing before the furthest packet.
    pub fn is_contiguous(&self) -> bool {
        self.ack_point == self.end
    }

    /// Bytes of memory held, spare chunks and those that the reader has included.
    pub fn memory(&self) -> usize {
        let held = self.chunks.iter().flatten().chain(self.spare.iter());
        held.map(|chunk| chunk.bytes.len() + size_of::<Chunk>()).sum::<usize>()
            + self.lent.iter().map(Bytes::len).sum::<usize>()
            + self.present.memory()
            + self.skipped.memory()
    }

    /// Frees memory that is kept for reuse only.
    pub fn shrink(&mut self) {
        self.spare.clear();
        self.lent.clear();
    }

    /// Stores an arriving packet.
    pub fn insert(&mut self, seq: SeqNo, field: MessageField, payload: &[u8]) -> Insert {
        let offset = seq.distance_from(self.read_seq);
        if offset < 0 || seq.is_before(self.ack_point) {
            return if self.unskip(seq) { self.store(seq, field, payload) } else { Insert::Duplicate };
        }
        if offset.unsigned_abs() >= self.capacity || payload.len() > self.limit {
            return Insert::Rejected;
        }
        if !self.present.insert(seq) && !self.unskip(seq) {
            return Insert::Duplicate;
        }
        self.store(seq, field, payload)
    }

    fn store(&mut self, seq: SeqNo, field: MessageField, payload: &[u8]) -> Insert {
        if payload.len() > self.limit {
            return Insert::Rejected;
        }
        if payload.len() > self.stride {
            self.stride = self.limit;
            self.spare.clear();
        }
        let is_blank = self.is_blank;
        let (chunk, slot) = self.chunk_for(seq, payload.len());
        if !is_blank {
            let at = slot * chunk.stride;
            chunk.bytes[at..at + payload.len()].copy_from_slice(payload);
        }
        chunk.lens[slot] = payload.len() as u16;
        chunk.fields[slot] = field.to_word();
        if seq == self.ack_point {
            self.available += payload.len() as u64;
            self.ack_point = seq.next();
        }
        self.end = self.end.later(seq.next());
        if self.ack_point.is_before(self.end) && self.present.contains(self.ack_point) {
            self.advance_ack_point();
        }
        Insert::New
    }

    /// Message mode: the packets of `message` in `range` that have not arrived will not arrive. Returns their number.
    ///
    /// The packets of a message are adjacent, so the range ends before the first packet of another message, whatever
    /// the peer claims. Requests of libudt reach one packet too far, and forged ones over the whole window (attack B7).
    pub(crate) fn skip(&mut self, range: SeqRange, message: MsgNo) -> u32 {
        let window = SeqRange::new(self.read_seq, self.read_seq.plus(self.capacity - 1));
        let Some(range) = range.clip(window) else { return 0 };
        let mut end = range.last.next();
        // Packets of that message that arrived are useless too. Each is examined once, however often it is named.
        let mut at = range.first;
        while let Some(seq) = self.present.next_present(at, end) {
            match self.field(seq) {
                None => at = self.skipped.next_absent(seq.next(), end),
                Some(field) if field.message == message => {
                    self.skipped.insert(seq);
                    at = seq.next();
                }
                Some(_) => end = seq,
            }
        }
        self.messages.forget_search();
        let absent: Vec<SeqRange> = self.present.absent_runs(range.first, end).collect();
        let mut count = 0;
        for run in absent {
            self.skipped.insert_range(run);
            count += self.present.insert_range(run);
            self.end = self.end.later(run.last.next());
        }
        self.ack_point = self.present.next_absent(self.ack_point, self.end);
        count
    }

    /// Stream mode: copies data that is in order into `out` and returns the number of bytes.
    pub fn read(&mut self, out: &mut [u8]) -> usize {
        let mut done = 0;
        while done < out.len() && self.read_seq.is_before(self.ack_point) {
            done += self.read_from_chunk(&mut out[done..]);
        }
        self.on_read(done);
        done
    }

    /// Stream mode: data that is in order, as a block of its own. Empty if there is none. The rest of a chunk that is complete is the block itself,
    /// without a copy.
    pub(crate) fn read_block(&mut self) -> Bytes {
        self.take_chunk().unwrap_or_else(|| {
            let mut block = vec![0; self.available.min((CHUNK_PACKETS as usize * self.stride) as u64) as usize];
            self.read(&mut block);
            block.into()
        })
    }

    /// The rest of the chunk at the read position, if all of it has arrived without a gap.
    fn take_chunk(&mut self) -> Option<Bytes> {
        let index = self.read_seq.distance_from(self.chunk_base).unsigned_abs();
        let (slot, packets) = ((index % CHUNK_PACKETS) as usize, CHUNK_PACKETS - index % CHUNK_PACKETS);
        if self.is_blank || self.readable_packets() < packets {
            return None;
        }
        let Chunk { stride, bytes, lens, .. } = self.chunks[(index / CHUNK_PACKETS) as usize].as_mut()?;
        let (last, others) = lens[slot..].split_last()?;
        if others.iter().any(|&len| usize::from(len) != *stride) {
            return None;
        }
        let end = (CHUNK_PACKETS as usize - 1) * *stride + usize::from(*last);
        let memory = std::mem::take(bytes).freeze();
        let block = memory.slice(slot * *stride + self.read_offset..end);
        if self.lent.len() == MOST_LENT {
            self.lent.pop_front();
        }
        self.lent.push_back(memory);
        (self.read_seq, self.read_offset) = (self.read_seq.plus(packets), 0);
        self.on_read(block.len());
        Some(block)
    }

    /// So many bytes before the read position were read.
    fn on_read(&mut self, bytes: usize) {
        self.available -= bytes as u64;
        self.present.advance(self.read_seq);
        self.release_chunks();
    }

    /// Copies from the chunk at the read position. Adjacent full packets are copied at once.
    fn read_from_chunk(&mut self, out: &mut [u8]) -> usize {
        let index = self.read_seq.distance_from(self.chunk_base).unsigned_abs();
        let (slot, ready) = ((index % CHUNK_PACKETS) as usize, self.readable_packets());
        let most = ready.min(CHUNK_PACKETS - slot as u32) as usize;
        let chunk = self.chunks[(index / CHUNK_PACKETS) as usize].as_ref().expect("what can be read was stored");
        let size = chunk.stride;
        let full = chunk.lens[slot..slot + most].iter().take_while(|&&len| usize::from(len) == size).count();
        let (packets, bytes) = if full == 0 { (1, usize::from(chunk.lens[slot])) } else { (full, full * size) };
        let from = slot * size + self.read_offset;
        let copied = (bytes - self.read_offset).min(out.len());
        if self.is_blank {
            out[..copied].fill(0);
        } else {
            out[..copied].copy_from_slice(&chunk.bytes[from..from + copied]);
        }
        let reached = self.read_offset + copied;
        if reached == bytes {
            self.read_seq = self.read_seq.plus(packets as u32);
            self.read_offset = 0;
        } else {
            self.read_seq = self.read_seq.plus((reached / size) as u32);
            self.read_offset = reached % size;
        }
        copied
    }

    /// Word 1 of a stored packet; `None` for a packet without content.
    pub(super) fn field(&self, seq: SeqNo) -> Option<MessageField> {
        self.slot(seq).map(|(chunk, slot)| MessageField::from_word(chunk.fields[slot]))
    }

    /// Payload of a stored packet.
    pub(super) fn payload(&self, seq: SeqNo) -> Option<&[u8]> {
        let (chunk, slot) = self.slot(seq)?;
        let (bytes, at) = if self.is_blank { (&BLANK[..], 0) } else { (&chunk.bytes[..], slot * chunk.stride) };
        Some(&bytes[at..at + usize::from(chunk.lens[slot])])
    }

    /// Message mode: everything before `seq` was delivered or is useless.
    pub(super) fn consume_to(&mut self, seq: SeqNo) {
        self.read_seq = seq.earlier(self.ack_point).later(self.read_seq);
        self.present.advance(self.read_seq);
        self.skipped.advance(self.read_seq);
        self.release_chunks();
    }

    fn slot(&self, seq: SeqNo) -> Option<(&Chunk, usize)> {
        if !self.present.contains(seq) || self.skipped.contains(seq) {
            return None;
        }
        let index = u32::try_from(seq.distance_from(self.chunk_base)).ok()?;
        let chunk = self.chunks.get((index / CHUNK_PACKETS) as usize)?.as_ref()?;
        Some((chunk, (index % CHUNK_PACKETS) as usize))
    }

    /// Accepts a packet that was declared dropped but arrives, unless it was read past: libudt's drop requests reach
    /// one packet too far.
    fn unskip(&mut self, seq: SeqNo) -> bool {
        !self.skipped.is_empty()
            && !seq.is_before(self.read_seq)
            && self.skipped.contains(seq)
            && !self.was_stored(seq)
            && self.skipped.remove(seq)
    }

    /// Whether a skipped packet has content, because it was delivered out of order or its message was dropped.
    fn was_stored(&self, seq: SeqNo) -> bool {
        let index = seq.distance_from(self.chunk_base).unsigned_abs();
        self.chunks
            .get((index / CHUNK_PACKETS) as usize)
            .and_then(Option::as_ref)
            .is_some_and(|chunk| chunk.fields[(index % CHUNK_PACKETS) as usize] != 0)
    }

    fn advance_ack_point(&mut self) {
        let to = self.present.next_absent(self.ack_point, self.end);
        while self.ack_point.is_before(to) {
            self.available += self.payload(self.ack_point).map_or(0, |payload| payload.len() as u64);
            self.ack_point = self.ack_point.next();
        }
    }

    /// The place of a packet of `length` bytes.
    fn chunk_for(&mut self, seq: SeqNo, length: usize) -> (&mut Chunk, usize) {
        let index = seq.distance_from(self.chunk_base).unsigned_abs();
        let (chunk, slot) = ((index / CHUNK_PACKETS) as usize, (index % CHUNK_PACKETS) as usize);
        if chunk >= self.chunks.len() {
            self.chunks.resize_with(chunk + 1, || None);
        }
        let (spare, lent, size, is_blank) = (&mut self.spare, &mut self.lent, self.stride, self.is_blank);
        let new = || spare.take().unwrap_or_else(|| Chunk::new(size, is_blank, returned(lent)));
        let chunk = self.chunks[chunk].get_or_insert_with(new);
        if length > chunk.stride {
            chunk.widen(size, is_blank);
        }
        (chunk, slot)
    }

    fn release_chunks(&mut self) {
        while self.read_seq.distance_from(self.chunk_base) >= CHUNK_PACKETS as i32 {
            self.chunk_base = self.chunk_base.plus(CHUNK_PACKETS);
            if let Some(Some(mut chunk)) = self.chunks.pop_front()
                && chunk.stride == self.stride
                && (self.is_blank || !chunk.bytes.is_empty())
            {
                chunk.fields = [0; CHUNK_PACKETS as usize];
                self.spare.put_back(chunk, self.chunks.len());
            }
        }
    }
}

/// The oldest memory that was lent, if nobody else has it any more.
fn returned(lent: &mut VecDeque<Bytes>) -> Option<BytesMut> {
    lent.front().filter(|memory| memory.is_unique())?;
    lent.pop_front()?.try_into_mut().ok()
}

impl Chunk {
    /// An empty chunk, in memory that was used before if its size fits.
    fn new(stride: usize, is_blank: bool, used: Option<BytesMut>) -> Self {
        let size = CHUNK_PACKETS as usize * if is_blank { 0 } else { stride };
        Self {
            stride,
            bytes: used.filter(|used| used.len() == size).unwrap_or_else(|| BytesMut::zeroed(size)),
            lens: [0; CHUNK_PACKETS as usize],
            fields: [0; CHUNK_PACKETS as usize],
        }
    }

    /// Makes room for larger payloads.
    fn widen(&mut self, stride: usize, is_blank: bool) {
        let mut wider = Self { lens: self.lens, fields: self.fields, ..Self::new(stride, is_blank, None) };
        for (from, to) in self.bytes.chunks(self.stride.max(1)).zip(wider.bytes.chunks_mut(stride)) {
            to[..from.len()].copy_from_slice(from);
        }
        *self = wider;
    }
}

#[cfg(test)]
mod tests;
