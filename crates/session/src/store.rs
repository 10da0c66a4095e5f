//! The interface of file sessions to a disk: a [`Source`] to read a tree, and a [`Store`] to build one.
//!
//! Sessions call these traits and never use files. Calls come from one thread, in the order of the tables below. A call
//! may take as long as the disk. Then the driver runs the session on its own thread. Or the implementation uses a
//! thread and reports it by [`Source::read`]'s [`Chunk::Pending`], [`Store::backlog`], [`Store::poll_known`] and
//! [`Commit::Pending`].
//!
//! A store that waits in [`Store::finish_commits`] works with drivers that ignore this, as long as it delays few commits.
//!
//! | a sender calls | for each |
//! | --- | --- |
//! | [`restrict`](Source::restrict) | list of names of a pull |
//! | [`next_entry`](Source::next_entry) | entry, depth first, siblings ascending by bytes |
//! | [`open`](Source::open), [`read`](Source::read)\*, [`recheck`](Source::recheck)?, [`close`](Source::close) | file whose content the receiver wants, one at a time, in any order of files and offsets; perhaps again |
//! | [`forget`](Source::forget) | file, once the receiver has answered it for the last time |
//!
//! | a receiver calls | for each |
//! | --- | --- |
//! | [`examine`](Store::examine) | file |
//! | [`begin`](Store::begin), [`write`](Store::write)\*, [`zeros`](Store::zeros)\*, [`keep`](Store::keep)\*, [`chunk`](Store::chunk)\*, then [`commit`](Store::commit) or [`abort`](Store::abort) | file whose content comes; chunks in any order |
//! | [`make_dir`](Store::make_dir), its entries, [`finish_dir`](Store::finish_dir) | directory; not finished if the session breaks off |
//! | [`make_symlink`](Store::make_symlink), [`make_hard_link`](Store::make_hard_link) | link |

#[cfg(any(test, feature = "testing"))]
mod memory;

use std::ops::Range;

use crate::failure::{FailCode, Failure};
use crate::field::{Fields, Malformed, numbered};
use crate::figures::Figures;
use crate::integrity::{ChunkDigest, Digest};
use crate::manifest::{Entry, EntryId, ShownPath, Stamp};
use crate::name_list::NameList;
use crate::path_rules::RelPath;
use crate::scratch::Scratch;

#[cfg(any(test, feature = "testing"))]
pub use memory::{MemoryFile, MemorySource, MemoryStore};

/// What a copy changes of an entry at the target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Change {
    /// Nothing.
    #[default]
    None = 0,
    /// Mode, times, owner or attributes.
    Properties = 1,
    /// The content, or the target of a link.
    Content = 2,
    /// It did not exist.
    New = 3,
}

impl Change {
    /// Whether the target has the content.
    pub(crate) const fn keeps_content(self) -> bool {
        matches!(self, Self::None | Self::Properties)
    }

    /// The same change with one of the content.
    pub(crate) const fn with_content(self) -> Self {
        if self.keeps_content() { Self::Content } else { self }
    }

    pub(crate) fn decode(fields: &mut Fields<'_>) -> Result<Self, Malformed> {
        numbered(&[Self::None, Self::Properties, Self::Content, Self::New], fields.u8()?, "kind of change")
    }
}

/// The files of a sender.
///
/// Implementations walk by directory handles, never leave their roots, and do not follow symbolic links below them.
/// They refuse devices, pipes and sockets ([`Next::Skipped`] with [`SpecialFile`](FailCode::SpecialFile)).
pub trait Source {
    /// Restricts a source for a pull by names to these. It comes once, before the first entry, and only if the request has names.
    /// Such a source has nothing to send before.
    fn restrict(&mut self, _names: NameList) {}

    /// The next entry, which gets the number `id`. Nothing is opened for it yet.
    ///
    /// The order is part of the protocol. A directory comes before its entries, and all of them before its next
    /// sibling. Siblings ascend by the bytes of their names, at the root too. An entry out of order is skipped with
    /// [`NameRefused`](FailCode::NameRefused).
    ///
    /// `id` counts only entries. It is repeated after [`Next::Skipped`] and [`Next::Pending`].
    fn next_entry(&mut self, id: EntryId) -> Next;

    /// Opens the file `id`. Its size and time come from the open handle. A source may be asked to open a file again,
    /// until it is forgotten.
    ///
    /// # Errors
    /// It cannot be opened, or is no regular file any more. It fails, and the session continues.
    fn open(&mut self, id: EntryId) -> Result<Stamp, Failure>;

    /// Reads bytes of the open file `id` at `offset` into `out`, which is not empty.
    ///
    /// Reads stay within the size that [`open`](Self::open) gave. Short reads are permitted. A file of
    /// [unknown size](Entry::UNKNOWN_SIZE) is read once, at ascending offsets without gaps, and ends with
    /// [`Chunk::End`]. Its size is then the number of bytes read, which [`recheck`](Self::recheck) must confirm. Sources
    /// announce that size for every file that may not end where the system says, for instance a file in /proc.
    ///
    /// # Errors
    /// The file cannot be read. It fails, and the session continues.
    fn read(&mut self, id: EntryId, offset: u64, out: &mut [u8]) -> Result<Chunk, Failure>;

    /// As [`read`](Self::read), for bytes that are compared with those of the receiver and probably not sent.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    fn read_known(&mut self, id: EntryId, offset: u64, out: &mut [u8]) -> Result<Chunk, Failure> {
        self.read(id, offset, out)
    }

    /// Present size and time of the open file `id`, from the handle, and preferably also of the file with its name. The
    /// size is the number of bytes read if that was unknown before. A source checks that no more follow.
    ///
    /// # Errors
    /// They are unavailable, or the source knows in another way that the file changed. The file is read again.
    fn recheck(&mut self, id: EntryId) -> Result<Stamp, Failure>;

    /// Closes the file `id`.
    fn close(&mut self, id: EntryId);

    /// The entry `id` has its last answer. It will not be opened again.
    fn forget(&mut self, _id: EntryId) {}

    /// Figures of this side for the peer, once everything is sent. The session fills in `bytes`. A driver that measures
    /// wraps its source to supply them.
    fn figures(&mut self) -> Figures {
        Figures::default()
    }
}

/// The result of [`Source::next_entry`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// An entry.
    Entry(Entry),
    /// An item that cannot be sent. The session reports it and asks for the next.
    Skipped(ShownPath, Failure),
    /// An item that the copy leaves out, which is no failure.
    LeftOut(ShownPath, Failure),
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
    /// A hole of so many bytes, at least one. It may be longer than the buffer. Nothing was put there.
    Zeros(u64),
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
/// umask applied, unless the copy keeps permissions. Otherwise an existing directory keeps its mode, and an earlier file with
/// the final name stays unchanged until the commit replaces it, and then hands its permissions on.
///
/// A commit replaces only a regular file, or nothing. A link, device, pipe, socket or directory keeps its name, and the
/// file fails with [`Exists`](FailCode::Exists).
pub trait Store {
    /// Makes a directory, or takes the one that stands there; a new one is accessible to its owner only until it is finished or
    /// the session breaks off.
    ///
    /// # Errors
    /// It cannot be created. The directory and everything in it fail.
    fn make_dir(&mut self, id: EntryId, entry: &Entry) -> Result<Made, Failure>;

    /// Decides whether the content of a file is wanted. Nothing is created yet.
    ///
    /// # Errors
    /// The file cannot be taken: something else has its name, it is too large for the free space, or its name is refused.
    fn examine(&mut self, _id: EntryId, _entry: &Entry) -> Result<Verdict, Failure> {
        Ok(Verdict::Want(Change::New, Vec::new()))
    }

    /// Whether no further file can be compared for now. Then the session examines it later, once fewer of those that
    /// [`examine`](Self::examine) wanted are under way.
    fn compares_enough(&self) -> bool {
        false
    }

    /// The digest of a chunk that [`examine`](Self::examine) claimed to be known, in any order.
    fn poll_known(&mut self) -> Option<(EntryId, KnownChunk)> {
        None
    }

    /// Whether claimed chunks are being read. Then the driver calls [`FileReceiver::handle_store`](crate::FileReceiver::handle_store)
    /// now and then, also without input.
    fn has_unknown(&self) -> bool {
        false
    }

    /// Opens the temporary file for `entry` under `id`: a new one, or that of a broken copy with its known chunks. Space may
    /// be reserved, within the free space and not far ahead of the bytes, since the size is a claim of the peer. An unknown
    /// size is passed as zero.
    ///
    /// Called again for an open file whose source changed: `entry` has its new size and time, and chunks come again.
    ///
    /// # Errors
    /// It cannot be created. `id` stays unused.
    fn begin(&mut self, id: EntryId, entry: &Entry) -> Result<(), Failure>;

    /// Writes bytes of the file `id` at `offset`. Within a chunk, offsets ascend without gaps. The slice is borrowed: an
    /// implementation that writes later copies it and counts it in [`backlog`](Store::backlog).
    ///
    /// # Errors
    /// This or an earlier write failed. The session then calls [`abort`](Store::abort).
    fn write(&mut self, id: EntryId, offset: u64, bytes: &[u8]) -> Result<(), Failure>;

    /// Writes so many zeros at `offset`, best as a hole.
    ///
    /// # Errors
    /// As [`write`](Store::write).
    fn zeros(&mut self, id: EntryId, offset: u64, count: u64) -> Result<(), Failure>;

    /// Takes over a known chunk, whose bytes the sender has compared.
    ///
    /// # Errors
    /// As [`write`](Store::write).
    fn keep(&mut self, _id: EntryId, _index: u64) -> Result<(), Failure> {
        Ok(())
    }

    /// A chunk is complete, and its bytes are those that the sender read. A store may note it for a later copy.
    fn chunk(&mut self, _id: EntryId, _index: u64, _digest: &ChunkDigest) {}

    /// Whether bytes that were written can be written again. If not, a damaged file fails.
    fn can_repair(&self) -> bool {
        true
    }

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

    /// Makes a symbolic link, or replaces one that leads elsewhere.
    ///
    /// # Errors
    /// It cannot be made, or something else has its name.
    fn make_symlink(&mut self, _id: EntryId, _entry: &Entry) -> Result<(Change, Commit), Failure> {
        Err(FailCode::SpecialFile.into())
    }

    /// Makes `entry` a further name of the file at `first`, which has its final name.
    ///
    /// # Errors
    /// It cannot be made, or something else than a file has its name.
    fn make_hard_link(&mut self, _id: EntryId, _entry: &Entry, _first: &RelPath) -> Result<(Change, Commit), Failure> {
        Err(FailCode::SpecialFile.into())
    }

    /// A file for what the session cannot keep in memory.
    ///
    /// # Errors
    /// There is no place for one.
    fn scratch(&mut self) -> Result<Box<dyn Scratch>, Failure> {
        Err(Failure::new(FailCode::NoSpace, "there is no place for a scratch file"))
    }

    /// Gives up the file `id`, which was begun. It is forgotten, and its final name is unchanged.
    fn abort(&mut self, id: EntryId, leftover: Leftover);

    /// The file `id`, which was examined and not begun, will not come.
    fn forget(&mut self, _id: EntryId) {}

    /// Removes entries of the target that the source lacks, as the rules say, once everything else has arrived. Returns one of
    /// them each time, until there are none.
    ///
    /// # Errors
    /// It cannot be removed.
    fn delete_next(&mut self) -> Option<(ShownPath, Result<(), Failure>)> {
        None
    }

    /// Bytes accepted but not written yet. The receiver grants that many fewer.
    fn backlog(&self) -> u64 {
        0
    }

    /// Everything came, or nothing more will; the session ends when the commits under way are done. New directories that
    /// are not finished get their modes, with all rights for their owner; their times stay. An implementation may wait for
    /// the commits here. It may also return at once if its host calls
    /// [`FileReceiver::handle_store`](crate::FileReceiver::handle_store) after progress.
    fn finish_commits(&mut self) {}

    /// The result of a [`Commit::Pending`], or a late failure of a file that was begun.
    ///
    /// The receiver polls with each input, after [`finish_commits`](Store::finish_commits), and when the driver calls
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

/// The result of [`Store::examine`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The content is wanted, for this change of the target, but for the chunks that are claimed to be known. If all of them are, and
    /// the change is none of the content, nothing is written: the commit gives the file its properties.
    /// [`Store::poll_known`] gives the digest of each of them. The ranges ascend and lie within the size.
    Want(Change, Vec<Range<u64>>),
    /// The target has the content. Its other properties may have changed, and are right now.
    Have(Change),
}

/// A chunk that was claimed to be known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownChunk {
    /// Its index.
    pub index: u64,
    /// Its digest; `None` if the bytes are not there or not those that were noted. With it, the digest of a file that
    /// consists of this chunk alone, which matters for the first one.
    pub digest: Option<(ChunkDigest, Digest)>,
}

impl KnownChunk {
    /// The chunk `index` with these bytes.
    pub fn of(index: u64, bytes: &[u8]) -> Self {
        Self { index, digest: Some((ChunkDigest::of(index, bytes), Digest::of(if index == 0 { bytes } else { b"" }))) }
    }

    /// The chunk `index`, which is not there.
    pub const fn missing(index: u64) -> Self {
        Self { index, digest: None }
    }
}

/// The result of [`Store::make_dir`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Made {
    /// It is new.
    New,
    /// It was there.
    Existing,
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
