//! The control channel between two Farhaul programs with a blast protocol, and the tag of their datagrams.
//!
//! The formats are ours. A channel carries, in each direction, one [`Hello`] and then frames:
//!
//! ```text
//! Hello    "FARHAUL" | version u8 | length of name u8 | name | tag u64 | payload u16 | options u16 | options
//! Frame    type u8 | length u32 | body
//! datagram tag u64 | whatever the protocol sends
//! ```
//!
//! All numbers are big-endian. A receiver accepts only datagrams with the random tag that it named (attack C2).

use crate::DecodeError;

mod record;

pub use record::RecordError;
pub(crate) use record::seq_of_record;

/// Bytes of the tag in front of each datagram.
pub const TAG_LEN: usize = 8;
/// The version of these formats.
pub const VERSION: u8 = 1;
/// Most bytes of a frame's body. Longer records of a protocol travel in several frames.
pub const MAX_BODY: usize = 64 << 10;
/// Bytes of a frame before its body.
pub const FRAME_HEADER: usize = 5;

const MAGIC: &[u8; 7] = b"FARHAUL";
/// Most bytes of a protocol's name.
const MAX_NAME: usize = 32;
/// Most bytes of a protocol's options.
const MAX_OPTIONS: usize = 1024;

/// The random number that the datagrams of one direction carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tag(pub u64);

impl Tag {
    /// The tag of a datagram, and the rest of it.
    ///
    /// # Errors
    /// The datagram is shorter than a tag.
    pub fn split(datagram: &[u8]) -> Result<(Self, &[u8]), DecodeError> {
        let (head, rest) =
            datagram.split_first_chunk().ok_or(DecodeError::TooShort { length: datagram.len(), header: TAG_LEN })?;
        Ok((Self(u64::from_be_bytes(*head)), rest))
    }

    /// The bytes of the tag.
    pub const fn bytes(self) -> [u8; TAG_LEN] {
        self.0.to_be_bytes()
    }
}

/// The first thing that each side says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello<'a> {
    /// The name of the protocol.
    pub protocol: &'a str,
    /// The tag that datagrams to this side must carry.
    pub tag: Tag,
    /// Most bytes of a datagram that this side sends or takes, tag included. The smaller of both sides applies.
    pub datagram: u16,
    /// Options of the protocol that both sides must know, in its own format.
    pub options: &'a [u8],
}

impl<'a> Hello<'a> {
    /// Appends its bytes. Names and options beyond their limits are cut, which no protocol of ours has.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let name = &self.protocol.as_bytes()[..self.protocol.len().min(MAX_NAME)];
        let options = &self.options[..self.options.len().min(MAX_OPTIONS)];
        out.extend_from_slice(MAGIC);
        out.push(VERSION);
        out.push(u8::try_from(name.len()).unwrap_or(0));
        out.extend_from_slice(name);
        out.extend_from_slice(&self.tag.bytes());
        out.extend_from_slice(&self.datagram.to_be_bytes());
        out.extend_from_slice(&u16::try_from(options.len()).unwrap_or(0).to_be_bytes());
        out.extend_from_slice(options);
    }

    /// Reads one from the front of `bytes`. Returns it with its length, or `None` if more bytes are needed.
    ///
    /// # Errors
    /// These bytes do not begin a hello of this version.
    pub fn decode(bytes: &'a [u8]) -> Result<Option<(Self, usize)>, HelloError> {
        let seen = bytes.len().min(MAGIC.len());
        if bytes[..seen] != MAGIC[..seen] {
            return Err(HelloError::Foreign);
        }
        let mut rest = Cursor { bytes, at: MAGIC.len() };
        let Some([version]) = rest.array() else { return Ok(None) };
        if version != VERSION {
            return Err(HelloError::Version(version));
        }
        let Some([length]) = rest.array() else { return Ok(None) };
        if usize::from(length) > MAX_NAME {
            return Err(HelloError::Malformed);
        }
        let Some(name) = rest.take(usize::from(length)) else { return Ok(None) };
        let (Some(tag), Some(datagram), Some(options)) = (rest.array(), rest.array(), rest.array()) else {
            return Ok(None);
        };
        let options = usize::from(u16::from_be_bytes(options));
        if options > MAX_OPTIONS {
            return Err(HelloError::Malformed);
        }
        let Some(options) = rest.take(options) else { return Ok(None) };
        let protocol = str::from_utf8(name).map_err(|_| HelloError::Malformed)?;
        let (tag, datagram) = (Tag(u64::from_be_bytes(tag)), u16::from_be_bytes(datagram));
        Ok(Some((Self { protocol, tag, datagram, options }, rest.at)))
    }
}

/// Whether `bytes`, the first that a caller sent, begin a [`Hello`] of any version. An original program of Tsunami, RBUDP
/// or SABUL begins with a number or with the name of a file. A control character follows no such name's first letters.
pub fn begins_hello(bytes: &[u8]) -> bool {
    let seen = bytes.len().min(MAGIC.len());
    bytes[..seen] == MAGIC[..seen] && bytes.get(MAGIC.len()).is_none_or(u8::is_ascii_control)
}

/// Why a hello was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HelloError {
    /// Another program answered.
    #[error("the program there is no Farhaul")]
    Foreign,
    /// The peer speaks another version of these formats.
    #[error("the peer speaks version {0} of the control channel, this side {VERSION}")]
    Version(u8),
    /// A length beyond its limit, or a name that is no text.
    #[error("the peer's hello is malformed")]
    Malformed,
}

/// One frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// Bytes of the sender's stream. They follow everything announced before.
    Inline(&'a [u8]),
    /// The next bytes of the sender's stream, this many, come by datagrams.
    Bulk(u64),
    /// Control bytes of the protocol, from the sender of its data.
    Forward(&'a [u8]),
    /// Control bytes of the protocol, from the receiver of its data.
    Backward(&'a [u8]),
    /// The peer may send its stream up to this offset.
    Grant(u64),
    /// The sender of this frame has received the peer's stream up to this offset, without a gap.
    Delivered(u64),
    /// Datagrams and their bytes that the sender of this frame has received so far, and its clock in microseconds.
    Feedback {
        /// Datagrams with the right tag, duplicates included.
        datagrams: u64,
        /// Their bytes, without tags.
        bytes: u64,
        /// When it counted, microseconds since an arbitrary zero.
        clock: u64,
    },
    /// A datagram of the peer has arrived, so its path is open.
    PathOpen,
    /// Asks for an [`Echo`](Frame::Echo) of the same number.
    Ping(u64),
    /// Answers a ping.
    Echo(u64),
    /// The stream of the sender of this frame is complete, and nothing follows.
    End,
    /// The sender of this frame ends the connection although data is missing. The code is one of its own.
    Abort(u32),
}

/// Values of the type byte of a frame.
mod kind {
    pub(super) const INLINE: u8 = 1;
    pub(super) const BULK: u8 = 2;
    pub(super) const FORWARD: u8 = 3;
    pub(super) const BACKWARD: u8 = 4;
    pub(super) const GRANT: u8 = 5;
    pub(super) const DELIVERED: u8 = 6;
    pub(super) const FEEDBACK: u8 = 7;
    pub(super) const PATH_OPEN: u8 = 8;
    pub(super) const PING: u8 = 9;
    pub(super) const ECHO: u8 = 10;
    pub(super) const END: u8 = 11;
    pub(super) const ABORT: u8 = 12;
}

impl<'a> Frame<'a> {
    /// Appends its bytes. The caller divides bodies longer than [`MAX_BODY`].
    pub fn encode(&self, out: &mut Vec<u8>) {
        let at = out.len();
        out.extend_from_slice(&[0; FRAME_HEADER]);
        let kind = match *self {
            Self::Inline(body) => put(out, kind::INLINE, body),
            Self::Bulk(bytes) => put(out, kind::BULK, &bytes.to_be_bytes()),
            Self::Forward(body) => put(out, kind::FORWARD, body),
            Self::Backward(body) => put(out, kind::BACKWARD, body),
            Self::Grant(offset) => put(out, kind::GRANT, &offset.to_be_bytes()),
            Self::Delivered(offset) => put(out, kind::DELIVERED, &offset.to_be_bytes()),
            Self::Feedback { datagrams, bytes, clock } => {
                put(out, kind::FEEDBACK, [datagrams, bytes, clock].map(u64::to_be_bytes).as_flattened())
            }
            Self::PathOpen => kind::PATH_OPEN,
            Self::Ping(number) => put(out, kind::PING, &number.to_be_bytes()),
            Self::Echo(number) => put(out, kind::ECHO, &number.to_be_bytes()),
            Self::End => kind::END,
            Self::Abort(code) => put(out, kind::ABORT, &code.to_be_bytes()),
        };
        let length = u32::try_from(out.len() - at - FRAME_HEADER).unwrap_or(u32::MAX);
        out[at] = kind;
        out[at + 1..at + FRAME_HEADER].copy_from_slice(&length.to_be_bytes());
    }

    /// Reads one from the front of `bytes`. Returns it with its length, or `None` if more bytes are needed.
    ///
    /// # Errors
    /// The type is unknown, or its body has another length. Nothing that follows can be read then.
    pub fn decode(bytes: &'a [u8]) -> Result<Option<(Self, usize)>, FrameError> {
        let mut rest = Cursor { bytes, at: 0 };
        let (Some([kind]), Some(length)) = (rest.array(), rest.array()) else { return Ok(None) };
        let length = u32::from_be_bytes(length);
        let body = usize::try_from(length).ok().filter(|&length| length <= MAX_BODY);
        let body = body.ok_or(FrameError::TooLong { kind, length })?;
        let Some(body) = rest.take(body) else { return Ok(None) };
        let wrong = || FrameError::Length { kind, length };
        let number = || body.try_into().map(u64::from_be_bytes).map_err(|_| wrong());
        let frame = match kind {
            kind::INLINE => Self::Inline(body),
            kind::BULK => Self::Bulk(number()?),
            kind::FORWARD => Self::Forward(body),
            kind::BACKWARD => Self::Backward(body),
            kind::GRANT => Self::Grant(number()?),
            kind::DELIVERED => Self::Delivered(number()?),
            kind::FEEDBACK => {
                let body: &[u8; 24] = body.try_into().map_err(|_| wrong())?;
                let (words, _) = body.as_chunks();
                let [datagrams, bytes, clock] = [words[0], words[1], words[2]].map(u64::from_be_bytes);
                Self::Feedback { datagrams, bytes, clock }
            }
            kind::PATH_OPEN if body.is_empty() => Self::PathOpen,
            kind::PING => Self::Ping(number()?),
            kind::ECHO => Self::Echo(number()?),
            kind::END if body.is_empty() => Self::End,
            kind::PATH_OPEN | kind::END => return Err(wrong()),
            kind::ABORT => Self::Abort(body.try_into().map(u32::from_be_bytes).map_err(|_| wrong())?),
            _ => return Err(FrameError::Unknown(kind)),
        };
        Ok(Some((frame, rest.at)))
    }
}

/// Why a frame was refused. The peer or the line is at fault, and the channel is of no more use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// No frame has this type.
    #[error("no frame has the type {0}")]
    Unknown(u8),
    /// The body has a length that this type never has.
    #[error("a frame of type {kind} never has {length} bytes")]
    Length {
        /// The type of the frame.
        kind: u8,
        /// The length of its body in bytes.
        length: u32,
    },
    /// The body exceeds [`MAX_BODY`].
    #[error("a frame of type {kind} claims {length} bytes, and {MAX_BODY} are the most")]
    TooLong {
        /// The type of the frame.
        kind: u8,
        /// The length of its body in bytes.
        length: u32,
    },
}

/// Appends a body and returns the type of the frame.
fn put(out: &mut Vec<u8>, kind: u8, body: &[u8]) -> u8 {
    out.extend_from_slice(body);
    kind
}

/// A reader that stops at the end.
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Bytes read so far.
    pub(crate) const fn at(&self) -> usize {
        self.at
    }

    pub(crate) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let taken = self.bytes.get(self.at..)?.get(..count)?;
        self.at += count;
        Some(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }
}

#[cfg(test)]
mod tests;
