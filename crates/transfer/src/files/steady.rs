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
            if read.changed {
                self.first = Some(read);
                return Ok(None);
            }
            return Ok(Some(read));
        };
        // An empty file may be one that is about to be written again.
        let end = first.offset.saturating_add(first.bytes.len() as u64);
        let is_whole = first.bytes.len() as u64 == self.range.length || end == first.version.stamp.size;
        if is_whole && !first.bytes.is_empty() && read.bytes.starts_with(&first.bytes) {
            return Ok(Some(FileRange { changed: false, ..first }));
        }
        self.pairs -= 1;
        if self.pairs > 0 { Ok(None) } else { Err(Unsteady) }
    }
}

/// Whether the system makes the content when it is read, so that size and time mean nothing. A file that was just emptied looks alike,
/// but has changed.
pub(super) fn is_generated(read: &FileRange) -> bool {
    !read.changed && read.version.stamp.size < read.offset.saturating_add(read.bytes.len() as u64)
}

#[cfg(test)]
mod tests {
    use farhaul_session::{FileVersion, Mtime, Stamp};

    use super::*;

    /// The answer to a read of a file of this size.
    fn read(bytes: &[u8], offset: u64, size: u64, changed: bool) -> FileRange {
        let version = FileVersion { stamp: Stamp { size, mtime: Mtime::default() }, ctime: None };
        FileRange { bytes: bytes.to_vec(), offset, at_end: true, version, changed }
    }

    fn steady(from: ReadFrom) -> SteadyRead {
        SteadyRead::new(ServicePath::new(b"f").unwrap(), from, 10)
    }

    /// Takes these answers. Returns the bytes of the result; `None` for a file that changes all the time.
    fn taken(answers: &[FileRange]) -> Option<Vec<u8>> {
        let mut steady = steady(ReadFrom::Start(0));
        for (index, answer) in answers.iter().enumerate() {
            match steady.take(answer.clone()) {
                Ok(None) => {}
                Ok(Some(range)) => {
                    assert!(!range.changed && index + 1 == answers.len());
                    return Some(range.bytes);
                }
                Err(Unsteady) => {
                    assert_eq!(index + 1, answers.len());
                    return None;
                }
            }
        }
        panic!("it would read again")
    }

    #[test]
    fn what_did_not_change_is_taken_and_what_changes_once_is_read_again() {
        assert_eq!(taken(&[read(b"abc", 0, 3, false)]), Some(b"abc".to_vec()));
        let changed = [read(b"abd", 0, 3, true), read(b"xyz", 0, 3, true), read(b"xyz", 0, 3, false)];
        assert_eq!(taken(&changed), Some(b"xyz".to_vec()));
    }

    #[test]
    fn a_log_that_grows_is_what_it_was_at_first() {
        assert_eq!(taken(&[read(b"abc", 0, 3, true), read(b"abcd", 0, 4, true)]), Some(b"abc".to_vec()));
        let mut end = steady(ReadFrom::End(3));
        assert_eq!(end.take(read(b"abc", 7, 10, true)).map(|read| read.is_none()).ok(), Some(true));
        let FileRequest::Read(again) = end.request() else { panic!() };
        assert_eq!((again.from, again.length), (ReadFrom::Start(7), 10));
    }

    #[test]
    fn a_file_that_changes_all_the_time_is_no_file() {
        let pair = |one: &[u8], other: &[u8]| [read(one, 0, 3, true), read(other, 0, 3, true)];
        let all: Vec<FileRange> = [pair(b"aab", b"bbb"), pair(b"ccd", b"ddd"), pair(b"eef", b"fff")].concat();
        assert_eq!(taken(&all), None);
        // It was just emptied, before or after it was read, or has become longer since.
        let emptied = [read(b"abc", 0, 0, true), read(b"abc", 0, 0, true)];
        let all: Vec<FileRange> = [[read(b"", 0, 0, true), read(b"", 0, 0, true)], emptied, pair(b"a", b"a")].concat();
        assert_eq!(taken(&all), None);
    }
}
