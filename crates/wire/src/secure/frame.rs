//! Frames of the handshake, one behind the other in the body of an Initial or Handshake packet.
//!
//! ```text
//! Padding   0                                                      to the end of the body
//! Crypto    1 | offset u32 | length u16 | bytes of TLS
//! Received  2 | epoch u8 | offset u32                              TLS bytes of that epoch have come up to there
//! Retry     3 | length u8 | token                                  a server asks for proof of the client's address
//! Close     4 | code u16 | length u8 | reason in UTF-8
//! ```

use num_enum::{FromPrimitive, IntoPrimitive};

use super::header::Epoch;
use super::initial_header::MAX_TOKEN;

/// Most bytes of the reason in a [`Frame::Close`].
pub const MAX_REASON: usize = 200;

mod kind {
    pub(super) const PADDING: u8 = 0;
    pub(super) const CRYPTO: u8 = 1;
    pub(super) const RECEIVED: u8 = 2;
    pub(super) const RETRY: u8 = 3;
    pub(super) const CLOSE: u8 = 4;
}

/// One frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A segment of the TLS handshake of this packet's epoch.
    Crypto {
        /// Where the segment stands in the stream of the epoch, bytes.
        offset: u32,
        /// The segment.
        bytes: &'a [u8],
    },
    /// The sender has all TLS bytes of this epoch before the offset, so they need not be sent again.
    Received {
        /// The epoch of the stream, not of this packet.
        epoch: Epoch,
        /// Bytes without a gap.
        offset: u32,
    },
    /// The client must call again with this token.
    Retry(&'a [u8]),
    /// The sender gives up.
    Close(CloseCode, &'a str),
}

/// Why a handshake or a connection was given up, as its side tells the other one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromPrimitive, IntoPrimitive)]
#[non_exhaustive]
#[repr(u16)]
pub enum CloseCode {
    /// The versions of the two sides differ.
    Version = 1,
    /// TLS failed: no common suite, a damaged message, a signature that does not verify.
    Tls = 2,
    /// The peer's key is not one that this side admits.
    Unauthorised = 3,
    /// The transport parameters of the transport do not fit.
    TransportParameters = 4,
    /// There is no room for a further connection.
    Busy = 5,
    /// The keys have reached their limit, and the peer does not follow an update.
    KeyLimit = 6,
    /// The peer violated the protocol.
    Violation = 7,
    /// A code of a later version.
    #[num_enum(catch_all)]
    Other(u16),
}

/// Why a body is no sequence of frames. Its sender holds the keys, so the fault is the peer's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// A type that no version so far has.
    #[error("a frame of the unknown type {0}")]
    UnknownType(u8),
    /// A frame goes beyond the end of the body, or a length is beyond its limit.
    #[error("a frame of type {0} with a wrong length")]
    Length(u8),
    /// The reason of a close is no UTF-8.
    #[error("a reason that is no text")]
    NoText,
}

/// A reason, cut at a character if it is too long.
pub(super) fn short(reason: &str) -> &str {
    let end = (0..=reason.len().min(MAX_REASON)).rev().find(|&end| reason.is_char_boundary(end));
    &reason[..end.unwrap_or(0)]
}

impl<'a> Frame<'a> {
    /// Bytes of a [`Frame::Crypto`] beside its segment.
    pub const CRYPTO_OVERHEAD: usize = 7;

    /// Appends its bytes. Segments longer than 65 535 bytes, tokens and reasons beyond their limits are cut.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match *self {
            Self::Crypto { offset, bytes } => {
                let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
                out.push(kind::CRYPTO);
                out.extend_from_slice(&offset.to_be_bytes());
                out.extend_from_slice(&length.to_be_bytes());
                out.extend_from_slice(&bytes[..length.into()]);
            }
            Self::Received { epoch, offset } => {
                out.push(kind::RECEIVED);
                out.push(epoch.0);
                out.extend_from_slice(&offset.to_be_bytes());
            }
            Self::Retry(token) => {
                let token = &token[..token.len().min(MAX_TOKEN)];
                out.push(kind::RETRY);
                out.push(u8::try_from(token.len()).unwrap_or(0));
                out.extend_from_slice(token);
            }
            Self::Close(code, reason) => {
                let reason = short(reason).as_bytes();
                out.push(kind::CLOSE);
                out.extend_from_slice(&u16::from(code).to_be_bytes());
                out.push(u8::try_from(reason.len()).unwrap_or(0));
                out.extend_from_slice(reason);
            }
        }
    }

    /// Reads one from the front of `bytes`. Returns it with everything behind it, or `None` at padding or the end.
    ///
    /// # Errors
    /// These bytes begin no frame.
    pub fn decode(bytes: &'a [u8]) -> Result<Option<(Self, &'a [u8])>, FrameError> {
        let Some((&kind, rest)) = bytes.split_first() else { return Ok(None) };
        let length = FrameError::Length(kind);
        Ok(Some(match kind {
            kind::PADDING => return Ok(None),
            kind::CRYPTO => {
                let (offset, rest) = rest.split_first_chunk().ok_or(length)?;
                let (size, rest) = rest.split_first_chunk().ok_or(length)?;
                let (bytes, rest) = rest.split_at_checked(u16::from_be_bytes(*size).into()).ok_or(length)?;
                (Self::Crypto { offset: u32::from_be_bytes(*offset), bytes }, rest)
            }
            kind::RECEIVED => {
                let (&epoch, rest) = rest.split_first().ok_or(length)?;
                let (offset, rest) = rest.split_first_chunk().ok_or(length)?;
                let epoch = Epoch(epoch);
                (Self::Received { epoch, offset: u32::from_be_bytes(*offset) }, rest)
            }
            kind::RETRY => {
                let (&size, rest) = rest.split_first().ok_or(length)?;
                let (token, rest) = rest.split_at_checked(size.into()).ok_or(length)?;
                if token.len() > MAX_TOKEN {
                    return Err(length);
                }
                (Self::Retry(token), rest)
            }
            kind::CLOSE => {
                let (code, rest) = rest.split_first_chunk().ok_or(length)?;
                let (&size, rest) = rest.split_first().ok_or(length)?;
                let (reason, rest) = rest.split_at_checked(size.into()).ok_or(length)?;
                if reason.len() > MAX_REASON {
                    return Err(length);
                }
                let reason = str::from_utf8(reason).map_err(|_| FrameError::NoText)?;
                (Self::Close(u16::from_be_bytes(*code).into(), reason), rest)
            }
            other => return Err(FrameError::UnknownType(other)),
        }))
    }
}
