//! A file being sent: its end, and changes since it was opened.

use std::fs::File;
use std::io::IoSliceMut;
use std::ops::Range;

use farhaul_session::{Chunk, Component, Entry, FailCode, Failure, Mtime, Stamp};
use rustix::fs::{FileType, SeekFrom, Stat, seek};
use rustix::io::Errno;

use super::directory::{Directory, kind, mtime};
use super::failure::failure;
use super::small_file::SmallFile;

/// An open file.
#[derive(Debug)]
pub(super) struct SourceFile {
    file: File,
    /// Its state when it was opened, or shortly before.
    before: FileState,
    /// Whether the open file is known to be the one of that state.
    is_known: bool,
    /// Whether its end is at the reported size.
    has_size: bool,
    /// The end of the bytes that were read.
    read: u64,
    /// Bytes that are known to be no hole. All of a file without holes.
    data: Range<u64>,
    /// Whether bytes follow its size, if a read has shown it.
    goes_on: Option<bool>,
}

/// The state of a file: what tells it from other files and from its own later states. Many files wait for their turn with theirs.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileState {
    /// Device and inode.
    identity: (u64, u64),
    links: u32,
    size: u64,
    mtime: Mtime,
    /// The time of its last change. Programs can set the time of modification, but not this one.
    ctime: Mtime,
}

impl FileState {
    pub(super) fn of(stat: &Stat) -> Self {
        Self {
            identity: (stat.st_dev, stat.st_ino),
            links: u32::try_from(stat.st_nlink).unwrap_or(u32::MAX),
            size: size(stat),
            mtime: mtime(stat),
            ctime: Mtime { seconds: stat.st_ctime, nanos: u32::try_from(stat.st_ctime_nsec).unwrap_or(0) },
        }
    }
}

/// Size from which the kernel is told to read ahead. For smaller files, the advice costs more than it gains.
const READ_AHEAD_FROM: u64 = 1 << 20;
/// Bytes of a block of `st_blocks` (stat(2)).
const BLOCK: u64 = 512;

impl SourceFile {
    /// Opens a small file that was listed just now in the state `before`. Whether it is that file is seen when it is
    /// [checked again](Self::recheck), so it costs one look less. A change before its content is read costs one more attempt.
    pub(super) fn open_listed(parent: &Directory, name: &Component, before: FileState) -> Result<Self, Failure> {
        let file = parent.open_file(name).map_err(|error| failure("open", error))?;
        Ok(Self { file, before, is_known: false, has_size: true, read: 0, data: 0..u64::MAX, goes_on: None })
    }

    /// Whether a file in this state is small, and certain to end at its size.
    pub(super) fn is_small(stat: &Stat) -> bool {
        kind(stat) == FileType::RegularFile
            && (1..=SmallFile::MOST).contains(&size(stat))
            && stat.st_blocks > 0
            && !is_sparse(stat)
    }

    pub(super) fn open(parent: &Directory, name: &Component) -> Result<Self, Failure> {
        let opened = parent.open_file(name).and_then(|file| Ok((rustix::fs::fstat(&file)?, file)));
        let (before, file) = opened.map_err(|error| failure("open", error))?;
        if kind(&before) != FileType::RegularFile {
            return Err(Failure::new(FailCode::SpecialFile, "it was replaced just now"));
        }
        if size(&before) >= READ_AHEAD_FROM {
            // With this advice, the kernel reads further ahead. Without it, the kernel guesses.
            let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::Sequential);
        }
        let has_size = ends_at_its_size(&file, &before).map_err(|error| failure("read", error))?;
        let data = if has_size && is_sparse(&before) { 0..0 } else { 0..u64::MAX };
        let before = FileState::of(&before);
        Ok(Self { file, before, is_known: true, has_size, read: 0, data, goes_on: None })
    }

    /// Its size and time when it was opened.
    pub(super) fn stamp(&self) -> Stamp {
        let size = if self.has_size { self.before.size } else { Entry::UNKNOWN_SIZE };
        Stamp { size, mtime: self.before.mtime }
    }

    pub(super) fn read(&mut self, offset: u64, out: &mut [u8]) -> Result<Chunk, Failure> {
        if !self.data.contains(&offset)
            && let Some(hole) = self.hole_at(offset)
        {
            self.read = self.read.max(offset + hole);
            return Ok(Chunk::Zeros(hole));
        }
        let most = usize::try_from(self.data.end - offset).unwrap_or(usize::MAX).min(out.len());
        let out = &mut out[..most];
        let len = match self.has_size && most > 0 && offset + most as u64 == self.before.size {
            true => self.read_last(offset, out),
            false => read_at(&self.file, offset, out),
        };
        let len = len.map_err(|error| self.unread(error))?;
        self.read = self.read.max(offset + len as u64);
        Ok(if len == 0 { Chunk::End } else { Chunk::Data(len) })
    }

    /// Why it cannot be read. What was opened may be no file.
    fn unread(&self, error: Errno) -> Failure {
        let is_listed =
            || rustix::fs::fstat(&self.file).is_ok_and(|stat| FileState::of(&stat).identity == self.before.identity);
        match self.is_known || is_listed() {
            true => failure("read", error),
            false => Failure::new(FailCode::SourceChanged, "it was replaced just now"),
        }
    }

    /// Reads the last bytes, and looks for one behind them.
    fn read_last(&mut self, offset: u64, out: &mut [u8]) -> Result<usize, Errno> {
        let (mut behind, wanted) = ([0], out.len());
        let read = rustix::io::retry_on_intr(|| {
            let mut parts = [IoSliceMut::new(out), IoSliceMut::new(&mut behind)];
            rustix::io::preadv(&self.file, &mut parts, offset)
        })?;
        if read >= wanted {
            self.goes_on = Some(read > wanted);
        }
        Ok(read.min(wanted))
    }

    /// The length of the hole at `offset`. Learns where data is. `None` within data, and where the system does not tell.
    fn hole_at(&mut self, offset: u64) -> Option<u64> {
        let end = self.before.size;
        if offset >= end {
            self.data = offset..u64::MAX;
            return None;
        }
        let start = match seek(&self.file, SeekFrom::Data(offset)) {
            Ok(start) => start.min(end),
            // No data follows.
            Err(Errno::NXIO) => end,
            Err(_) => {
                self.data = 0..u64::MAX;
                return None;
            }
        };
        let hole = seek(&self.file, SeekFrom::Hole(start)).unwrap_or(u64::MAX);
        self.data = start..if hole >= end { u64::MAX } else { hole };
        (start > offset).then(|| start - offset)
    }

    /// Compares the file with its earlier state. The directory of a file that is known must still have it under this name. Nothing may
    /// follow the stamp's size.
    /// Without a reported size, that is the number of bytes read. With one, a repair may have read a part alone.
    pub(super) fn recheck(&self, parent: &Directory, name: &Component) -> Result<Stamp, Failure> {
        // Of a file that is known, a look at the name shows everything. The number of links shows whether the other one lost its name.
        let stat = match self.is_known {
            true => parent.stat(name),
            false => rustix::fs::fstat(&self.file),
        };
        let now = stat.ok().map(|stat| FileState::of(&stat));
        let Some(now) = now.filter(|now| now.identity == self.before.identity) else {
            return Err(Failure::new(FailCode::SourceChanged, "it was replaced or removed"));
        };
        if (now.ctime, now.links) != (self.before.ctime, self.before.links) {
            let message = "its content, size, permissions or number of links changed";
            return Err(Failure::new(FailCode::SourceChanged, message));
        }
        if now.size != self.before.size {
            return Err(Failure::new(FailCode::SourceChanged, "its size changed"));
        }
        let end = if self.has_size { self.before.size } else { self.read };
        let goes_on = self.goes_on.map_or_else(|| goes_on_at(&self.file, end), Ok);
        if goes_on.map_err(|error| failure("read", error))? {
            return Err(Failure::new(FailCode::SourceChanged, "it grew"));
        }
        Ok(Stamp { size: end, mtime: now.mtime })
    }
}

/// Whether a file ends at its reported size. Files of /proc report a size of zero and files of /sys one page, whatever
/// they contain. The kernel generates their content when they are read.
fn ends_at_its_size(file: &File, stat: &Stat) -> Result<bool, Errno> {
    let size = size(stat);
    if size > 0 && stat.st_blocks > 0 {
        return Ok(true);
    }
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

/// Whether a file occupies less space than its size, so that it may have holes.
pub(super) fn is_sparse(stat: &Stat) -> bool {
    u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(BLOCK) < size(stat)
}

/// Bytes of a file.
pub(super) fn size(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}
