//! A file of another host that is read ahead.

use std::collections::VecDeque;
use std::io::{self, Read, Seek, SeekFrom};

use farhaul_session::{Answer, FileRange, FileRequest, FileVersion, ReadFrom, ReadRange, ServicePath, Stamp};

use super::RemoteFiles;
use super::link::{Fault, Ticket};
use super::steady::is_generated;
use crate::error::Error;

/// Bytes of one range.
const CHUNK: u64 = 1 << 20;
/// Ranges that are requested ahead at first. Each one that is read adds one, so that a program that reads little requests little.
const FIRST_AHEAD: usize = 2;
/// Most outstanding ranges: 64 MiB fill 1 Gbit/s over 500 ms, and 10 Gbit/s over 50 ms.
const MOST_AHEAD: usize = 64;

/// A file of another host, or a part of one. Each range of it was verified before it is read here.
///
/// A file that changes while it is read is an error, because the bytes would belong to two of its states, unless it was opened by
/// [`RemoteFiles::open_changing`].
pub struct RemoteFile {
    files: RemoteFiles,
    place: ServicePath,
    version: FileVersion,
    /// The part begins and ends here, in bytes of the file.
    start: u64,
    end: u64,
    /// The next byte to be read.
    position: u64,
    current: FileRange,
    /// The ranges that were requested and not taken yet, with their offsets.
    outstanding: VecDeque<(u64, Ticket)>,
    /// How many may be.
    ahead: usize,
    /// The system makes the content when it is read, so that size and time mean nothing.
    is_generated: bool,
    permits_changes: bool,
}

impl RemoteFile {
    pub(super) fn open(files: RemoteFiles, place: ServicePath, from: ReadFrom, length: u64) -> Result<Self, Error> {
        let current = files.read_at(place.as_bytes(), from, length.min(CHUNK))?;
        Ok(Self::begin(files, place, current, length))
    }

    pub(super) fn open_changing(
        files: RemoteFiles,
        place: ServicePath,
        from: ReadFrom,
        length: u64,
    ) -> Result<Self, Error> {
        let first = ReadRange { place: place.clone(), from, length: length.min(CHUNK) };
        let Answer::Range(current) = files.repeatable(&place, &FileRequest::Read(first))? else {
            return Err(files.other_answer());
        };
        Ok(Self { permits_changes: true, ..Self::begin(files, place, current, length) })
    }

    /// A file whose first range was read.
    fn begin(files: RemoteFiles, place: ServicePath, current: FileRange, length: u64) -> Self {
        let (start, version) = (current.offset, current.version);
        let is_generated = is_generated(&current);
        let end = if is_generated { u64::MAX } else { version.stamp.size.max(start) };
        let end = end.min(start.saturating_add(length));
        let mut file = Self {
            files,
            place,
            version,
            start,
            end,
            position: start,
            current,
            outstanding: VecDeque::new(),
            ahead: FIRST_AHEAD,
            is_generated,
            permits_changes: false,
        };
        file.note_end();
        file
    }

    /// The size and time of the file when it was opened.
    pub const fn stamp(&self) -> Stamp {
        self.version.stamp
    }

    /// Bytes of the part that can be read, from its beginning.
    pub const fn len(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads ahead as far as possible from now on: for a program that will read everything.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn read_far_ahead(&mut self) -> Result<(), Error> {
        self.ahead = MOST_AHEAD;
        self.request_ahead()
    }

    /// The next bytes, without a copy; none at the end.
    ///
    /// # Errors
    /// They cannot be read, or the file has changed.
    pub fn next_bytes(&mut self) -> Result<&[u8], Error> {
        let bytes = self.fill()?;
        self.position += (bytes.1 - bytes.0) as u64;
        Ok(&self.current.bytes[bytes.0..bytes.1])
    }

    /// The unread bytes of the current range. Fetches the next range if it has none.
    fn fill(&mut self) -> Result<(usize, usize), Error> {
        loop {
            let at = self.position.checked_sub(self.current.offset).and_then(|at| usize::try_from(at).ok());
            let left = usize::try_from(self.end.saturating_sub(self.position)).unwrap_or(usize::MAX);
            if let Some(at) = at.filter(|&at| at < self.current.bytes.len()) {
                return Ok((at, at + (self.current.bytes.len() - at).min(left)));
            }
            if left == 0 {
                return Ok((0, 0));
            }
            self.fetch()?;
        }
    }

    /// Fetches the range at the position, and requests those behind it.
    fn fetch(&mut self) -> Result<(), Error> {
        if self.outstanding.front().is_none_or(|(offset, _)| *offset != self.position) {
            // Somebody has moved on.
            self.outstanding.clear();
        }
        self.request_ahead()?;
        let Some((offset, ticket)) = self.outstanding.pop_front() else { return Ok(()) };
        let range = match ticket.wait() {
            Err(Fault::Lost(_)) => {
                self.outstanding.clear();
                self.files.read_at(
                    self.place.as_bytes(),
                    ReadFrom::Start(offset),
                    self.end.min(offset.saturating_add(CHUNK)).saturating_sub(offset),
                )?
            }
            Err(fault) => return Err(self.files.error(&self.place, fault)),
            Ok(Answer::Range(range)) => range,
            Ok(_) => return Err(self.files.other_answer()),
        };
        let is_other = range.changed || range.version != self.version;
        if is_other && !self.permits_changes && !self.is_generated {
            return Err(self.files.changed(&self.place));
        }
        self.current = range;
        self.note_end();
        self.ahead = (self.ahead + 1).min(MOST_AHEAD);
        self.request_ahead()
    }

    /// A file may be shorter than it was, or than the system said.
    fn note_end(&mut self) {
        if self.current.at_end || self.current.bytes.is_empty() {
            self.end = self.end.min(self.current.offset.saturating_add(self.current.bytes.len() as u64));
        }
    }

    fn request_ahead(&mut self) -> Result<(), Error> {
        // What the system makes has an end that nobody knows.
        let most = if self.is_generated { 1 } else { self.ahead };
        let behind = |offset: u64| offset.saturating_add(CHUNK);
        let of_current = self.current.offset.saturating_add(self.current.bytes.len() as u64);
        let mut next = match self.outstanding.back() {
            Some((offset, _)) => behind(*offset),
            None if (self.current.offset..of_current).contains(&self.position) => of_current,
            None => self.position,
        };
        while self.outstanding.len() < most && next < self.end {
            let length = (self.end - next).min(CHUNK);
            let read = ReadRange { place: self.place.clone(), from: ReadFrom::Start(next), length };
            self.outstanding.push_back((next, self.files.0.begin(&FileRequest::Read(read))?));
            next = behind(next);
        }
        Ok(())
    }
}

impl Read for RemoteFile {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let (from, to) = self.fill().map_err(io::Error::other)?;
        let count = (to - from).min(out.len());
        out[..count].copy_from_slice(&self.current.bytes[from..from + count]);
        self.position += count as u64;
        Ok(count)
    }
}

impl Seek for RemoteFile {
    /// Offsets are those of the part.
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let wanted = match to {
            SeekFrom::Start(offset) => Some(self.start.saturating_add(offset)),
            SeekFrom::Current(offset) => self.position.checked_add_signed(offset),
            SeekFrom::End(offset) => self.end.checked_add_signed(offset),
        };
        let outside = || io::Error::new(io::ErrorKind::InvalidInput, "before the beginning");
        let position = wanted.filter(|&position| position >= self.start).ok_or_else(outside)?;
        if position != self.position {
            self.ahead = FIRST_AHEAD;
        }
        self.position = position;
        Ok(position - self.start)
    }
}

impl std::fmt::Debug for RemoteFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RemoteFile")
            .field("place", &self.place)
            .field("position", &self.position)
            .finish_non_exhaustive()
    }
}
