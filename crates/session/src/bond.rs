//! One stream over several connections: how it begins, and its blocks.
//!
//! ```text
//! first connection                          each other flow
//! OPEN, with a token and a number      ─▶
//! the stream itself                    ◀─▶  JOIN token index   ─▶
//!                                        ◀─  ACCEPT, or ABORT
//!                                        ◀─▶  READY, once each side has taken the flow
//!                                        ◀─▶  BLOCK offset bytes, in each direction
//!                                        ◀─▶  TOTAL length flows, once the direction has ended
//! ```
//!
//! A stream begins as one connection without any framing. Each direction leaves the first connection at an offset of its
//! sender's choice, once a flow has joined. From there on, blocks travel over whichever flow has room. The bytes of the first
//! connection have offsets as well, so the receiver needs no word about that moment: it puts everything [in
//! order](Reassembly).

mod reassembly;
#[cfg(test)]
mod tests;

use crate::error::{SessionError, Violation};
use crate::field::Malformed;
use crate::frame_kind::FrameKind;
use crate::framing::{Decoded, Decoder};
use crate::handshake::{Accept, Open};
use crate::request::Request;
use crate::request::flows::{Bonding, Join, MAX_FLOWS, Token};

pub use reassembly::{Disorder, Reassembly};

/// Most bytes of a block: as many as the library moves at once.
pub const MAX_BLOCK: usize = 256 << 10;
/// Bytes before those of each block.
pub const BLOCK_HEADER: usize = 13;

/// Types of records. They are none of a session's frames, so a mistaken connection fails at once.
const BLOCK: u8 = 0x60;
const TOTAL: u8 = 0x61;
const READY: u8 = 0x62;

impl Bonding {
    /// The first frame of a stream of bytes without a session.
    pub fn open_frame(self) -> Vec<u8> {
        let mut bytes = Vec::new();
        Open::new(Request::Stream, 0).bonded_by(Some(self)).put(&mut bytes);
        bytes
    }
}

impl Join {
    /// The first frame of the flow.
    pub fn open_frame(self) -> Vec<u8> {
        let mut bytes = Vec::new();
        Open::new(Request::Join(self), 0).put(&mut bytes);
        bytes
    }
}

/// The answer to a flow that may join.
pub fn join_accepted() -> Vec<u8> {
    let mut bytes = Vec::new();
    Accept::new(0).put(&mut bytes);
    bytes
}

/// Reads the answer to a flow that wants to join.
#[derive(Debug, Default)]
pub struct JoinAnswer {
    decoder: Decoder,
}

impl JoinAnswer {
    /// Takes bytes. Returns how many were used, and whether the flow has joined.
    ///
    /// # Errors
    /// It was refused, or the peer answers something else.
    pub fn handle_received(&mut self, bytes: &[u8]) -> Result<(usize, bool), SessionError> {
        let mut rest = bytes;
        let joined = match self.decoder.next(&mut rest)? {
            None => false,
            Some(Decoded::Frame(kind, body)) => Accept::awaited(kind, body).map(|_| true)?,
            Some(Decoded::Data(_)) => return Err(SessionError::NotFarhaul),
        };
        Ok((bytes.len() - rest.len(), joined))
    }
}

/// The header of a record on a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// Bytes of the stream follow, from this offset on.
    Block {
        /// The offset of the first byte.
        offset: u64,
        /// Their number, from 1 to [`MAX_BLOCK`].
        len: usize,
    },
    /// This side has taken the flow, and reads it. The connecting side says so first. Each sends blocks once the other one has said so.
    Ready,
    /// The direction has ended. The last record of a flow.
    Total {
        /// Bytes of the direction.
        total: u64,
        /// Flows that say so, as far as this side knows that the other one has taken them.
        flows: usize,
    },
}

impl Record {
    /// Its bytes.
    ///
    /// # Panics
    /// A block is longer than [`MAX_BLOCK`]: a mistake of the caller.
    pub fn to_bytes(self) -> [u8; BLOCK_HEADER] {
        let (kind, len, offset) = match self {
            Self::Block { offset, len } => {
                assert!((1..=MAX_BLOCK).contains(&len), "a block of {len} bytes");
                (BLOCK, u32::try_from(len).expect("a block is far below 4 GiB"), offset)
            }
            Self::Ready => (READY, 0, 0),
            Self::Total { total, flows } => (TOTAL, u32::try_from(flows).expect("there are few flows"), total),
        };
        let mut bytes = [0; BLOCK_HEADER];
        bytes[0] = kind;
        bytes[1..5].copy_from_slice(&len.to_be_bytes());
        bytes[5..].copy_from_slice(&offset.to_be_bytes());
        bytes
    }

    /// The record with these bytes.
    ///
    /// # Errors
    /// There is no such record.
    pub fn from_bytes(bytes: [u8; BLOCK_HEADER]) -> Result<Self, Violation> {
        let [kind, a, b, c, d, offset @ ..] = bytes;
        let len = usize::try_from(u32::from_be_bytes([a, b, c, d])).unwrap_or(usize::MAX);
        let offset = u64::from_be_bytes(offset);
        let bad = |reason: Malformed| Err(reason.in_frame(FrameKind::Data));
        match kind {
            BLOCK if !(1..=MAX_BLOCK).contains(&len) => bad(Malformed::Value("length of a block")),
            BLOCK if offset.checked_add(len as u64).is_none() => bad(Malformed::Value("offset of a block")),
            BLOCK => Ok(Self::Block { offset, len }),
            TOTAL if len <= usize::from(MAX_FLOWS) => Ok(Self::Total { total: offset, flows: len }),
            READY if len == 0 && offset == 0 => Ok(Self::Ready),
            TOTAL | READY => bad(Malformed::Trailing),
            other => Err(Violation::UnknownFrame(other)),
        }
    }
}

/// Tells the beginning of a stream of bytes with further flows from that of a stream of bytes alone.
///
/// A stream of bytes alone has no opening. So a caller must not send one that begins as this one does.
#[derive(Clone, Debug, Default)]
pub struct Beginning {
    head: Vec<u8>,
}

/// The beginning of a stream of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begun {
    /// Too few bytes have come to tell.
    Unknown,
    /// The stream is bytes alone.
    Bytes,
    /// Further flows may join. The stream's own bytes come after the opening.
    Bonded(Bonding),
}

impl Beginning {
    /// Takes bytes from the beginning of a stream. Returns what it is, and how many of the bytes belong to the opening.
    pub fn handle_received(&mut self, bytes: &[u8]) -> (Begun, usize) {
        let before = self.head.len();
        let whole = Bonding { flows: 0, token: Token([0; 16]) }.open_frame();
        let missing = whole.len().saturating_sub(before).min(bytes.len());
        self.head.extend_from_slice(&bytes[..missing]);
        // All but the number and the token is the same in each.
        let constant = whole.len() - 1 - size_of::<Token>();
        let known = self.head.len().min(constant);
        if self.head[..known] != whole[..known] {
            return (Begun::Bytes, 0);
        }
        if self.head.len() < whole.len() {
            return (Begun::Unknown, missing);
        }
        match Bonding::decode(&self.head[constant..]) {
            Ok(bonding) => (Begun::Bonded(bonding), missing),
            Err(_) => (Begun::Bytes, 0),
        }
    }

    /// The bytes so far. They belong to the stream if it is bytes alone.
    pub fn into_head(self) -> Vec<u8> {
        self.head
    }
}
