//! The data that the peer does not have yet, and its division into blasts.

use farhaul_units::{Instant, SeqNo};
use farhaul_wire::rbudp::{HEADER_LEN, encode_index, packets_of};

use crate::blast::engine::Prefix;
use crate::rbudp::{Division, HEADER, MAX_BLAST_PACKETS};
use farhaul_proto::buffer::{PacketStore, Run};

/// Least bytes that the buffer takes, so that a writer is not woken for each packet.
const MIN_BUFFER: u64 = 1 << 20;

/// Data from the first byte of the blast under way to the last byte written.
#[derive(Debug)]
pub(super) struct Supply {
    store: PacketStore<HEADER>,
    prefix: Prefix,
    division: Division,
    /// Offsets in the stream: bytes written, bytes in blasts, bytes of delivered blasts, bytes that must not wait.
    pub(super) written: u64,
    pub(super) cut: u64,
    pub(super) delivered: u64,
    flushed: u64,
    /// Since when data waits for a blast.
    waiting_since: Option<Instant>,
}

/// The limits of a blast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    pub(super) first: SeqNo,
    pub(super) packets: u32,
    pub(super) length: u64,
}

impl Supply {
    pub(super) fn new(first: SeqNo, payload: usize, prefix: Prefix, division: Division) -> Self {
        Self {
            store: PacketStore::new(first, payload),
            prefix,
            division,
            written: 0,
            cut: 0,
            delivered: 0,
            flushed: 0,
            waiting_since: None,
        }
    }

    pub(super) fn payload(&self) -> usize {
        self.store.payload_size()
    }

    pub(super) fn packets(&self) -> u32 {
        self.store.packets()
    }

    pub(super) fn memory(&self) -> usize {
        self.store.memory()
    }

    // ---- the application's side ----

    /// Bytes that may be written now if `blast` bytes are the next blast and `most` the largest buffer. A file in the
    /// original's dialogue is one blast, which the buffer holds as a whole.
    pub(super) fn room(&self, blast: u64, most: u64) -> u64 {
        match self.division {
            Division::Stream => {
                let held = u64::from(self.store.packets()) * self.payload() as u64;
                (2 * blast).max(MIN_BUFFER).min(most).saturating_sub(held)
            }
            Division::File { .. } => self.cut.saturating_sub(self.written),
        }
    }

    /// Stores data. `next` is the first packet of the blast under way that has not left.
    pub(super) fn write(&mut self, now: Instant, data: &[u8], next: Option<SeqNo>) {
        // A packet that has left, or that ends a blast, is closed.
        let closed = match next {
            Some(next) if self.written < self.cut => next,
            Some(_) => self.end_of_blast(),
            None => self.store.first(),
        };
        let prefix = self.prefix.bytes();
        self.store.write(data, closed, |seq, head| {
            let (tag, index) = head.split_at_mut(prefix.len());
            tag.copy_from_slice(&prefix);
            index.copy_from_slice(&encode_index(seq.value()));
        });
        self.written += data.len() as u64;
        if self.written > self.cut {
            self.waiting_since.get_or_insert(now);
        }
    }

    /// The data written so far must not wait for more.
    pub(super) fn flush(&mut self) {
        self.flushed = self.written;
    }

    // ---- blasts ----

    /// Sets the division of what follows.
    pub(super) fn divide(&mut self, division: Division) {
        self.division = division;
    }

    /// Whether no part of a file waits for a blast.
    pub(super) const fn is_cut_up(&self) -> bool {
        matches!(self.division, Division::File { left: 0, .. })
    }

    /// Since when data waits for a blast, and whether it need not wait for more: it was flushed, or `blast` bytes are
    /// there.
    pub(super) fn waiting(&self, blast: u64) -> Option<(Instant, bool)> {
        let since = self.waiting_since?;
        Some((since, self.flushed > self.cut || self.written - self.cut >= blast))
    }

    /// Begins a blast of at most `blast` bytes of a stream. The last one was delivered.
    pub(super) fn cut_stream(&mut self, now: Instant, blast: u64) -> Option<Cut> {
        let pending = self.written - self.cut;
        let payload = self.payload() as u64;
        let whole = (blast / payload).clamp(1, MAX_BLAST_PACKETS.into()) * payload;
        let cut = self.cut_off(pending.min(whole))?;
        self.waiting_since = (self.written > self.cut).then_some(now);
        Some(cut)
    }

    /// Begins the next blast of a file, of which nothing need be written yet.
    pub(super) fn cut_file(&mut self) -> Option<Cut> {
        let length = self.division.next_of_file()?;
        self.cut_off(length)
    }

    fn cut_off(&mut self, length: u64) -> Option<Cut> {
        let packets = packets_of(length, self.payload()).filter(|&packets| packets > 0)?;
        self.cut += length;
        Some(Cut { first: self.store.first(), packets, length })
    }

    /// The end of the packets that may leave, for the blast `cut` under way: all full ones, and the last.
    pub(super) fn end_of_ready(&self, cut: &Cut) -> SeqNo {
        if self.written >= self.cut {
            return cut.first.plus(cut.packets);
        }
        let written = self.written - (self.cut - cut.length);
        cut.first.plus(u32::try_from(written / self.payload() as u64).unwrap_or(cut.packets))
    }

    /// The peer has the blast under way.
    pub(super) fn release(&mut self, cut: &Cut) {
        self.store.release(cut.first.plus(cut.packets));
        self.delivered += cut.length;
    }

    /// One after the last packet of the blast under way, if all of it was written.
    fn end_of_blast(&self) -> SeqNo {
        let blast = packets_of(self.cut - self.delivered, self.payload()).unwrap_or(0);
        self.store.first().plus(blast)
    }

    // ---- datagrams ----

    /// Adjacent packets of the store.
    pub(super) fn run(&mut self, first: SeqNo, most: u32) -> Option<Run<'_>> {
        self.store.run(first, most)
    }

    /// Bytes from the start of one datagram to that of the next.
    pub(super) fn segment(&self) -> usize {
        self.prefix.length() + HEADER_LEN + self.payload()
    }

    /// Appends one datagram to `out`. `index` is its number on the wire.
    pub(super) fn copy(&mut self, seq: SeqNo, index: u32, out: &mut Vec<u8>) {
        let Some(run) = self.store.run(seq, 1) else { return };
        let room = HEADER - HEADER_LEN;
        out.extend_from_slice(&run.bytes[room - self.prefix.length()..room]);
        out.extend_from_slice(&encode_index(index));
        out.extend_from_slice(&run.bytes[HEADER..]);
    }
}
