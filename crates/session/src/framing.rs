//! Frames of a byte stream: type `u8`, length `u32` big-endian, body.
//!
//! The body of a DATA frame is passed on as it arrives, directly from the caller's buffer. All other bodies are small
//! and passed on whole, borrowed where they are contiguous.

use crate::error::Violation;

#[cfg(test)]
mod tests;

/// Bytes before each body.
pub(crate) const HEADER_LEN: usize = 5;
/// Longest DATA body. Large, so that headers cost nothing, but small enough for fair interleaving later.
pub(crate) const MAX_DATA: usize = 1 << 20;
/// Longest body of any other frame. An opening frame with its list of paths is the longest.
pub(crate) const MAX_CONTROL: usize = 64 << 10;
/// Longest body of frames with few fields: a path of maximum length and a message.
const MAX_SMALL: usize = 8 << 10;
/// First of the extension types, which receivers skip if they do not know them.
const FIRST_EXTENSION: u8 = 0x80;

/// The type of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum FrameKind {
    /// Connecting side, first: magic, version, capabilities, credit, request.
    Open = 0x01,
    /// Accepting side, first: version, capabilities, credit.
    Accept = 0x02,
    /// Either side, last: the session has ended, and why.
    Abort = 0x03,
    /// Sender: a file or directory starts.
    Entry = 0x10,
    /// Sender: bytes of the current file, or of a benchmark.
    Data = 0x11,
    /// Sender: the current file is complete, with its digest.
    Digest = 0x12,
    /// Sender: no more entries, or no more data in a benchmark, with its figures.
    End = 0x13,
    /// Sender: an item at the source that cannot be sent.
    Skipped = 0x14,
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
    /// Benchmark receiver: its figures.
    Report = 0x20,
    /// Benchmark sender, last: its figures once everything is acknowledged.
    Totals = 0x21,
}

impl FrameKind {
    const fn from_wire(kind: u8) -> Option<Self> {
        Some(match kind {
            0x01 => Self::Open,
            0x02 => Self::Accept,
            0x03 => Self::Abort,
            0x10 => Self::Entry,
            0x11 => Self::Data,
            0x12 => Self::Digest,
            0x13 => Self::End,
            0x14 => Self::Skipped,
            0x18 => Self::Grant,
            0x19 => Self::Verified,
            0x1a => Self::Made,
            0x1b => Self::Failed,
            0x1c => Self::Done,
            0x20 => Self::Report,
            0x21 => Self::Totals,
            _ => return None,
        })
    }

    /// Longest body in bytes.
    pub const fn limit(self) -> usize {
        match self {
            Self::Data => MAX_DATA,
            Self::Open => MAX_CONTROL,
            _ => MAX_SMALL,
        }
    }
}

/// The header of a frame.
///
/// # Panics
/// If the body is longer than [`FrameKind::limit`]. This is a mistake of the caller, who builds it from checked values.
pub(crate) fn header(kind: FrameKind, body: usize) -> [u8; HEADER_LEN] {
    assert!(body <= kind.limit(), "{kind:?} body of {body} bytes");
    let [a, b, c, d] = u32::try_from(body).expect("limits are far below 4 GiB").to_be_bytes();
    [kind as u8, a, b, c, d]
}

/// Appends a frame with the body that `fill` writes.
pub(crate) fn put_frame(out: &mut Vec<u8>, kind: FrameKind, fill: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; HEADER_LEN]);
    fill(out);
    let body = out.len() - start - HEADER_LEN;
    out[start..start + HEADER_LEN].copy_from_slice(&header(kind, body));
}

/// The next result of the decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    /// A whole frame other than DATA.
    Frame(FrameKind, &'a [u8]),
    /// The next bytes of DATA bodies, never empty.
    Data(&'a [u8]),
}

/// Cuts received bytes into frames. Holds at most one incomplete frame other than DATA.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    state: FrameState,
    /// The start of a header or body that is not complete yet.
    held: Vec<u8>,
    /// `held` was returned to the caller and must be cleared.
    handed_out: bool,
}

#[derive(Clone, Copy, Debug, Default)]
enum FrameState {
    #[default]
    Header,
    Body(FrameKind, usize),
    Data(usize),
    Skip(usize),
}

impl Decoder {
    /// The next piece of `input`, which is advanced past it; `None` if all input is used up.
    ///
    /// # Errors
    /// The peer violated the protocol. The rest of the stream is unreadable.
    pub(crate) fn next<'a, 'b: 'a>(&'a mut self, input: &mut &'b [u8]) -> Result<Option<Piece<'a>>, Violation> {
        if std::mem::take(&mut self.handed_out) {
            self.held.clear();
        }
        loop {
            match self.state {
                FrameState::Header => {
                    gather(&mut self.held, input, HEADER_LEN);
                    let Some(bytes) = self.held.first_chunk() else { return Ok(None) };
                    self.state = begin(*bytes)?;
                    self.held.clear();
                }
                FrameState::Body(kind, length) => {
                    if self.held.is_empty() && input.len() >= length {
                        self.state = FrameState::Header;
                        return Ok(Some(Piece::Frame(kind, take(input, length))));
                    }
                    gather(&mut self.held, input, length);
                    if self.held.len() < length {
                        return Ok(None);
                    }
                    self.state = FrameState::Header;
                    self.handed_out = true;
                    return Ok(Some(Piece::Frame(kind, &self.held)));
                }
                FrameState::Data(left) => {
                    if input.is_empty() {
                        return Ok(None);
                    }
                    let bytes = take(input, left.min(input.len()));
                    self.state =
                        if bytes.len() == left { FrameState::Header } else { FrameState::Data(left - bytes.len()) };
                    return Ok(Some(Piece::Data(bytes)));
                }
                FrameState::Skip(left) => {
                    let skipped = take(input, left.min(input.len())).len();
                    if skipped < left {
                        self.state = FrameState::Skip(left - skipped);
                        return Ok(None);
                    }
                    self.state = FrameState::Header;
                }
            }
        }
    }
}

/// The state after a header.
fn begin(bytes: [u8; HEADER_LEN]) -> Result<FrameState, Violation> {
    let [number, length @ ..] = bytes;
    let length = u32::from_be_bytes(length);
    let size = usize::try_from(length).unwrap_or(usize::MAX);
    let Some(kind) = FrameKind::from_wire(number) else {
        let skippable = number >= FIRST_EXTENSION && size <= MAX_CONTROL;
        return if skippable { Ok(FrameState::Skip(size)) } else { Err(Violation::UnknownFrame(number)) };
    };
    if size > kind.limit() {
        let limit = u32::try_from(kind.limit()).expect("limits are far below 4 GiB");
        return Err(Violation::Oversized { kind, length, limit });
    }
    match kind {
        // An empty frame makes no progress, so a peer could send it endlessly.
        FrameKind::Data if size == 0 => Err(crate::error::Malformed::Short.in_frame(kind)),
        FrameKind::Data => Ok(FrameState::Data(size)),
        _ => Ok(FrameState::Body(kind, size)),
    }
}

/// Moves bytes from `input` to `held` until `held` has `length` bytes.
fn gather(held: &mut Vec<u8>, input: &mut &[u8], length: usize) {
    let missing = length.saturating_sub(held.len());
    held.extend_from_slice(take(input, missing.min(input.len())));
}

fn take<'b>(input: &mut &'b [u8], count: usize) -> &'b [u8] {
    let (taken, rest) = input.split_at(count);
    *input = rest;
    taken
}
