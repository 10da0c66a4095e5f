//! Copying files and trees: a [`FileSender`] on one side, a [`FileReceiver`] on the other.
//!
//! ```text
//! sender                                   receiver
//! OPEN (push) or ACCEPT                    OPEN (pull) or ACCEPT, with the first credit
//! ENTRY  DATA*  DIGEST    per file    →    checks, writes, hashes as it comes
//!                                     ←    GRANT      as the disk takes the bytes
//!                                     ←    VERIFIED   the file is safe under its name
//! ENTRY                   directory   →
//!                                     ←    MADE       mode and times are set, after its last entry
//! FAILED                              ↔    FAILED     this entry only; the others go on
//! SKIPPED                             →               never became an entry
//! END                                 →              with the sender's figures
//!                                     ←    DONE       every entry is answered; the receiver's figures
//! ABORT                               ↔    ABORT      the session is over
//! ```

mod recv;
mod send;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::error::{Malformed, Violation};
use crate::failure::Failure;
use crate::field::Fields;
use crate::framing::FrameKind;
use crate::integrity::Digest;
use crate::manifest::{Entry, EntryId, ShownPath};

pub use recv::{FileReceiver, ReceiveLimits};
pub use send::FileSender;

/// Above this many waiting events a session takes no more input and begins no more entries.
const MAX_EVENTS: usize = 4096;

/// What a file session tells its host.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileEvent {
    /// The accepting side serves the request. Only on the connecting side.
    Accepted,
    /// A file begins; its size may be unknown until it has ended.
    Started(Arc<Entry>),
    /// A file is under its final name on the receiving disk, with this digest; both sides know.
    Verified(Arc<Entry>, Digest),
    /// A directory is complete.
    Made(Arc<Entry>),
    /// A file or directory failed; the others go on.
    Failed {
        /// Which, for reports.
        path: ShownPath,
        /// Why.
        failure: Failure,
        /// Where it failed.
        by: Side,
    },
    /// Every entry is answered: verified, made or failed. The connecting side finishes the stream once everything
    /// pending is written; the accepting side writes what is pending and waits for the end of the stream.
    Done(Totals),
}

/// Which of the two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// This one.
    Here,
    /// The other.
    Peer,
}

/// What a session has done so far, as confirmed by the receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Files verified and in place.
    pub files: u64,
    /// Bytes of these files.
    pub bytes: u64,
    /// Directories complete.
    pub directories: u64,
    /// Entries that failed on either side, and what was skipped at the source.
    pub failed: u64,
}

/// How far a session is, for a progress display.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Entries begun.
    pub entries: u64,
    /// Bytes of DATA sent or received.
    pub bytes: u64,
    /// Bytes that the receiver's disk has taken, as far as this side knows.
    pub stored: u64,
    /// The file under way, its size ([`Entry::UNKNOWN_SIZE`] if nobody knows it yet) and the bytes of it sent or received.
    pub current: Option<(EntryId, u64, u64)>,
}

/// An answer or report about one entry: its number, then the rest.
fn entry_id(fields: &mut Fields<'_>) -> Result<EntryId, Malformed> {
    fields.u64().map(EntryId)
}

/// FAILED: number, code, message. The same in both directions.
fn put_failed(out: &mut Vec<u8>, id: EntryId, failure: &Failure) {
    out.extend_from_slice(&id.0.to_be_bytes());
    failure.encode(out);
}

fn decode_failed(body: &[u8]) -> Result<(EntryId, Failure), Violation> {
    let mut fields = Fields::new(body);
    (|| Ok((entry_id(&mut fields)?, Failure::decode(&mut fields)?)))()
        .map_err(|reason: Malformed| reason.in_frame(FrameKind::Failed))
}
