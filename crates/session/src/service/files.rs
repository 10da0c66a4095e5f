//! The interface of a server of the file service to its disk.

use crate::failure::Failure;
use crate::integrity::Digest;
use crate::path_rules::RelPath;

use super::answer::{FileVersion, ListPage, Written};
use super::entry::FileInfo;
use super::request::{MakeDirectory, Move, Put, Remove};
use super::service_path::ServicePath;

/// The files of a server.
///
/// **Guarantees of every implementation.** A client reaches nothing outside of its root, and only what its rights permit. A file has its
/// final name once it is whole, and then it survives a crash. An entry that must not be replaced is not, even if it appears at
/// the last moment. Temporary files are on no list.
///
/// Each call takes a short time: what takes long is divided into steps.
pub trait Files {
    /// A file that is being read. Its drop closes it.
    type Reading;
    /// A file that is being written. Its drop removes it.
    type Writing;
    /// Work in steps. Its drop ends it, and removes what is not whole.
    type Work;

    /// The properties of an entry.
    ///
    /// # Errors
    /// There is none, or it may not be seen.
    fn stat(&mut self, place: &ServicePath) -> Result<FileInfo, Failure>;

    /// Entries of the directory `below` a place, behind the cursor, in ascending order of their names, at most `most`. No link leads from
    /// the place down to it.
    ///
    /// # Errors
    /// It is no directory, or may not be read.
    fn list(&mut self, place: &ServicePath, below: &RelPath, cursor: &[u8], most: usize) -> Result<ListPage, Failure>;

    /// Opens a regular file.
    ///
    /// # Errors
    /// There is none, or it may not be read.
    fn open(&mut self, place: &ServicePath) -> Result<Self::Reading, Failure>;

    /// The version of an open file, and whether it has changed since it was opened, or may have: what cannot be told is a change.
    ///
    /// # Errors
    /// The system does not tell.
    fn version(&mut self, file: &mut Self::Reading) -> Result<(FileVersion, bool), Failure>;

    /// Reads bytes at `offset` into `out`, which is not empty. Zero bytes are the end of the file, and short reads are permitted.
    ///
    /// # Errors
    /// They cannot be read, or the client may read no more.
    fn read(&mut self, file: &mut Self::Reading, offset: u64, out: &mut [u8]) -> Result<usize, Failure>;

    /// Creates the temporary file for a new file.
    ///
    /// # Errors
    /// It cannot be created, or nothing may get its name.
    fn create(&mut self, put: &Put) -> Result<Self::Writing, Failure>;

    /// Appends bytes.
    ///
    /// # Errors
    /// The disk is full or fails, or the client may write no more.
    fn write(&mut self, file: &mut Self::Writing, bytes: &[u8]) -> Result<(), Failure>;

    /// Gives a file with whole and verified content its name.
    ///
    /// # Errors
    /// Another entry has the name, or the disk fails. The file is gone.
    fn commit(&mut self, file: Self::Writing, digest: &Digest) -> Result<(), Failure>;

    /// Makes a directory. Returns whether it is new.
    ///
    /// # Errors
    /// It cannot be made.
    fn make_directory(&mut self, request: &MakeDirectory) -> Result<bool, Failure>;

    /// Gives an entry another name.
    ///
    /// # Errors
    /// It cannot be renamed. Both entries are as before.
    fn rename(&mut self, places: &Move) -> Result<(), Failure>;

    /// Begins to remove an entry.
    ///
    /// # Errors
    /// It cannot be removed.
    fn remove(&mut self, request: &Remove) -> Result<Self::Work, Failure>;

    /// Begins to copy a file.
    ///
    /// # Errors
    /// It cannot be read, or its copy cannot be created.
    fn copy(&mut self, places: &Move) -> Result<Self::Work, Failure>;

    /// Goes on with some work, for a short time.
    ///
    /// # Errors
    /// It failed.
    fn step(&mut self, work: &mut Self::Work) -> Result<Progressing, Failure>;
}

/// The state of some work after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progressing {
    /// There is more to do.
    More,
    /// It is done.
    Done(Finished),
}

/// The result of some work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finished {
    /// The number of entries removed.
    Removed(u64),
    /// The copy of a file.
    Copied(Written),
}
