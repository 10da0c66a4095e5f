//! A chunk of a packet store: headers, and where the payloads are.

use bytes::Bytes;

use super::super::BLANK;

/// Packets of one train at most.
#[derive(Debug)]
pub(super) struct Chunk {
    /// The headers of `per_chunk` packets, each with room for its payload behind it if the chunk stores that.
    pub(super) bytes: Box<[u8]>,
    /// Payload length of each packet.
    pub(super) lens: Box<[u16]>,
    pub(super) payloads: Payloads,
}

/// Where the payloads of a chunk's packets are.
#[derive(Debug)]
pub(super) enum Payloads {
    /// Behind the headers.
    Stored,
    /// In blocks of the application. Each begins with the payload of the packet in its slot. Those of the packets after it follow.
    Blocks(Vec<(usize, Bytes)>),
    /// All payload is zero.
    Blank,
}

impl Payloads {
    /// Bytes from one header to the next, if that is `stride` with the payload between.
    pub(super) const fn slot_size(&self, header: usize, stride: usize) -> usize {
        if matches!(self, Self::Stored) { stride } else { header }
    }
}

impl Chunk {
    /// The payload of the packet in a slot. Full packets have `full` bytes.
    pub(super) fn payload<const HEADER: usize>(&self, slot: usize, full: usize) -> &[u8] {
        let (bytes, at) = match &self.payloads {
            Payloads::Stored => (&self.bytes[..], slot * (HEADER + full) + HEADER),
            Payloads::Blocks(blocks) => {
                let (first, block) = &blocks[blocks.partition_point(|(first, _)| *first <= slot) - 1];
                (&block[..], (slot - first) * full)
            }
            Payloads::Blank => (&BLANK[..], 0),
        };
        &bytes[at..at + usize::from(self.lens[slot])]
    }
}
