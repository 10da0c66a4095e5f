//! What TCP agents send each other: typed segments, no bytes.

use farhaul_netem::WireLen;
use farhaul_units::Instant;

/// SACK blocks in one segment at most: three fit beside the timestamps option.
//= paper:rfc2018 §3
pub const MAX_SACK_BLOCKS: usize = 3;

/// Segments `start..end` (the end not included).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// The first segment.
    pub start: u64,
    /// The first segment behind it.
    pub end: u64,
}

impl Block {
    /// Segments `start..end`.
    pub const fn new(start: u64, end: u64) -> Self {
        Self { start, end }
    }

    /// How many segments it has.
    pub const fn len(self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// Whether it has none.
    pub const fn is_empty(self) -> bool {
        self.end <= self.start
    }

    /// How many of its segments lie before `end`.
    pub fn len_before(self, end: u64) -> u64 {
        self.end.min(end).saturating_sub(self.start)
    }
}

/// A TCP segment as the agents use it: a fixed size, copied like a number.
///
/// Sequence numbers count full segments and not bytes, because every segment but the last is full: a scoreboard then counts
/// what the window counts, and never divides. They have 64 bits, so that nothing wraps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The number of the data segment; in an acknowledgement zero.
    pub seq: u64,
    /// Everything before this segment has arrived.
    pub ack: u64,
    /// Bytes of data; zero in an acknowledgement.
    pub payload: u32,
    /// Bytes of IP and TCP header.
    pub header: u32,
    /// Which connection of the two hosts it belongs to: ports that change from one to the next would tell. Zero for the only one.
    pub connection: u32,
    /// What it is for.
    pub kind: SegmentKind,
    /// Whether it offers selective acknowledgements, which a SYN and its answer may (RFC 2018 §2).
    pub sack_permitted: bool,
    /// When it was sent (TSval).
    pub sent: Instant,
    /// When the segment was sent that it answers (TSecr).
    pub echo: Instant,
    blocks: [Block; MAX_SACK_BLOCKS],
    block_count: u8,
}

/// What a segment is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentKind {
    /// Asks for a connection.
    Syn,
    /// Grants it.
    SynAck,
    /// Data.
    Data,
    /// The last data (FIN).
    LastData,
    /// An acknowledgement.
    Ack,
}

impl Segment {
    /// A segment without data or blocks.
    pub const fn new(kind: SegmentKind, header: u32, sent: Instant) -> Self {
        let blocks = [Block::new(0, 0); MAX_SACK_BLOCKS];
        let (connection, sack_permitted, echo) = (0, false, Instant::ZERO);
        Self {
            seq: 0,
            ack: 0,
            payload: 0,
            header,
            connection,
            kind,
            sack_permitted,
            sent,
            echo,
            blocks,
            block_count: 0,
        }
    }

    /// What has arrived beyond a gap, the most recent first.
    pub fn sack(&self) -> &[Block] {
        &self.blocks[..usize::from(self.block_count)]
    }

    /// Adds a block; beyond [`MAX_SACK_BLOCKS`] none is added.
    pub fn push_sack(&mut self, block: Block) {
        if let Some(place) = self.blocks.get_mut(usize::from(self.block_count)) {
            *place = block;
            self.block_count += 1;
        }
    }
}

impl WireLen for Segment {
    fn wire_len(&self) -> u32 {
        self.header.saturating_add(self.payload)
    }
}
