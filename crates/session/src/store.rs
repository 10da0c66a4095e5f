//! What file sessions need of a disk: a [`Source`] to read a tree from and a [`Store`] to build one in.
//!
//! Sessions call these traits and never touch files. Calls come from one thread, in an order that is given below; a
//! call may take as long as the disk does, in which case the host runs the session on a thread of its own, or the
//! implementation hands the work to a thread and says so by [`Source::read`]'s [`Chunk::Pending`],
//! [`Store::backlog`] and [`Commit::Pending`]. A store that waits in [`Store::settle`] works with hosts that know nothing of
//! this, as long as it holds few commits back.
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

/// Where a sender's files come from.
///
/// Implementations walk by directory handles, never leave the roots they were given, do not follow symbolic links
/// below them, and refuse devices, pipes and sockets ([`Next::Skipped`] with
/// [`SpecialFile`](crate::FailCode::SpecialFile)).
pub trait Source {
    /// The next entry; a file is opened under `id`, and its size and time come from the open handle.
    ///
    /// The order is part of the protocol: a directory comes before what is in it, everything in it comes before its
    /// next sibling, and siblings ascend by the bytes of their names, at the root as well. An entry out of this order
    /// is skipped with [`NameRefused`](crate::FailCode::NameRefused). `id` counts entries only and is given again
    /// after [`Next::Skipped`] and [`Next::Pending`].
    fn next_entry(&mut self, id: EntryId) -> Next;

    /// Reads bytes of the file `id` at `offset` into `out`, which is not empty.
    ///
    /// Offsets ascend without gaps, and no more than the entry's size is asked for. Short reads are fine. A file of
    /// [unknown size](Entry::UNKNOWN_SIZE) ends with [`Chunk::End`]; what was read until then is its size, which
    /// [`recheck`](Self::recheck) has to agree with. Sources announce that size for every file that may not end where the
    /// system says, for instance one of /proc.
    ///
    /// # Errors
    /// The file cannot be read; it fails, the session goes on.
    fn read(&mut self, id: EntryId, offset: u64, out: &mut [u8]) -> Result<Chunk, Failure>;

    /// Size and time of the file `id` now, from the open handle (and, better, of the file that now has its name). The size
    /// is that of what was read, and a source checks that nothing follows it.
    ///
    /// # Errors
    /// They cannot be told, or the source knows better than size and time that the file changed; the file fails.
    fn recheck(&mut self, id: EntryId) -> Result<Stamp, Failure>;

    /// The file `id` is not needed any more.
    fn close(&mut self, id: EntryId);

    /// What the peer is told about this side once everything is sent; the session fills in `bytes`. A host that
    /// measures wraps its source and answers here.
    fn figures(&mut self) -> Figures {
        Figures::default()
    }
}

/// What [`Source::next_entry`] gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// A file, now open, or a directory.
    Entry(Entry),
    /// Something that cannot be sent; the session reports it and asks again.
    Skipped(ShownPath, Failure),
    /// Not known yet; the host calls `poll_write` again when it is.
    Pending,
    /// There is nothing more.
    End,
}

/// What [`Source::read`] gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chunk {
    /// This many bytes, at least one.
    Data(usize),
    /// Not read yet; the host calls `poll_write` again when they are.
    Pending,
    /// The file ends here.
    End,
}

/// Where a receiver's files go to.
///
/// **What every implementation guarantees.** Nothing appears under a final name before
/// [`commit`](Store::commit), and then only whole: until then the bytes are in a file of the same directory that was
/// made exclusively under the name `.NAME.RANDOM.fhpart` (unpredictable, the name shortened where it would be too
/// long) with mode 0600. Directories are walked by handle, component by component, never through symbolic links.
/// Modes have the umask applied. What was under the final name before stays untouched until the commit replaces it. A
/// commit replaces a regular file or nothing. A link, device, pipe, socket or directory keeps its name, and the file fails
/// with [`Exists`](crate::FailCode::Exists).
pub trait Store {
    /// Makes a directory, or takes the one that stands there; accessible to its owner only until it is finished.
    ///
    /// # Errors
    /// It cannot be made; it and everything in it fails.
    fn make_dir(&mut self, id: EntryId, entry: &Entry) -> Result<(), Failure>;

    /// Makes the temporary file for `entry` and remembers it under `id`. Space may be reserved, within what is free. The
    /// size of a file that nobody knows yet is given as zero.
    ///
    /// # Errors
    /// It cannot be made; nothing is remembered.
    fn begin(&mut self, id: EntryId, entry: &Entry) -> Result<(), Failure>;

    /// Writes bytes of the file `id` at `offset`; offsets ascend without gaps. The slice is only lent: an
    /// implementation that writes later copies it and counts it in [`backlog`](Store::backlog).
    ///
    /// # Errors
    /// This or an earlier write failed. The session then calls [`abort`](Store::abort).
    fn write(&mut self, id: EntryId, offset: u64, bytes: &[u8]) -> Result<(), Failure>;

    /// The content is complete and its digest is right: write out what is left, synchronise the file, set mode and
    /// time on its handle, rename it to its final name, synchronise the directory. Whatever happens, `id` is forgotten.
    ///
    /// # Errors
    /// One of these steps failed; the final name is as it was before, or holds the whole new file.
    fn commit(&mut self, id: EntryId, entry: &Entry, digest: &Digest) -> Result<Commit, Failure>;

    /// All entries of a directory came: set its mode and time. An implementation that commits later does this after
    /// the commits of the files in it, since these change its time.
    ///
    /// # Errors
    /// One of these steps failed.
    fn finish_dir(&mut self, id: EntryId, entry: &Entry) -> Result<Commit, Failure>;

    /// The file `id` will not be completed; it is forgotten, its final name stays as it was.
    fn abort(&mut self, id: EntryId, leftover: Leftover);

    /// Bytes that were accepted but are not written yet. The receiver grants that much less.
    fn backlog(&self) -> u64 {
        0
    }

    /// Everything came, or nothing more will; the session ends when the commits under way are done. An implementation may wait for them here, or
    /// return at once if its host calls [`FileReceiver::handle_store`](crate::FileReceiver::handle_store) after progress.
    fn settle(&mut self) {}

    /// The result of a [`Commit::Pending`], or a late failure of the file that is being written. The receiver asks with
    /// whatever it receives, after [`settle`](Store::settle), and when the host calls
    /// [`FileReceiver::handle_store`](crate::FileReceiver::handle_store) after progress in the background.
    fn poll_committed(&mut self) -> Option<(EntryId, Result<(), Failure>)> {
        None
    }

    /// What the peer is told about this side once every entry is answered; the session fills in `bytes`. A host that
    /// measures wraps its store and answers here.
    fn figures(&mut self) -> Figures {
        Figures::default()
    }
}

/// Whether a commit is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Commit {
    /// It is: the file will survive a crash under its final name.
    Done,
    /// It is under way; [`Store::poll_committed`] will tell.
    Pending,
}

/// What is to become of an incomplete file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leftover {
    /// Keep it under its temporary name: it is a right beginning.
    Keep,
    /// Remove it: its content is wrong or of no single moment.
    Remove,
}
