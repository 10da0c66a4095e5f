//! Copies of files and trees: a [`FileSender`] on one side, a [`FileReceiver`] on the other.
//!
//! ```text
//! sender                                   receiver
//! OPEN (push) or ACCEPT                    OPEN (pull) or ACCEPT, with the first credit
//! ENTRY  DATA*  DIGEST    per file    →    checks, writes and hashes the data on arrival
//!                                     ←    GRANT      as the disk takes the bytes
//!                                     ←    VERIFIED   the file is safe under its name
//! ENTRY                   directory   →
//!                                     ←    MADE       mode and times are set, after its last entry
//! FAILED                              ↔    FAILED     this entry only; the others continue
//! SKIPPED                             →               cannot be sent
//! END                                 →               with the sender's figures
//!                                     ←    DONE       every entry is answered; the receiver's figures
//! ABORT                               ↔    ABORT      the session is over
//! ```

mod recv;
mod send;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::error::Violation;
use crate::failure::Failure;
use crate::field::{Fields, Malformed};
use crate::frame_kind::FrameKind;
use crate::integrity::Digest;
use crate::manifest::{Entry, EntryId, ShownPath};

pub use recv::{FileReceiver, ReceiveLimits};
pub use send::FileSender;

/// With this many waiting events, a session takes no more input and starts no more entries.
const MAX_EVENTS: usize = 4096;

/// Events of a file session for its driver.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileEvent {
    /// The accepting side serves the request. Reported only on the connecting side.
    Accepted,
    /// A file starts. Its size may be unknown until it has ended.
    Started(Arc<Entry>),
    /// A file has its final name on the receiving disk, with this digest. Both sides know.
    Verified(Arc<Entry>, Digest),
    /// A directory is complete.
    Made(Arc<Entry>),
    /// A file or directory failed. The others continue.
    Failed {
        /// Its path, for reports.
        path: ShownPath,
        /// The reason.
        failure: Failure,
        /// The side that failed.
        by: Side,
    },
    /// Every entry has its answer: verified, made or failed. The connecting side finishes the stream once everything
    /// pending is written. The accepting side writes its pending bytes and waits for the end of the stream.
    Done(Totals),
}

/// One of the two sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// This side.
    Here,
    /// The other side.
    Peer,
}

/// The results of a session so far, as confirmed by the receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Files verified under their final names.
    pub files: u64,
    /// Bytes of these files.
    pub bytes: u64,
    /// Complete directories.
    pub directories: u64,
    /// Entries that failed on either side, and those skipped at the source.
    pub failed: u64,
}

/// The progress of a session, for display.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Entries started.
    pub entries: u64,
    /// Bytes of DATA sent or received.
    pub bytes: u64,
    /// Bytes that the receiver's disk has taken, as known to this side.
    pub stored: u64,
    /// The file in progress, its size ([`Entry::UNKNOWN_SIZE`] if unknown), and its bytes sent or received.
    pub current: Option<(EntryId, u64, u64)>,
}

/// The entry's number at the start of an answer or report.
fn entry_id(fields: &mut Fields<'_>) -> Result<EntryId, Malformed> {
    fields.u64().map(EntryId)
}

/// Encodes FAILED: number, code, message. The same in both directions.
fn put_failed(out: &mut Vec<u8>, id: EntryId, failure: &Failure) {
    out.extend_from_slice(&id.0.to_be_bytes());
    failure.encode(out);
}

fn decode_failed(body: &[u8]) -> Result<(EntryId, Failure), Violation> {
    let mut fields = Fields::new(body);
    (|| Ok((entry_id(&mut fields)?, Failure::decode(&mut fields)?)))()
        .map_err(|reason: Malformed| reason.in_frame(FrameKind::Failed))
}
