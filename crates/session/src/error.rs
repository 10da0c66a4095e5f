//! Errors that end a session, each with the side at fault.

use crate::failure::Failure;
use crate::field::Malformed;
use crate::frame_kind::FrameKind;
use crate::wire_codes::wire_codes;

/// Why a session ended before its work was done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The other side does not speak this protocol. Check the address.
    #[error("the other side does not speak Farhaul's session protocol")]
    NotFarhaul,
    /// The peer supports only other versions. Update the older side.
    #[error("the peer uses session protocol {wanted}, this side supports {oldest} to {newest}")]
    Version {
        /// The peer's version.
        wanted: u16,
        /// The oldest version that this side supports.
        oldest: u16,
        /// The newest version that this side supports.
        newest: u16,
    },
    /// The peer requests something that only later versions of this program know. Update this side.
    #[error("this side does not know requests of kind {0}, as newer versions have them")]
    UnknownRequest(u8),
    /// The peer violated the protocol.
    #[error("protocol violation by the peer: {0}")]
    PeerMisbehaved(#[from] Violation),
    /// The peer gave up and told why.
    #[error("the peer ended the session: {0}")]
    PeerAborted(Abort),
    /// The peer's stream ended before the session was done.
    #[error("the peer closed the stream before the session was done")]
    PeerLeft,
    /// This side's disk failed in a way that affects every file.
    #[error("local storage: {0}")]
    Store(Failure),
    /// This side's driver stopped the session.
    #[error("stopped by this side: {0}")]
    Cancelled(Abort),
}

/// The peer's violation of the protocol.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// An unknown frame type that may not be skipped.
    #[error("unknown frame type {0:#04x}")]
    UnknownFrame(u8),
    /// A frame longer than its type allows.
    #[error("{kind:?} frame of {length} bytes, allowed are {limit}")]
    Oversized {
        /// The frame's type.
        kind: FrameKind,
        /// Length in its header, bytes.
        length: u32,
        /// Allowed length, bytes.
        limit: u32,
    },
    /// A frame with invalid fields.
    #[error("malformed {kind:?} frame: {reason}")]
    Malformed {
        /// The frame's type.
        kind: FrameKind,
        /// The fault.
        reason: Malformed,
    },
    /// A frame that is not allowed now, or not from the peer.
    #[error("{0:?} frame out of place")]
    OutOfPlace(FrameKind),
    /// The entry's directory is not open, or the entry does not follow its predecessor in order. Includes duplicates.
    #[error("entry out of order or sent twice: {0}")]
    EntryOrder(String),
    /// An entry that this side did not request.
    #[error("entry that was not requested: {0}")]
    NotRequested(String),
    /// The data of a file is longer or shorter than announced.
    #[error("{path} was announced with {announced} bytes, but {received} or more arrived")]
    Length {
        /// The file, escaped for display.
        path: String,
        /// Bytes announced.
        announced: u64,
        /// Bytes received.
        received: u64,
    },
    /// The peer sent more data than this side granted.
    #[error("more data than was granted")]
    CreditExceeded,
    /// A grant reduced the credit.
    #[error("a grant reduced the credit")]
    CreditWithdrawn,
    /// The peer exceeded this side's limit of entries or bytes.
    #[error("more {0} than this side's limits allow")]
    Limit(&'static str),
    /// An answer for an entry that was never sent or already has its answer.
    #[error("answer for an entry that expects none")]
    UnknownEntry,
    /// An answer for a request that was never made or already has its answer.
    #[error("answer for a request that expects none")]
    NoSuchRequest,
    /// A request with the number of another one that has no answer yet.
    #[error("two requests have one number")]
    SameNumber,
    /// The digest that the peer confirmed differs from that of the sent bytes.
    #[error("the digest that the peer confirmed for {0} differs from that of the sent bytes")]
    WrongDigest(String),
    /// The counts at the end differ from the entries or bytes sent.
    #[error("the counts at the end of the session differ from the entries or bytes sent")]
    Counts,
}

impl Malformed {
    /// The violation for a frame of `kind` with this fault.
    pub(crate) const fn in_frame(self, kind: FrameKind) -> Violation {
        Violation::Malformed { kind, reason: self }
    }
}

/// Why one side gave up the session.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct Abort {
    /// The reason as a code.
    pub code: AbortCode,
    /// A message for users, safe to print, possibly empty.
    pub message: String,
}

wire_codes! {
    /// The reason of an [`Abort`], as sent.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum AbortCode, "code";
    Version = 1, "version not supported", "The version is not supported. Exit code 9.";
    Protocol = 2, "protocol violation", "The other side violated the protocol. Exit code 9.";
    Refused = 3, "refused", "Not permitted here: read-only, or outside the root. Exit code 5.";
    Busy = 4, "too many sessions", "Too many sessions. Retry later. Exit code 1.";
    NoSpace = 5, "no space left", "The disk is full or the quota used up. Exit code 7.";
    Storage = 6, "storage failed", "Reading or writing failed for all files. Exit code 7.";
    Cancelled = 7, "stopped", "The other side stopped the session. Exit code 8.";
    WrongService = 8, "service not offered here", "The other side offers another service: the request is for files from a benchmark server, or the reverse. Exit code 9.";
}

impl SessionError {
    /// The message for the peer; `None` if it knows the reason or cannot be told.
    pub(crate) fn abort(&self) -> Option<Abort> {
        let code = match self {
            Self::PeerAborted(_) | Self::PeerLeft => return None,
            Self::Cancelled(abort) => return Some(abort.clone()),
            Self::NotFarhaul | Self::PeerMisbehaved(_) => AbortCode::Protocol,
            Self::Version { .. } | Self::UnknownRequest(_) => AbortCode::Version,
            // The peer adds the side.
            Self::Store(failure) if failure.code.is_out_of_space() => return Some(failed(AbortCode::NoSpace, failure)),
            Self::Store(failure) => return Some(failed(AbortCode::Storage, failure)),
        };
        Some(Abort { code, message: self.to_string() })
    }
}

fn failed(code: AbortCode, failure: &Failure) -> Abort {
    Abort { code, message: failure.to_string() }
}
