//! A file being sent: its end, and changes since it was opened.

use std::fs::File;

use farhaul_session::{Chunk, Component, Entry, EntryKind, FailCode, Failure, RelPath, Stamp};
use rustix::fs::{FileType, Stat};
use rustix::io::Errno;

use super::directory::{Directory, is_same, kind, mtime, permissions};
use super::failure::failure;

/// An open file.
#[derive(Debug)]
pub(super) struct SourceFile {
    file: File,
    /// Its state when it was opened.
    before: Stat,
    /// Whether its end is at the reported size.
    has_size: bool,
    /// Bytes read, from its beginning.
    read: u64,
}

impl SourceFile {
    pub(super) fn open(parent: &Directory, name: &Component) -> Result<Self, Failure> {
        let opened = parent.open_file(name).and_then(|file| Ok((rustix::fs::fstat(&file)?, file)));
        let (before, file) = opened.map_err(|error| failure("open", error))?;
        if kind(&before) != FileType::RegularFile {
            return Err(Failure::new(FailCode::SpecialFile, "it was replaced just now"));
        }
        // With this advice, the kernel reads further ahead. Without it, the kernel guesses.
        let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::Sequential);
        let has_size = ends_at_its_size(&file, &before).map_err(|error| failure("read", error))?;
        Ok(Self { file, before, has_size, read: 0 })
    }

    /// The entry that announces it under this path.
    pub(super) fn entry(&self, path: RelPath) -> Entry {
        let size = if self.has_size { size(&self.before) } else { Entry::UNKNOWN_SIZE };
        let (mode, mtime) = (permissions(&self.before), mtime(&self.before));
        Entry { path, kind: EntryKind::File, size, mode, mtime }
    }

    pub(super) fn read(&mut self, offset: u64, out: &mut [u8]) -> Result<Chunk, Failure> {
        let len = read_at(&self.file, offset, out).map_err(|error| failure("read", error))?;
        self.read = offset + len as u64;
        Ok(if len == 0 { Chunk::End } else { Chunk::Data(len) })
    }

    /// Compares the file with its earlier state. Its directory must still have it under this name. The stamp's size is
    /// the number of bytes read, and nothing may follow them.
    pub(super) fn recheck(&self, parent: &Directory, name: &Component) -> Result<Stamp, Failure> {
        let stat = rustix::fs::fstat(&self.file).map_err(|error| failure("read", error))?;
        if !parent.stat(name).is_ok_and(|named| is_same(&named, &stat)) {
            return Err(Failure::new(FailCode::SourceChanged, "it was replaced or removed"));
        }
        // Programs can set the time of modification, but not the time of change.
        if (stat.st_ctime, stat.st_ctime_nsec) != (self.before.st_ctime, self.before.st_ctime_nsec) {
            let message = "its content, size, permissions or number of links changed";
            return Err(Failure::new(FailCode::SourceChanged, message));
        }
        if size(&stat) != size(&self.before) {
            return Err(Failure::new(FailCode::SourceChanged, "its size changed"));
        }
        if goes_on_at(&self.file, self.read).map_err(|error| failure("read", error))? {
            return Err(Failure::new(FailCode::SourceChanged, "it grew"));
        }
        Ok(Stamp { size: self.read, mtime: mtime(&stat) })
    }
}

/// Whether a file ends at its reported size. Files of /proc report a size of zero and files of /sys one page, whatever
/// they contain. The kernel generates their content when they are read.
fn ends_at_its_size(file: &File, stat: &Stat) -> Result<bool, Errno> {
    let size = size(stat);
    // Such files occupy no blocks. For others the last byte is not read, because that might wait for a disk.
    let is_shorter = size > 0 && stat.st_blocks == 0 && !goes_on_at(file, size - 1)?;
    Ok(!is_shorter && !goes_on_at(file, size)?)
}

fn goes_on_at(file: &File, offset: u64) -> Result<bool, Errno> {
    Ok(read_at(file, offset, &mut [0])? > 0)
}

fn read_at(file: &File, offset: u64, out: &mut [u8]) -> Result<usize, Errno> {
    rustix::io::retry_on_intr(|| rustix::io::pread(file, &mut *out, offset))
}

fn size(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}
