//! Frames of a byte stream: type `u8`, length `u32` big-endian, body.
//!
//! The body of a DATA frame is passed on as it arrives, directly from the caller's buffer. All other bodies are small
//! and passed on whole, borrowed where they are contiguous.

use crate::error::Violation;
use crate::field::{Fields, Malformed};
use crate::frame_kind::{FrameKind, MAX_CONTROL};

#[cfg(test)]
mod tests;

/// Bytes before each body.
pub(crate) const HEADER_LEN: usize = 5;
/// First of the extension types, which receivers skip if they do not know them.
const FIRST_EXTENSION: u8 = 0x80;

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
pub(crate) enum Decoded<'a> {
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
    /// The next frame or data of `input`, which is advanced past it; `None` if all input is used up.
    ///
    /// # Errors
    /// The peer violated the protocol. The rest of the stream is unreadable.
    pub(crate) fn next<'a, 'b: 'a>(&'a mut self, input: &mut &'b [u8]) -> Result<Option<Decoded<'a>>, Violation> {
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
                        return Ok(Some(Decoded::Frame(kind, take(input, length))));
                    }
                    gather(&mut self.held, input, length);
                    if self.held.len() < length {
                        return Ok(None);
                    }
                    self.state = FrameState::Header;
                    self.handed_out = true;
                    return Ok(Some(Decoded::Frame(kind, &self.held)));
                }
                FrameState::Data(left) => {
                    if input.is_empty() {
                        return Ok(None);
                    }
                    let bytes = take(input, left.min(input.len()));
                    self.state =
                        if bytes.len() == left { FrameState::Header } else { FrameState::Data(left - bytes.len()) };
                    return Ok(Some(Decoded::Data(bytes)));
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
    let Ok(kind) = FrameKind::try_from(number) else {
        let skippable = number >= FIRST_EXTENSION && size <= MAX_CONTROL;
        return if skippable { Ok(FrameState::Skip(size)) } else { Err(Violation::UnknownFrame(number)) };
    };
    if size > kind.limit() {
        let limit = u32::try_from(kind.limit()).expect("limits are far below 4 GiB");
        return Err(Violation::Oversized { kind, length, limit });
    }
    match kind {
        // An empty frame makes no progress, so a peer could send it endlessly.
        FrameKind::Data if size == 0 => Err(Malformed::Short.in_frame(kind)),
        FrameKind::Data => Ok(FrameState::Data(size)),
        _ => Ok(FrameState::Body(kind, size)),
    }
}

/// Decodes the whole body of a frame.
pub(crate) fn decode_whole<T>(
    kind: FrameKind,
    body: &[u8],
    read: impl FnOnce(&mut Fields<'_>) -> Result<T, Malformed>,
) -> Result<T, Violation> {
    let mut fields = Fields::new(body);
    let value = read(&mut fields).map_err(|reason| reason.in_frame(kind))?;
    fields.end().map_err(|reason| reason.in_frame(kind))?;
    Ok(value)
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
