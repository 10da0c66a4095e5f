//! Why a session ends before its work is done, and whose fault that is.

use crate::failure::Failure;
use crate::framing::FrameKind;
use crate::path_rules::PathError;

/// Why a session is over although its work is not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// What answered or called does not speak this protocol at all; check the address.
    #[error("the other side does not speak Farhaul's session protocol")]
    NotFarhaul,
    /// The peer speaks only other versions; update the older side.
    #[error("the peer wants session protocol {wanted}, this side speaks {oldest} to {newest}")]
    Version {
        /// What the peer used.
        wanted: u16,
        /// The oldest version this side speaks.
        oldest: u16,
        /// The newest version this side speaks.
        newest: u16,
    },
    /// The peer broke the protocol.
    #[error("protocol violation by the peer: {0}")]
    PeerMisbehaved(#[from] Violation),
    /// The peer gave up and said why.
    #[error("the peer ended the session: {0}")]
    PeerAborted(Abort),
    /// The peer's stream ended before the session was done.
    #[error("the peer closed the stream before the session was done")]
    PeerLeft,
    /// This side's disk failed in a way that concerns every file.
    #[error("local storage: {0}")]
    Store(Failure),
    /// This side was asked to stop.
    #[error("stopped by this side: {0}")]
    Cancelled(Abort),
}

/// What the peer did that the protocol forbids.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// A frame of an unknown type that may not be skipped.
    #[error("unknown frame type {0:#04x}")]
    UnknownFrame(u8),
    /// A frame longer than its type allows.
    #[error("{kind:?} frame of {length} bytes, allowed are {limit}")]
    Oversized {
        /// Which frame.
        kind: FrameKind,
        /// What its header announced, in bytes.
        length: u32,
        /// What is allowed, in bytes.
        limit: u32,
    },
    /// A frame whose fields make no sense.
    #[error("malformed {kind:?} frame: {reason}")]
    Malformed {
        /// Which frame.
        kind: FrameKind,
        /// What is wrong with it.
        reason: Malformed,
    },
    /// A frame that may not come now, or not from this side.
    #[error("{0:?} frame out of place")]
    OutOfPlace(FrameKind),
    /// An entry whose directory is not open, or that does not come after its elder sibling (this includes duplicates).
    #[error("entry out of order or sent twice: {0}")]
    EntryOrder(String),
    /// An entry that this side did not ask for.
    #[error("entry that was not asked for: {0}")]
    NotAskedFor(String),
    /// More data than the entry announced, or less.
    #[error("{path} was announced with {announced} bytes, {received} or more came")]
    Length {
        /// The file, escaped for printing.
        path: String,
        /// Bytes announced.
        announced: u64,
        /// Bytes received.
        received: u64,
    },
    /// More data than this side granted.
    #[error("more data than was granted")]
    CreditExceeded,
    /// The grants went back.
    #[error("a grant took back credit")]
    CreditWithdrawn,
    /// More entries or bytes than this side's limits allow.
    #[error("more {0} than this side's limits allow")]
    Limit(&'static str),
    /// An answer about an entry that was never sent or is answered already.
    #[error("answer about an entry that awaits none")]
    UnknownEntry,
    /// The peer confirmed another digest than that of the bytes sent.
    #[error("the peer confirmed another digest than that of the bytes sent for {0}")]
    WrongDigest(String),
    /// The counts at the end disagree with what was sent.
    #[error("the counts at the end of the session do not agree with what was sent")]
    Counts,
}

/// What is wrong with the fields of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Malformed {
    /// The body ends inside a field.
    #[error("too short")]
    Short,
    /// Bytes follow the last field.
    #[error("bytes after the last field")]
    Trailing,
    /// A field holds a value that it may not hold.
    #[error("invalid {0}")]
    Value(&'static str),
    /// A path that could leave the target directory or cannot be created.
    #[error("path refused: {0}")]
    Path(#[from] PathError),
}

impl Malformed {
    /// The violation that a frame of `kind` with this fault is.
    pub(crate) const fn in_frame(self, kind: FrameKind) -> Violation {
        Violation::Malformed { kind, reason: self }
    }
}

/// Why one side gave up a whole session.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct Abort {
    /// For programs.
    pub code: AbortCode,
    /// For people; safe to print, possibly empty.
    pub message: String,
}

/// The reason for an [`Abort`], as it travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AbortCode {
    /// Version not spoken; exit code 9.
    Version,
    /// The other side broke the protocol; exit code 9.
    Protocol,
    /// Not allowed here: read-only, outside the root; exit code 5.
    Refused,
    /// Too many sessions; come back later; exit code 1.
    Busy,
    /// Disk full or quota reached; exit code 7.
    NoSpace,
    /// Reading or writing failed for all files; exit code 7.
    Storage,
    /// Somebody stopped it; exit code 8 at the other side.
    Cancelled,
    /// What is asked for is not what listens there: files of a measuring station, or the reverse; exit code 9.
    WrongService,
    /// A code of a later version.
    Other(u16),
}

impl AbortCode {
    /// The number on the wire.
    pub const fn to_wire(self) -> u16 {
        match self {
            Self::Version => 1,
            Self::Protocol => 2,
            Self::Refused => 3,
            Self::Busy => 4,
            Self::NoSpace => 5,
            Self::Storage => 6,
            Self::Cancelled => 7,
            Self::WrongService => 8,
            Self::Other(code) => code,
        }
    }

    /// The code with this number.
    pub const fn from_wire(code: u16) -> Self {
        match code {
            1 => Self::Version,
            2 => Self::Protocol,
            3 => Self::Refused,
            4 => Self::Busy,
            5 => Self::NoSpace,
            6 => Self::Storage,
            7 => Self::Cancelled,
            8 => Self::WrongService,
            other => Self::Other(other),
        }
    }
}

impl std::fmt::Display for AbortCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Version => f.write_str("version not spoken"),
            Self::Protocol => f.write_str("protocol violation"),
            Self::Refused => f.write_str("refused"),
            Self::Busy => f.write_str("too many sessions"),
            Self::NoSpace => f.write_str("no space left"),
            Self::Storage => f.write_str("storage failed"),
            Self::Cancelled => f.write_str("stopped"),
            Self::WrongService => f.write_str("not what is served here"),
            Self::Other(code) => write!(f, "code {code}"),
        }
    }
}

impl SessionError {
    /// What the peer is told about it; `None` if it knows or cannot be told.
    pub(crate) fn abort(&self) -> Option<Abort> {
        let code = match self {
            Self::PeerAborted(_) | Self::PeerLeft => return None,
            Self::Cancelled(abort) => return Some(abort.clone()),
            Self::NotFarhaul | Self::PeerMisbehaved(_) => AbortCode::Protocol,
            Self::Version { .. } => AbortCode::Version,
            // The peer adds on which side it was.
            Self::Store(failure) if failure.code.is_out_of_space() => return Some(failed(AbortCode::NoSpace, failure)),
            Self::Store(failure) => return Some(failed(AbortCode::Storage, failure)),
        };
        Some(Abort { code, message: self.to_string() })
    }
}

fn failed(code: AbortCode, failure: &Failure) -> Abort {
    Abort { code, message: failure.to_string() }
}
