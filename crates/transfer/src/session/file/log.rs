//! The log of a copy: an event for each file, failures, the digest over all of them.

use std::time::Duration;

use farhaul_session::{Change, FailCode, Failure, FileEvent, Progress, SessionError, ShownPath, Side, escape};
use farhaul_units::Instant;

use crate::error::{Code, Error, Trouble};
use crate::event::{Event, Events};
use crate::report::Ledger;
use crate::session::measure::Meter;
use crate::text::plural;

/// What a receiver says whose sender cannot do as requested.
const NO_BACKGROUND: &str = "the sending side cannot give way to other traffic, because its congestion controller is one that cannot be replaced";
const NO_RATE: &str = "the sending side cannot cap its rate, because the protocol has a rate of its own there";
/// What a sender says whose receiver waits for space.
const FULL_THERE: &str =
    "the disk of the other side is full: it waits up to 9 min for space; make room there, or stop the copy";
/// Most names in one sentence, so that it stays a line.
const MOST_NAMES: usize = 5;

/// Failures of the session of an unlisted caller with lines and records of their own. Its last line tells the number of all.
const OF_UNLISTED: u64 = 20;

/// The log of one copy.
pub(crate) struct FileLog {
    events: Events,
    meter: Meter,
    /// Path of the current file.
    current: Option<Vec<u8>>,
    /// When the first byte of content moved, and the bytes moved so far.
    first: Option<Instant>,
    moved: u64,
    /// When every entry was answered.
    done: Option<Instant>,
    ledger: Ledger,
    failures: u64,
    first_failure: Option<(String, Failure, Side)>,
    /// The last one, which may have ended the session. With the raw path.
    last_failure: Option<(Vec<u8>, Failure)>,
    /// Names of the sources, in the order of the copy: ascending by their bytes.
    sources: Vec<Vec<u8>>,
    corrupted: bool,
    /// Chunks that arrived damaged and came again.
    repaired: u64,
    accepted: bool,
    /// The target gets bytes before they are verified.
    without_place: bool,
    /// Most failures with a line and a record of their own.
    most_told: u64,
}

impl FileLog {
    /// The log of one copy, with an event for each of its files.
    pub(crate) fn new(events: Events, meter: Meter) -> Self {
        Self {
            // A server has accepted by itself.
            accepted: events.session().is_some(),
            events,
            meter,
            current: None,
            first: None,
            moved: 0,
            done: None,
            ledger: Ledger::default(),
            failures: 0,
            first_failure: None,
            last_failure: None,
            sources: Vec::new(),
            corrupted: false,
            repaired: 0,
            without_place: false,
            most_told: u64::MAX,
        }
    }

    /// The log of a copy with a peer whom nobody knows, and who may name any number of files that do not exist.
    pub(crate) const fn of_unlisted_caller(mut self) -> Self {
        self.most_told = OF_UNLISTED;
        self
    }

    /// The log of a copy whose target gets bytes before they are verified.
    pub(crate) const fn without_place(mut self) -> Self {
        self.without_place = true;
        self
    }

    /// The log of a copy of these sources, in ascending order. It names those that a broken copy did not reach.
    pub(crate) fn of_sources(mut self, sources: Vec<Vec<u8>>) -> Self {
        self.sources = sources;
        self
    }

    /// The time until every entry was answered; none if the session broke off before.
    pub(crate) fn done_after(&self) -> Option<Duration> {
        self.done.map(|done| self.meter.until(done))
    }

    /// The digest over all verified files so far.
    pub(super) const fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Chunks that arrived damaged and came again.
    pub(super) const fn repaired(&self) -> u64 {
        self.repaired
    }

    /// Bytes of content that moved so far.
    pub(crate) const fn moved(&self) -> u64 {
        self.moved
    }

    /// Time from the first byte to the confirmation of the last one.
    pub(crate) fn until_confirmed(&self) -> Duration {
        self.first.zip(self.done).map_or(Duration::ZERO, |(first, done)| done - first)
    }

    /// Path of the current file, once the other side has accepted the copy.
    pub(crate) fn current(&self) -> Option<&[u8]> {
        self.current.as_deref().filter(|_| self.accepted)
    }

    /// The error of failed files, if there are any.
    pub(crate) fn error(&self) -> Option<Error> {
        let (path, failure, side) = self.first_failure.as_ref()?;
        let where_it_was = if *side == Side::Peer { " (on the other side)" } else { "" };
        let what = match self.failures {
            1 => format!("{path} was not copied: {failure}{where_it_was}"),
            many => format!("{} were not copied; the first is {path}: {failure}{where_it_was}", plural(many, "file")),
        };
        let advice = match failure.code {
            FailCode::IsDirectory if self.without_place => {
                Some("stdout takes one file; give a directory on this machine")
            }
            code => next_step(code),
        };
        Some(match self.corrupted {
            true if self.without_place => Error::new(Code::Integrity, what).and("the output on stdout is wrong"),
            true => Error::new(Code::Integrity, what).and("no wrong file was created").remedy("start the copy again"),
            // The operator of a server cannot follow advice for its peer.
            false if self.events.session().is_none() => {
                Error { remedy: advice.map(Into::into), ..Error::new(Code::FilesFailed, what) }
            }
            false => Error::new(Code::FilesFailed, what),
        })
    }

    /// The error of a session that broke off: `error`, with the file that failed, and the sources behind it.
    pub(crate) fn broken_by(&self, error: Error, trouble: &Trouble) -> Error {
        let rest = self.not_reached(trouble);
        for name in rest {
            self.events.send(&Event::Skipped(&ShownPath::new(name)));
        }
        let error = match &self.first_failure {
            Some((path, failure, _)) if self.failures == 1 && is_about(trouble, failure) => {
                Error { message: format!("{path} was not copied: {}", error.message), ..error }
            }
            _ => error,
        };
        if rest.is_empty() { error } else { error.and(&behind(rest)) }
    }

    /// The sources behind the file whose failure ended the session. None if something else ended it.
    pub(super) fn not_reached(&self, trouble: &Trouble) -> &[Vec<u8>] {
        let Some((path, _)) = self.last_failure.as_ref().filter(|(_, failure)| is_about(trouble, failure)) else {
            return &[];
        };
        let first = path.split(|&byte| byte == b'/').next().unwrap_or_default();
        let behind = self.sources.partition_point(|name| name.as_slice() <= first);
        &self.sources[behind..]
    }

    pub(super) fn on_moved(&mut self, progress: Progress) {
        if progress.bytes > self.moved {
            self.moved = progress.bytes;
            self.first.get_or_insert_with(|| self.meter.now());
        }
    }

    pub(super) fn on_event(&mut self, event: &FileEvent) {
        match event {
            FileEvent::Accepted => self.accepted = true,
            FileEvent::Unable(unable) => {
                if unable.background {
                    self.events.warn(NO_BACKGROUND);
                }
                if unable.rate {
                    self.events.warn(NO_RATE);
                }
            }
            FileEvent::WaitsForSpace => self.events.warn(FULL_THERE),
            FileEvent::Expected { files, bytes } => {
                self.events.send(&Event::Expected { files: *files, bytes: *bytes });
            }
            FileEvent::Started(entry) => {
                self.current = Some(entry.path.to_bytes());
                self.events.send(&Event::Begun(entry));
            }
            FileEvent::Verified(entry, digest, change) => {
                let path = entry.path.to_bytes();
                self.finished(&path);
                match change {
                    Change::None | Change::Properties => self.events.send(&Event::Kept(entry, Some(digest), *change)),
                    Change::Content | Change::New => {
                        self.ledger.add(&escape(&path), entry.size, &digest.to_string());
                        self.events.send(&Event::Placed(entry, digest, *change));
                    }
                }
            }
            FileEvent::Kept(entry, change) => {
                if self.current.is_some() {
                    self.finished(&entry.path.to_bytes());
                }
                self.events.send(&Event::Kept(entry, None, *change));
            }
            FileEvent::Made(entry, change) => self.events.send(&Event::Made(entry, *change)),
            FileEvent::LeftOut(path, failure) => self.events.send(&Event::LeftOut(path, failure)),
            FileEvent::Deleted(path) => self.events.send(&Event::Deleted(path)),
            FileEvent::Repaired { entry, chunks } => {
                self.repaired += chunks;
                self.events.send(&Event::Repaired(entry, *chunks));
            }
            FileEvent::Failed { path, failure, by } => self.on_failed(path, failure, *by),
            FileEvent::Done(_) => self.done = Some(self.meter.now()),
            _ => {}
        }
    }

    fn on_failed(&mut self, path: &ShownPath, failure: &Failure, by: Side) {
        self.finished(path.as_bytes());
        self.failures += 1;
        self.corrupted |= failure.code == FailCode::DigestMismatch;
        if self.failures <= self.most_told {
            self.events.send(&Event::Failed(path, failure, by));
        }
        self.last_failure = Some((path.as_bytes().to_vec(), failure.clone()));
        self.first_failure.get_or_insert_with(|| (path.to_string(), failure.clone(), by));
    }

    fn finished(&mut self, path: &[u8]) {
        if self.current.as_deref() == Some(path) {
            self.current = None;
        }
    }
}

/// Whether this failure ended the session.
fn is_about(trouble: &Trouble, failure: &Failure) -> bool {
    match trouble {
        Trouble::Session(SessionError::Store(reason)) => reason == failure,
        Trouble::Session(SessionError::PeerAborted(abort)) => abort.message == failure.to_string(),
        _ => false,
    }
}

/// The sentence about sources that a broken copy did not reach.
fn behind(names: &[Vec<u8>]) -> String {
    let were = if names.len() == 1 { "1 more was".to_owned() } else { format!("{} more were", names.len()) };
    let shown = names.iter().take(MOST_NAMES).map(|name| escape(name)).collect::<Vec<_>>().join(", ");
    let others = if names.len() > MOST_NAMES { ", …" } else { "" };
    format!("{were} not copied: {shown}{others}")
}

/// Advice for a failed file.
const fn next_step(code: FailCode) -> Option<&'static str> {
    Some(match code {
        FailCode::IsDirectory => "-r copies directories",
        FailCode::NotFound => "check the name and start again",
        FailCode::PermissionDenied => "change the permissions there, or copy as another user",
        FailCode::Exists => "choose another target",
        FailCode::SourceChanged => "copy it again when nothing writes to it",
        FailCode::NameRefused => "give it another name",
        FailCode::SpecialFile => "only files and directories are copied",
        _ => return None,
    })
}
