//! Typed TCP segments. Their bytes, if they have some, travel beside them.

use farhaul_netem::WireLen;
use farhaul_units::Instant;

/// Bytes of IPv4 and TCP header without options.
pub const HEADER: u32 = 40;

/// Most SACK blocks in one segment: three fit beside the timestamps option.
//= paper:rfc2018 §3
pub const MAX_SACK_BLOCKS: usize = 3;

/// Segments `start..end` (`end` excluded).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// The first segment.
    pub start: u64,
    /// One past the last segment.
    pub end: u64,
}

impl Block {
    /// Segments `start..end`.
    pub const fn new(start: u64, end: u64) -> Self {
        Self { start, end }
    }

    /// Number of segments.
    pub const fn len(self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// Whether the block is empty.
    pub const fn is_empty(self) -> bool {
        self.end <= self.start
    }

    /// Number of its segments before `end`.
    pub fn len_before(self, end: u64) -> u64 {
        self.end.min(end).saturating_sub(self.start)
    }
}

/// A TCP segment of fixed size, cheap to copy.
///
/// Sequence numbers count full segments, not bytes, because every segment but the last is full. Scoreboard and window
/// then use the same unit without division. They have 64 bits and never wrap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Sequence number of a data segment; zero in an acknowledgement.
    pub seq: u64,
    /// Everything before this segment has arrived. Zero in a segment that acknowledges nothing.
    pub ack: u64,
    /// Bytes of data; zero in an acknowledgement.
    pub payload: u32,
    /// Bytes of IP and TCP header.
    pub header: u32,
    /// Number of the connection between the two hosts, zero if there is only one. Stands for the port numbers, which
    /// differ between connections.
    pub connection: u32,
    /// Type of the segment.
    pub kind: SegmentKind,
    /// Whether the host that accepted the connection sent it, which stands for the order of the port numbers.
    pub from_acceptor: bool,
    /// Whether it offers selective acknowledgements, as a SYN and its answer may (RFC 2018 §2).
    pub sack_permitted: bool,
    /// When it was sent (TSval).
    pub sent: Instant,
    /// When the segment that it answers was sent (TSecr).
    pub echo: Instant,
    blocks: [Block; MAX_SACK_BLOCKS],
    block_count: u8,
}

/// Type of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentKind {
    /// Requests a connection.
    Syn,
    /// Accepts the connection.
    SynAck,
    /// Data.
    Data,
    /// The last data (FIN).
    LastData,
    /// Acknowledgement.
    Ack,
    /// Ends the connection at once, or refuses it (RST).
    Reset,
}

impl Segment {
    /// A segment without data or blocks.
    pub const fn new(kind: SegmentKind, header: u32, sent: Instant) -> Self {
        let blocks = [Block::new(0, 0); MAX_SACK_BLOCKS];
        let (connection, from_acceptor, sack_permitted, echo) = (0, false, false, Instant::ZERO);
        Self {
            seq: 0,
            ack: 0,
            payload: 0,
            header,
            connection,
            kind,
            from_acceptor,
            sack_permitted,
            sent,
            echo,
            blocks,
            block_count: 0,
        }
    }

    /// Ranges received beyond a gap, most recent first.
    pub fn sack(&self) -> &[Block] {
        &self.blocks[..usize::from(self.block_count)]
    }

    /// Adds a block, unless [`MAX_SACK_BLOCKS`] are present.
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
