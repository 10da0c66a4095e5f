//! The requests that a server works on, each for one turn at a time.

use crate::capabilities::Capabilities;
use crate::failure::{FailCode, Failure};
use crate::frame_kind::{MAX_BLOCK, MAX_CONTROL};
use crate::integrity::Digest;
use crate::path_rules::RelPath;
use crate::service::answer::{Answer, ListPage, RangeEnd, Written};
use crate::service::files::{Files, Finished, Progressing};
use crate::service::hasher::Hasher;
use crate::service::request::{FileRequest, ReadFrom, ReadRange};
use crate::service::service_path::ServicePath;
use crate::service::tree::ListTree;

use super::walk::Walk;

/// Bytes of a file that one turn of a digest reads: as long as a few blocks of a read take.
const DIGEST_TURN: usize = 1 << 20;
/// Most bytes of a page, and so of its answer: the limit of a frame, less the number of the request.
const MAX_PAGE: usize = MAX_CONTROL - 64;

/// A request whose answer is being made.
pub(super) enum Job<F: Files> {
    /// It fails.
    Fail(Failure),
    /// It takes one turn.
    Ask(FileRequest),
    /// Its file is not open yet.
    BeginRead(ReadRange),
    Read(Box<Reading<F>>),
    BeginDigest(ServicePath),
    Digest(Box<Hashing<F>>),
    BeginWalk(ListTree),
    Walk(Box<Walk>),
    /// It is not begun yet, and takes several turns.
    BeginWork(FileRequest),
    Work(F::Work),
    /// A put whose bytes arrive.
    Write(Box<Writing<F>>),
    Refused(Refused),
    Commit(Box<Writing<F>>, Digest),
}

/// The state of a job after its turn.
pub(super) enum Turn<F: Files> {
    /// It takes more of them.
    Goes(Job<F>),
    Ends(Answer),
    /// A put fails. What is left of it waits for the client's last word.
    Refuses(Failure, Option<Refused>),
    EndsRead(RangeEnd),
}

/// A put that has failed. It ends once the client has its answer, and the client has said its last word.
pub(super) struct Refused {
    /// The failure, until it was told.
    failure: Option<Failure>,
    is_closed: bool,
}

/// A read whose file is open.
pub(super) struct Reading<F: Files> {
    file: F::Reading,
    offset: u64,
    sent: u64,
    left: u64,
    at_end: bool,
    hasher: Hasher,
}

/// A digest in progress.
pub(super) struct Hashing<F: Files> {
    file: F::Reading,
    read: u64,
    hasher: Hasher,
}

/// A put whose file is open.
pub(super) struct Writing<F: Files> {
    file: F::Writing,
    size: Option<u64>,
    written: u64,
    hasher: Hasher,
}

impl<F: Files> Job<F> {
    pub(super) fn of(request: FileRequest) -> Self {
        match request {
            FileRequest::Read(range) => Self::BeginRead(range),
            FileRequest::Digest(place) => Self::BeginDigest(place),
            FileRequest::ListTree(tree) => Self::BeginWalk(tree),
            FileRequest::Remove(_) | FileRequest::Copy(_) => Self::BeginWork(request),
            request => Self::Ask(request),
        }
    }

    /// Whether it has files open or memory of a tree, and takes turns.
    pub(super) const fn is_begun(&self) -> bool {
        matches!(self, Self::Read(_) | Self::Digest(_) | Self::Walk(_) | Self::Work(_) | Self::Commit(..))
    }

    /// Whether it is a put, in any state.
    pub(super) const fn is_put(&self) -> bool {
        matches!(self, Self::Write(_) | Self::Refused(_) | Self::Commit(..))
    }

    /// Whether it has bytes to send, so that it waits for credit.
    pub(super) fn needs_credit(&self) -> bool {
        match self {
            Self::Read(reading) => reading.needs_credit(),
            Self::Walk(walk) => walk.needs_credit(),
            _ => false,
        }
    }

    /// Works on it for one turn. A read and a walk leave their bytes in `block`, no more than `room`.
    ///
    /// # Errors
    /// The request fails.
    pub(super) fn take_turn(
        self,
        files: &mut F,
        (room, offered): (u64, Capabilities),
        block: &mut Vec<u8>,
    ) -> Result<Turn<F>, Failure> {
        Ok(match self {
            Self::Fail(failure) => return Err(failure),
            Self::Ask(request) => Turn::Ends(answer(files, &request)?),
            Self::BeginRead(range) => {
                let reading = Reading::begin(files, &range)?;
                block.clear();
                Turn::Goes(Self::Read(Box::new(reading)))
            }
            Self::Read(reading) => reading.take_turn(files, room, block)?,
            Self::BeginDigest(place) => {
                let file = files.open(&place)?;
                Turn::Goes(Self::Digest(Box::new(Hashing { file, read: 0, hasher: Hasher::default() })))
            }
            Self::Digest(hashing) => hashing.take_turn(files, block)?,
            Self::BeginWalk(tree) => {
                block.clear();
                Turn::Goes(Self::Walk(Box::new(Walk::new(tree, offered))))
            }
            Self::Walk(mut walk) => match walk.take_turn(files, room, block)? {
                Some(end) => Turn::Ends(Answer::Tree(end)),
                None => Turn::Goes(Self::Walk(walk)),
            },
            Self::BeginWork(FileRequest::Remove(remove)) => Turn::Goes(Self::Work(files.remove(&remove)?)),
            Self::BeginWork(FileRequest::Copy(places)) => Turn::Goes(Self::Work(files.copy(&places)?)),
            Self::BeginWork(_) => return Err(FailCode::Unsupported.into()),
            Self::Work(mut work) => match files.step(&mut work)? {
                Progressing::More => Turn::Goes(Self::Work(work)),
                Progressing::Done(Finished::Removed(count)) => Turn::Ends(Answer::Removed(count)),
                Progressing::Done(Finished::Copied(written)) => Turn::Ends(Answer::Written(written)),
            },
            Self::Commit(writing, digest) => Turn::Ends(writing.commit(files, digest)?),
            Self::Refused(mut refused) => {
                let failure = refused.failure.take().unwrap_or_else(|| FailCode::Cancelled.into());
                Turn::Refuses(failure, Some(refused).filter(|refused| !refused.is_closed))
            }
            // It waits for bytes of the client, and in no queue.
            job @ Self::Write(_) => Turn::Goes(job),
        })
    }
}

impl Refused {
    pub(super) const fn by(failure: Failure) -> Self {
        Self { failure: Some(failure), is_closed: false }
    }

    pub(super) const fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// The same after the client's last word; `None` if it was told.
    pub(super) fn closed(self) -> Option<Self> {
        self.failure.is_some().then_some(Self { is_closed: true, ..self })
    }
}

impl<F: Files> Reading<F> {
    /// Whether it has bytes to send, as far as it knows.
    pub(super) const fn needs_credit(&self) -> bool {
        self.left > 0 && !self.at_end
    }

    fn begin(files: &mut F, range: &ReadRange) -> Result<Self, Failure> {
        let mut file = files.open(&range.place)?;
        let offset = match range.from {
            ReadFrom::Start(offset) => offset,
            ReadFrom::End(before) => files.version(&mut file)?.0.stamp.size.saturating_sub(before),
        };
        Ok(Self { file, offset, sent: 0, left: range.length, at_end: false, hasher: Hasher::default() })
    }

    fn take_turn(mut self: Box<Self>, files: &mut F, room: u64, block: &mut Vec<u8>) -> Result<Turn<F>, Failure> {
        let most = usize::try_from(self.left.min(room)).unwrap_or(usize::MAX).min(MAX_BLOCK);
        if most == 0 {
            block.clear();
        } else {
            block.resize(most, 0);
            let count = files.read(&mut self.file, self.offset.saturating_add(self.sent), block)?;
            block.truncate(count);
        }
        self.hasher.update(block);
        self.sent += block.len() as u64;
        self.left -= block.len() as u64;
        self.at_end = most > 0 && block.is_empty();
        if self.needs_credit() || !block.is_empty() {
            // The end has a turn of its own, behind the bytes.
            return Ok(Turn::Goes(Job::Read(self)));
        }
        let (mut version, changed) = files.version(&mut self.file)?;
        let end = self.offset.saturating_add(self.sent);
        // A file that the system makes when it is read has no size, or one that means nothing.
        if self.at_end && !changed && end < version.stamp.size {
            version.stamp.size = 0;
        }
        Ok(Turn::EndsRead(RangeEnd {
            offset: self.offset,
            length: self.sent,
            digest: self.hasher.digest(),
            version,
            at_end: self.at_end || version.stamp.size > 0 && end >= version.stamp.size,
            changed,
        }))
    }
}

impl<F: Files> Hashing<F> {
    fn take_turn(mut self: Box<Self>, files: &mut F, block: &mut Vec<u8>) -> Result<Turn<F>, Failure> {
        block.resize(DIGEST_TURN, 0);
        let count = files.read(&mut self.file, self.read, block)?;
        if count > 0 {
            self.hasher.update(&block[..count]);
            self.read += count as u64;
            return Ok(Turn::Goes(Job::Digest(self)));
        }
        match files.version(&mut self.file)? {
            (_, true) => Err(FailCode::SourceChanged.into()),
            _ => Ok(Turn::Ends(Answer::Written(Written { size: self.read, digest: Some(self.hasher.digest()) }))),
        }
    }
}

impl<F: Files> Writing<F> {
    pub(super) fn new(file: F::Writing, size: Option<u64>) -> Self {
        Self { file, size, written: 0, hasher: Hasher::default() }
    }

    pub(super) fn write(&mut self, files: &mut F, bytes: &[u8]) -> Result<(), Failure> {
        let written = self.written.saturating_add(bytes.len() as u64);
        if self.size.is_some_and(|size| written > size) {
            return Err(Failure::new(FailCode::SourceChanged, "more bytes came than were announced"));
        }
        files.write(&mut self.file, bytes)?;
        self.written = written;
        self.hasher.update(bytes);
        Ok(())
    }

    fn commit(self, files: &mut F, digest: Digest) -> Result<Answer, Failure> {
        if self.size.is_some_and(|size| self.written != size) {
            return Err(Failure::new(FailCode::SourceChanged, "fewer bytes came than were announced"));
        }
        if self.hasher.digest() != digest {
            return Err(FailCode::DigestMismatch.into());
        }
        let written = Written { size: self.written, digest: Some(digest) };
        files.commit(self.file, &digest)?;
        Ok(Answer::Written(written))
    }
}

/// The answer to a request of one turn.
fn answer<F: Files>(files: &mut F, request: &FileRequest) -> Result<Answer, Failure> {
    match request {
        FileRequest::Stat(place) => files.stat(place).map(Answer::Info),
        FileRequest::List { place, cursor, most } => {
            let most = usize::try_from(*most).unwrap_or(usize::MAX).max(1);
            files.list(place, &RelPath::root(), cursor, most).map(|page| Answer::Page(fitting(page)))
        }
        FileRequest::MakeDirectory(request) => files.make_directory(request).map(Answer::Made),
        FileRequest::Rename(places) => files.rename(places).map(|()| Answer::Renamed),
        _ => Err(FailCode::Unsupported.into()),
    }
}

/// As much of a page as fits in one answer. The next one goes on behind it.
fn fitting(mut page: ListPage) -> ListPage {
    let (mut bytes, mut sized) = (0, Vec::new());
    let fits = page.entries.iter().take_while(|entry| {
        sized.clear();
        entry.encode(&mut sized);
        bytes += sized.len();
        bytes <= MAX_PAGE - MAX_CURSOR
    });
    let count = fits.count();
    if count < page.entries.len() {
        page.entries.truncate(count);
        page.next = page.entries.last().map(|entry| entry.name.as_bytes().to_vec()).unwrap_or_default();
    }
    page
}

/// Longest cursor with its length: a name.
const MAX_CURSOR: usize = 2 + crate::path_rules::MAX_NAME;
