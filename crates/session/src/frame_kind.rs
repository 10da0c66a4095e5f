//! The types of frames, and how long each may be.

use num_enum::TryFromPrimitive;

/// Longest DATA body. Large, so that headers cost nothing, but small enough for fair interleaving later.
pub(crate) const MAX_DATA: usize = 1 << 20;
/// Longest body of any other frame. An opening frame with its list of paths is the longest.
pub(crate) const MAX_CONTROL: usize = 64 << 10;
/// Longest body of an entry: a path of maximum length, a link of maximum length, and extended attributes of 64 KiB, the
/// most that Linux lets one attribute have (xattr(7)).
pub(crate) const MAX_ENTRY: usize = (64 << 10) + (16 << 10);
/// Longest body of frames with few fields: a path of maximum length and a message.
pub(crate) const MAX_SMALL: usize = 8 << 10;
/// Longest body of a request of the file service: two paths of maximum length, and fixed fields.
pub(crate) const MAX_REQUEST: usize = 16 << 10;
/// Number of the request before the bytes of a BLOCK frame.
pub(crate) const BLOCK_HEADER: usize = 4;
/// Most bytes of one BLOCK frame: so few that requests which share a connection alternate often.
pub(crate) const MAX_BLOCK: usize = 64 << 10;

/// The type of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, TryFromPrimitive)]
#[non_exhaustive]
#[repr(u8)]
pub enum FrameKind {
    /// Connecting side, first: magic, version, capabilities, credit, request.
    Open = 0x01,
    /// Accepting side, first: version, capabilities, credit.
    Accept = 0x02,
    /// Either side, last: the session has ended, and why.
    Abort = 0x03,
    /// Sender: an entry of the source.
    Entry = 0x10,
    /// Sender: bytes of the current file, of a benchmark, or of a command's stdin or stdout.
    Data = 0x11,
    /// Sender: the content of the current file is complete, with the digest of the whole.
    Digest = 0x12,
    /// Sender: no more entries and content, or no more data in a benchmark, with its figures.
    End = 0x13,
    /// Sender: an item at the source that cannot be sent.
    Skipped = 0x14,
    /// Sender: the content of this file follows, from its first chunk on, with its size and time now.
    Content = 0x15,
    /// Sender: the content goes on with this chunk.
    Seek = 0x16,
    /// Sender: so many zeros in place of DATA.
    Zeros = 0x17,
    /// Receiver: the limit up to which data may be sent.
    Grant = 0x18,
    /// Receiver: a file has its final name, with this digest.
    Verified = 0x19,
    /// Receiver: a directory is complete.
    Made = 0x1a,
    /// Either side: this entry failed.
    Failed = 0x1b,
    /// Receiver, last: every entry has its answer, with its figures.
    Done = 0x1c,
    /// Receiver: it wants the content of this file, but for the chunks that it claims to have.
    Want = 0x1d,
    /// Receiver: it has this file.
    Have = 0x1e,
    /// Receiver: these chunks of a file arrived damaged.
    Again = 0x1f,
    /// Benchmark receiver: its figures.
    Report = 0x20,
    /// Benchmark sender, last: its figures once everything is acknowledged.
    Totals = 0x21,
    /// Receiver: the digest of a chunk that it claimed to have, or that it lacks that chunk after all.
    Known = 0x22,
    /// Sender: the current chunk is complete, with its digest.
    Chunk = 0x23,
    /// Sender: this chunk is as the receiver has it.
    Keep = 0x24,
    /// Receiver: an entry of the target that the source lacks is removed, or why it is not.
    Deleted = 0x25,
    /// Receiver of a pull: further names of its list; without any, the list is complete.
    Names = 0x26,
    /// Sender: the files and bytes that it has listed, once it has listed everything. An extension, which receivers may skip.
    Expected = 0xa3,
    /// Receiver: its disk is full, and it waits for space. An extension as well.
    WaitsForSpace = 0xa4,
    /// From a command: bytes of its stderr.
    Stderr = 0x40,
    /// Either side of a command: one of its streams has ended.
    StreamEnd = 0x41,
    /// Either side of a command: nobody reads one of the peer's streams any more.
    StreamClosed = 0x42,
    /// Accepting side of a command, last: how it ended.
    Exit = 0x43,
    /// Client of the file service: a request, with its number.
    Request = 0x30,
    /// Its server: the answer to the request with this number.
    Answer = 0x31,
    /// Either side: bytes of the request with this number.
    Block = 0x32,
    /// Client: all bytes of this put were sent, with their digest.
    Finish = 0x33,
    /// Client: the request with this number is given up. It still gets an answer.
    Cancel = 0x34,
}

impl FrameKind {
    /// Longest body in bytes.
    pub const fn limit(self) -> usize {
        match self {
            Self::Data => MAX_DATA,
            Self::Open | Self::Answer | Self::Stderr | Self::Names => MAX_CONTROL,
            Self::Entry => MAX_ENTRY,
            Self::Request => MAX_REQUEST,
            Self::Block => BLOCK_HEADER + MAX_BLOCK,
            _ => MAX_SMALL,
        }
    }
}
