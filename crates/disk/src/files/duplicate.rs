//! A copy of a file on this host, in steps.

use std::os::unix::fs::FileExt;

use farhaul_session::{FailCode, Failure, ServicePath, Written};
use rustix::fs::Stat;
use rustix::io::Errno;

use super::OpenFile;
use super::failed;
use super::new_file::NewFile;

/// Bytes of one step: a disk takes some 100 ms.
const STEP: usize = 16 << 20;
/// Bytes of one step where they pass through this process.
const BLOCK: usize = 1 << 20;

/// A copy in progress. The kernel copies, or shares the blocks of both files, where the file system can.
#[derive(Debug)]
pub(super) struct Duplicate<C> {
    source: OpenFile,
    /// `None` after the commit.
    target: Option<NewFile<C>>,
    done: u64,
}

impl<C> Duplicate<C> {
    pub(super) const fn new(source: OpenFile, target: NewFile<C>) -> Self {
        Self { source, target: Some(target), done: 0 }
    }

    /// Copies some bytes, at most `portion`. Returns their number; zero at the end of the source.
    pub(super) fn some(&mut self, portion: usize) -> Result<usize, Failure> {
        let Some(target) = &self.target else { return Ok(0) };
        let (mut from, mut to) = (self.done, self.done);
        let most = portion.min(STEP);
        let copied = match rustix::fs::copy_file_range(
            self.source.file(),
            Some(&mut from),
            target.file(),
            Some(&mut to),
            most,
        ) {
            // Another file system, or a kernel without it. Some file systems say zero, and have bytes to read.
            Ok(0) | Err(Errno::XDEV | Errno::NOSYS | Errno::OPNOTSUPP | Errno::INVAL | Errno::PERM) => {
                self.through_memory(portion)?
            }
            copied => copied.map_err(|error| failed("copy", error))?,
        };
        self.done += copied as u64;
        Ok(copied)
    }

    fn through_memory(&self, portion: usize) -> Result<usize, Failure> {
        let Some(target) = &self.target else { return Ok(0) };
        let mut block = vec![0; portion.min(BLOCK)];
        let read = rustix::io::retry_on_intr(|| rustix::io::pread(self.source.file(), &mut *block, self.done));
        let count = read.map_err(|error| failed("read", error))?;
        let written = target.file().write_all_at(&block[..count], self.done);
        written.map_err(|error| super::reach::io_failed("write", &error))?;
        Ok(count)
    }

    pub(super) const fn source(&self) -> &OpenFile {
        &self.source
    }

    pub(super) const fn target(&mut self) -> Option<&mut NewFile<C>> {
        self.target.as_mut()
    }

    /// Gives the copy its name, unless the source has changed. Returns its place, and its properties.
    pub(super) fn finish(&mut self, changed: bool) -> Result<(ServicePath, Written, Option<Stat>), Failure> {
        if changed {
            return Err(FailCode::SourceChanged.into());
        }
        let target = self.target.take().ok_or(FailCode::NotFound)?;
        let (place, _, whole) = target.commit()?;
        Ok((place, Written { size: self.done, digest: None }, whole))
    }
}
