//! A range of a file that may change while it is read.

use farhaul_session::{FileRange, FileRequest, ReadFrom, ReadRange, ServicePath};

/// Pairs of reads until a file counts as one that changes all the time.
const PAIRS: u32 = 3;

/// Reads of one range, until its bytes were those of the file at one moment: the file did not change meanwhile, or a second read gave
/// the same bytes. So the end of a log that grows can be read.
pub(super) struct SteadyRead {
    range: ReadRange,
    /// The first read of a pair.
    first: Option<FileRange>,
    pairs: u32,
}

/// The file changes all the time.
pub(super) struct Unsteady;

impl SteadyRead {
    pub(super) fn new(place: ServicePath, from: ReadFrom, length: u64) -> Self {
        Self { range: ReadRange { place, from, length }, first: None, pairs: PAIRS }
    }

    pub(super) fn place(&self) -> &ServicePath {
        &self.range.place
    }

    /// The next request.
    pub(super) fn request(&self) -> FileRequest {
        let from = self.first.as_ref().map_or(self.range.from, |first| ReadFrom::Start(first.offset));
        FileRequest::Read(ReadRange { from, ..self.range.clone() })
    }

    /// Takes its answer. `None`: the file is to be read again.
    pub(super) fn take(&mut self, read: FileRange) -> Result<Option<FileRange>, Unsteady> {
        let Some(first) = self.first.take() else {
            if read.changed && !is_generated(&read) {
                self.first = Some(read);
                return Ok(None);
            }
            return Ok(Some(read));
        };
        if read.bytes.starts_with(&first.bytes) && read.bytes.is_empty() == first.bytes.is_empty() {
            return Ok(Some(FileRange { changed: false, ..first }));
        }
        self.pairs -= 1;
        if self.pairs > 0 { Ok(None) } else { Err(Unsteady) }
    }
}

/// Whether the system makes the content when it is read, so that size and time mean nothing.
pub(super) fn is_generated(read: &FileRange) -> bool {
    read.version.stamp.size < read.offset.saturating_add(read.bytes.len() as u64)
}
