//! Copies of files and trees: a [`FileSender`] on one side, a [`FileReceiver`] on the other.
//!
//! ```text
//! sender                                   receiver
//! OPEN (push) or ACCEPT                    OPEN (pull) or ACCEPT, with the first credit
//!                                     ←    NAMES      that a pull is restricted to, if it is
//! ENTRY                   per entry   →    examines the target
//!                                     ←    WANT       the content, but for chunks that an earlier copy left
//!                                     ←    KNOWN      the digest of each of those chunks
//!                                     ←    HAVE       it is there already
//! EXPECTED                            →    the files and bytes of all entries, behind the last one
//! CONTENT                 per file    →    that is wanted, in the order of the entries
//!   DATA* ZEROS* CHUNK    per chunk   →    1 MiB each, in any order; checks, writes and hashes on arrival
//!   KEEP                              →    a known chunk whose bytes are right
//! DIGEST                              →    of the whole file
//!                                     ←    GRANT      as the disk takes the bytes
//!                                     ←    VERIFIED   the file is safe under its name
//!                                     ←    AGAIN      these chunks arrived damaged; CONTENT once more
//!                                     ←    MADE       a directory after its last entry, or a link
//! FAILED                              ↔    FAILED     this entry only; the others continue
//! SKIPPED                             →               cannot be sent, or is left out
//! END                                 →               with the sender's figures
//!                                     ←    DELETED    an entry that the source lacks
//!                                     ←    DONE       every entry is answered; the receiver's figures
//! ABORT                               ↔    ABORT      the session is over
//! ```
//!
//! Entries run ahead of content, so no file costs a round trip. The sender may send content before the first answer, within
//! the first MiB: small copies take no longer for the question.
//!
//! **Known chunks.** A receiver claims chunks that a broken copy left, and sends the digest of each once it has read it. The
//! sender reads its own chunk, compares, and answers KEEP or sends the bytes. So neither a lying journal nor a changed source
//! can mix two files. The digest of the whole confirms it.
//!
//! **Files that the target has.** A WANT for no change of the content is a question: the target has a file of this size, of which all
//! chunks are known. If all are kept, nothing is written, and the file counts as kept. In a dry run the sender ends the file at the first
//! chunk that differs, by FAILED with [`Differs`](crate::FailCode::Differs).
//!
//! **Changes.** The sender looks at the file before and after it reads it. If it changed, the content comes again: chunks that
//! are the same are kept. After three attempts the file fails.

mod recv;
mod send;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::error::Violation;
use crate::failure::Failure;
use crate::field::{Fields, Malformed};
use crate::frame_kind::FrameKind;
use crate::framing::HEADER_LEN;
use crate::integrity::Digest;
use crate::manifest::{Entry, EntryId, ShownPath};
use crate::sender_request::Unable;
use crate::store::Change;

pub use recv::{FileReceiver, ReceiveLimits};
pub use send::FileSender;

/// The frame that tells a sender that the disk of this side is full, and that the copy waits for space. A store writes it that waits
/// in its calls, instead of the session, which waits for the store: between two inputs of the session, once all of its output is
/// written.
pub const WAITS_FOR_SPACE: [u8; HEADER_LEN] = [FrameKind::WaitsForSpace as u8, 0, 0, 0, 0];
/// With this many waiting events, a session takes no more input and starts no more entries.
const MAX_EVENTS: usize = 4096;
/// Most entries without their last answer, apart from open directories. Each costs some 300 bytes on both sides. An entry is
/// pending for two or three round trips, so this permits 50 000 files per second at an RTT of 100 ms.
const MAX_PENDING: usize = 16_384;
/// Most memory of these entries: 2 KiB each, for deep paths. Those with long attributes are fewer.
const MAX_PENDING_WEIGHT: usize = 32 << 20;
/// Bytes that a session hashes without input or output of their size: holes, and chunks that are compared. With more, it returns to
/// its driver, which may cancel it. It takes some 50 ms.
const MAX_WORK: u64 = 64 << 20;
/// Attempts to send a file that changes while it is read, or that arrives damaged.
const MAX_ATTEMPTS: u8 = 3;

/// Events of a file session for its driver.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileEvent {
    /// The accepting side serves the request. Reported only on the connecting side.
    Accepted,
    /// The sender cannot do all that this side asked for in its opening frame.
    Unable(Unable),
    /// The disk of the receiver is full, and it waits for space. Told to the sender.
    WaitsForSpace,
    /// What the copy has to move: the sender has listed everything. Missing if a file has an unknown size, and from older senders.
    Expected {
        /// Files, those that the target has included.
        files: u64,
        /// Their bytes.
        bytes: u64,
    },
    /// The content of a file starts. Its size may be unknown until it has ended.
    Started(Arc<Entry>),
    /// A file has its final name on the receiving disk, with this digest. Both sides know. Without a change of the content, the target
    /// had it, and both sides have compared all of it.
    Verified(Arc<Entry>, Digest, Change),
    /// The target had this file.
    Kept(Arc<Entry>, Change),
    /// A directory is complete, or a link is made.
    Made(Arc<Entry>, Change),
    /// An entry of the target that the source lacks was removed.
    Deleted(ShownPath),
    /// Chunks of a file arrived damaged, and come again.
    Repaired {
        /// The file.
        entry: Arc<Entry>,
        /// Number of damaged chunks.
        chunks: u64,
    },
    /// An item of the source that no copy can have, for instance a device, is left out.
    LeftOut(ShownPath, Failure),
    /// An entry failed. The others continue.
    Failed {
        /// Its path, for reports.
        path: ShownPath,
        /// The reason.
        failure: Failure,
        /// The side that failed.
        by: Side,
    },
    /// Every entry has its answer: verified, kept, made or failed. The connecting side finishes the stream once everything
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
    /// Files that the target had already.
    pub kept: u64,
    /// Bytes of these files.
    pub kept_bytes: u64,
    /// Complete directories.
    pub directories: u64,
    /// Symbolic and hard links.
    pub links: u64,
    /// Entries of the target that were removed.
    pub deleted: u64,
    /// Items of the source that were left out, because no copy can have them.
    pub left_out: u64,
    /// Entries that failed on either side, and those skipped at the source.
    pub failed: u64,
}

impl Totals {
    /// The target had this file.
    fn keep(&mut self, entry: &Entry) {
        self.kept += 1;
        let size = if entry.has_size() { entry.size } else { 0 };
        self.kept_bytes = self.kept_bytes.saturating_add(size);
    }

    /// This file is verified: it was placed, or the target turned out to have it.
    fn verify(&mut self, entry: &Entry, change: Change) {
        if change.keeps_content() {
            return self.keep(entry);
        }
        self.files += 1;
        self.bytes = self.bytes.saturating_add(entry.size);
    }
}

/// The progress of a session, for display.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Entries announced.
    pub entries: u64,
    /// Bytes of DATA sent or received.
    pub bytes: u64,
    /// Bytes of content that were not sent: those of known chunks, and of holes.
    pub spared: u64,
    /// Bytes that the receiver's disk has taken, as known to this side.
    pub stored: u64,
    /// The file in progress, its size ([`Entry::UNKNOWN_SIZE`] if unknown), and its bytes done.
    pub current: Option<(EntryId, u64, u64)>,
}

/// The entry's number at the start of an answer or report.
fn entry_id(fields: &mut Fields<'_>) -> Result<EntryId, Malformed> {
    fields.u64().map(EntryId)
}

/// Entries without their last answer, apart from open directories: how many, and their memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Unanswered {
    count: usize,
    weight: usize,
}

impl Unanswered {
    fn add(&mut self, weight: usize) {
        (self.count, self.weight) = (self.count + 1, self.weight + weight);
    }

    fn remove(&mut self, weight: usize) {
        (self.count, self.weight) = (self.count.saturating_sub(1), self.weight.saturating_sub(weight));
    }

    /// Whether they are as many as a sender lets wait, so many times.
    const fn is_beyond(self, times: usize) -> bool {
        self.count >= times * MAX_PENDING || self.weight >= times * MAX_PENDING_WEIGHT
    }
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
