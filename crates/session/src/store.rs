//! The interface of file sessions to a disk: a [`Source`] to read a tree, and a [`Store`] to build one.
//!
//! Sessions call these traits and never use files. Calls come from one thread, in the order of the tables below. A call
//! may take as long as the disk. Then the driver runs the session on its own thread. Or the implementation uses a
//! thread and reports it by [`Source::read`]'s [`Chunk::Pending`], [`Store::backlog`] and [`Commit::Pending`].
//!
//! A store that waits in [`Store::settle`] works with drivers that ignore this, as long as it delays few commits.
//!
//! | a sender calls | for each |
//! | --- | --- |
//! | [`next_entry`](Source::next_entry) | entry, depth first, siblings ascending by bytes |
//! | [`read`](Source::read)\*, [`recheck`](Source::recheck)?, [`close`](Source::close) | file; the next entry only after `close` |
//!
//! | a receiver calls | for each |
//! | --- | --- |
//! | [`begin`](Store::begin), [`write`](Store::write)\*, then [`commit`](Store::commit) or [`abort`](Store::abort) | file; the next entry only after that |
//! | [`make_dir`](Store::make_dir), its entries, [`finish_dir`](Store::finish_dir) | directory; not finished if the session breaks off |

mod memory;

use crate::failure::Failure;
use crate::figures::Figures;
use crate::integrity::Digest;
use crate::manifest::{Entry, EntryId, ShownPath, Stamp};

pub use memory::{MemoryFile, MemorySource, MemoryStore};

/// The files of a sender.
///
/// Implementations walk by directory handles, never leave their roots, and do not follow symbolic links below them.
/// They refuse devices, pipes and sockets ([`Next::Skipped`] with [`SpecialFile`](crate::FailCode::SpecialFile)).
pub trait Source {
    /// The next entry. A file is opened under `id`. Its size and time come from the open handle.
    ///
    /// The order is part of the protocol. A directory comes before its entries, and all of them before its next
    /// sibling. Siblings ascend by the bytes of their names, at the root too. An entry out of order is skipped with
    /// [`NameRefused`](crate::FailCode::NameRefused).
    ///
    /// `id` counts only entries. It is repeated after [`Next::Skipped`] and [`Next::Pending`].
    fn next_entry(&mut self, id: EntryId) -> Next;

    /// Reads bytes of the file `id` at `offset` into `out`, which is not empty.
    ///
    /// Offsets ascend without gaps, and reads stay within the entry's size. Short reads are permitted. A file of
    /// [unknown size](Entry::UNKNOWN_SIZE) ends with [`Chunk::End`]. Its size is then the number of bytes read, which
    /// [`recheck`](Self::recheck) must confirm. Sources announce that size for every file that may not end where the
    /// system says, for instance a file in /proc.
    ///
    /// # Errors
    /// The file cannot be read. It fails, and the session continues.
    fn read(&mut self, id: EntryId, offset: u64, out: &mut [u8]) -> Result<Chunk, Failure>;

    /// Present size and time of the file `id`, from the open handle, and preferably also of the file with its name. The
    /// size is the number of bytes read. A source checks that no more follow.
    ///
    /// # Errors
    /// They are unavailable, or the source knows in another way that the file changed. The file fails.
    fn recheck(&mut self, id: EntryId) -> Result<Stamp, Failure>;

    /// Closes the file `id`.
    fn close(&mut self, id: EntryId);

    /// Figures of this side for the peer, once everything is sent. The session fills in `bytes`. A driver that measures
    /// wraps its source to supply them.
    fn figures(&mut self) -> Figures {
        Figures::default()
    }
}

/// The result of [`Source::next_entry`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// A file, now open, or a directory.
    Entry(Entry),
    /// An item that cannot be sent. The session reports it and asks for the next.
    Skipped(ShownPath, Failure),
    /// Not known yet. The driver calls `poll_write` again when it is.
    Pending,
    /// No more entries.
    End,
}

/// The result of [`Source::read`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chunk {
    /// This many bytes, at least one.
    Data(usize),
    /// Not read yet. The driver calls `poll_write` again when they are.
    Pending,
    /// The file ends here.
    End,
}

/// The files of a receiver.
///
/// **Guarantees of every implementation.** No file has its final name before [`commit`](Store::commit), and then only a
/// whole one. Before, the bytes are in a temporary file in the same directory, created exclusively with mode 0600. Its
/// name is `.NAME.RANDOM.fhpart`, unpredictable, and shortened if too long.
///
/// Directories are walked by handle, one component at a time, never through symbolic links. Modes of new entries have the
/// umask applied. An existing directory keeps its mode. An earlier file with the final name stays unchanged until the
/// commit replaces it, and then hands its permissions on.
///
/// A commit replaces only a regular file, or nothing. A link, device, pipe, socket or directory keeps its name, and the
/// file fails with [`Exists`](crate::FailCode::Exists).
pub trait Store {
    /// Makes a directory, or takes the one that stands there; accessible to its owner only until it is finished or the
    /// session breaks off.
    ///
    /// # Errors
    /// It cannot be created. The directory and everything in it fail.
    fn make_dir(&mut self, id: EntryId, entry: &Entry) -> Result<(), Failure>;

    /// Creates the temporary file for `entry` under `id`. Space may be reserved, within the free space and not far ahead of
    /// the bytes, since the size is a claim of the peer. An unknown size is passed as zero.
    ///
    /// # Errors
    /// It cannot be created. `id` stays unused.
    fn begin(&mut self, id: EntryId, entry: &Entry) -> Result<(), Failure>;

    /// Writes bytes of the file `id` at `offset`. Offsets ascend without gaps. The slice is borrowed: an implementation
    /// that writes later copies it and counts it in [`backlog`](Store::backlog).
    ///
    /// # Errors
    /// This or an earlier write failed. The session then calls [`abort`](Store::abort).
    fn write(&mut self, id: EntryId, offset: u64, bytes: &[u8]) -> Result<(), Failure>;

    /// Commits a file with complete content and correct digest. In any case `id` is forgotten. The steps are:
    ///
    /// 1. Write the remaining data and synchronise the file.
    /// 2. Set mode and time on its handle.
    /// 3. Rename it to its final name and synchronise the directory.
    ///
    /// # Errors
    /// One of these steps failed. The final name is unchanged, or has the whole new file.
    fn commit(&mut self, id: EntryId, entry: &Entry, digest: &Digest) -> Result<Commit, Failure>;

    /// Sets the time of a directory after its last entry, and the mode of one that did not exist before. An implementation
    /// that commits later does this after the commits of its files, because they change its time.
    ///
    /// # Errors
    /// One of these steps failed.
    fn finish_dir(&mut self, id: EntryId, entry: &Entry) -> Result<Commit, Failure>;

    /// Gives up the file `id`. It is forgotten, and its final name is unchanged.
    fn abort(&mut self, id: EntryId, leftover: Leftover);

    /// Bytes accepted but not written yet. The receiver grants that many fewer.
    fn backlog(&self) -> u64 {
        0
    }

    /// Everything came, or nothing more will; the session ends when the commits under way are done. New directories that
    /// are not finished get their modes, with all rights for their owner; their times stay. An implementation may wait for
    /// the commits here. It may also return at once if its host calls
    /// [`FileReceiver::handle_store`](crate::FileReceiver::handle_store) after progress.
    fn settle(&mut self) {}

    /// The result of a [`Commit::Pending`], or a late failure of the file in progress.
    ///
    /// The receiver polls with each input, after [`settle`](Store::settle), and when the driver calls
    /// [`FileReceiver::handle_store`](crate::FileReceiver::handle_store) after progress in the background.
    fn poll_committed(&mut self) -> Option<(EntryId, Result<(), Failure>)> {
        None
    }

    /// Every entry has its answer, or none will come any more. Nothing follows for this session. If the ending is
    /// [`Lacking`](Ending::Lacking), a target directory that the store made and that is still empty is removed.
    fn conclude(&mut self, _ending: Ending) {}

    /// Figures of this side for the peer, once every entry has its answer. The session fills in `bytes`. A driver that
    /// measures wraps its store to supply them.
    fn figures(&mut self) -> Figures {
        Figures::default()
    }
}

/// The state of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Commit {
    /// Done. The file survives a crash under its final name.
    Done,
    /// In progress. [`Store::poll_committed`] will report the result.
    Pending,
}

/// How a session ended, for its store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Everything arrived.
    Whole,
    /// An entry failed, was skipped or refused, or the session broke off.
    Lacking,
}

/// The treatment of an incomplete file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leftover {
    /// Keep it under its temporary name, because its content is a correct prefix. Without any content, it is removed.
    Keep,
    /// Remove it, because its content is wrong or mixes two states of the source.
    Remove,
}
