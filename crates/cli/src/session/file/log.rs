//! The log of a copy: a line and a record for each file, the progress bar's length, failures.

use std::cell::Cell;
use std::time::Duration;

use farhaul_session::{Entry, FailCode, Failure, FileEvent, Progress, SessionError, ShownPath, Side, escape};
use farhaul_units::Instant;
use indicatif::ProgressBar;

use super::Ledger;
use crate::exit::{Code, Fault};
use crate::output::Output;
use crate::output::human::plural;
use crate::output::json::{FileRecord, FileStatus, Record};
use crate::session::Trouble;
use crate::session::measure::Meter;

/// Reason in the record of a source that a broken copy did not reach.
const NOT_REACHED: &str = "the copy ended before it";
/// Most names in one sentence, so that it stays a line.
const MOST_NAMES: usize = 5;

/// Failures of a stranger's session with lines and records of their own. Its last line tells the number of all.
const OF_STRANGERS: u64 = 20;

/// The log of one copy.
pub(crate) struct FileLog {
    output: Output,
    session: Option<u64>,
    meter: Meter,
    /// A bar whose length grows with each file, if the total is unknown.
    grows: Option<ProgressBar>,
    /// Path of the current file.
    current: Option<Vec<u8>>,
    /// When the first byte of content moved, and the bytes moved so far.
    first: Option<Instant>,
    moved: u64,
    /// When every entry was answered.
    done: Option<Instant>,
    ledger: Ledger,
    failures: u64,
    /// The line about the first failure. A single failure is told by the program's error instead.
    untold: Cell<Option<String>>,
    first_failure: Option<(String, Failure, Side)>,
    /// The last one, which may have ended the session. With the raw path.
    last_failure: Option<(Vec<u8>, Failure)>,
    /// Names of the sources, in the order of the copy: ascending by their bytes.
    sources: Vec<Vec<u8>>,
    corrupted: bool,
    accepted: bool,
    /// The target gets bytes before they are verified.
    without_place: bool,
    /// Most failures with a line and a record of their own.
    most_told: u64,
}

impl FileLog {
    pub(crate) fn new(output: Output, session: Option<u64>, meter: Meter, grows: Option<ProgressBar>) -> Self {
        Self {
            output,
            session,
            meter,
            grows,
            current: None,
            first: None,
            moved: 0,
            done: None,
            ledger: Ledger::default(),
            failures: 0,
            untold: Cell::new(None),
            first_failure: None,
            last_failure: None,
            sources: Vec::new(),
            corrupted: false,
            // A server has accepted by itself.
            accepted: session.is_some(),
            without_place: false,
            most_told: u64::MAX,
        }
    }

    /// The log of a copy with a peer whom nobody knows, and who may name any number of files that do not exist.
    pub(crate) const fn with_stranger(mut self) -> Self {
        self.most_told = OF_STRANGERS;
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

    /// The fault of failed files, if there are any.
    pub(crate) fn fault(&self) -> Option<Fault> {
        let (path, failure, side) = self.first_failure.as_ref()?;
        let where_it_was = if *side == Side::Peer { " (on the other side)" } else { "" };
        let what = match self.failures {
            1 => format!("{path} was not copied: {failure}{where_it_was}"),
            many if self.is_told() => format!("{} were not copied, see above", plural(many, "file")),
            many => format!("{} were not copied; the first is {path}: {failure}{where_it_was}", plural(many, "file")),
        };
        // The operator of a server cannot follow advice for its peer.
        let advice = match failure.code {
            FailCode::IsDirectory if self.without_place => {
                Some("stdout takes one file; give a directory on this machine")
            }
            code => next_step(code),
        };
        let next = advice.filter(|_| self.session.is_none() && !self.corrupted && !self.is_told());
        let what = next.map_or(what.clone(), |next| format!("{what}; {next}"));
        Some(match self.corrupted {
            true if self.without_place => Fault::new(Code::Integrity, what).and("the output on stdout is wrong"),
            true => Fault::new(Code::Integrity, what).and("no wrong file was created; start the copy again"),
            false => Fault::new(Code::FilesFailed, what),
        })
    }

    /// The fault of a session that broke off: `fault`, with the file that failed, and the sources behind it.
    pub(crate) fn broken_by(&self, fault: Fault, trouble: &Trouble) -> Fault {
        let rest = self.not_reached(trouble);
        for name in rest {
            self.record(name, FileStatus::Failed, 0, None, Some(NOT_REACHED.to_owned()));
        }
        let fault = match (self.untold.take(), &self.first_failure) {
            (None, _) => fault,
            (Some(_), Some((path, failure, _))) if is_about(trouble, failure) => {
                Fault { message: format!("{path} was not copied: {}", fault.message), ..fault }
            }
            (Some(line), _) => {
                self.output.say(&line);
                fault
            }
        };
        if rest.is_empty() { fault } else { fault.and(&behind(rest)) }
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

    /// Whether each failure has its own line.
    fn is_told(&self) -> bool {
        self.failures > 1 && self.session.is_none() && !self.output.is_json()
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
            FileEvent::Started(entry) => self.on_started(entry),
            FileEvent::Verified(entry, digest) => {
                let (path, digest) = (entry.path.to_bytes(), digest.to_string());
                self.finished(&path);
                self.ledger.add(&escape(&path), entry.size, &digest);
                self.record(&path, FileStatus::Verified, entry.size, Some(digest), None);
            }
            FileEvent::Made(entry) => self.record(&entry.path.to_bytes(), FileStatus::Made, 0, None, None),
            FileEvent::Failed { path, failure, by } => self.on_failed(path, failure, *by),
            FileEvent::Done(_) => self.done = Some(self.meter.now()),
            _ => {}
        }
    }

    fn on_started(&mut self, entry: &Entry) {
        self.current = Some(entry.path.to_bytes());
        if let Some(bar) = self.grows.as_ref().filter(|_| entry.has_size()) {
            bar.inc_length(entry.size);
        }
    }

    fn on_failed(&mut self, path: &ShownPath, failure: &Failure, by: Side) {
        self.finished(path.as_bytes());
        self.failures += 1;
        self.corrupted |= failure.code == FailCode::DigestMismatch;
        let line = format!("{} {path}: {failure}", self.output.style().red("not copied:"));
        if self.failures == 1 {
            self.untold.set(Some(line));
        } else if self.failures <= self.most_told {
            self.untold.take().into_iter().chain([line]).for_each(|line| self.output.say(&line));
        }
        if self.failures <= self.most_told {
            self.record(path.as_bytes(), FileStatus::Failed, 0, None, Some(failure.to_string()));
        }
        self.last_failure = Some((path.as_bytes().to_vec(), failure.clone()));
        self.first_failure.get_or_insert_with(|| (path.to_string(), failure.clone(), by));
    }

    fn finished(&mut self, path: &[u8]) {
        if self.current.as_deref() == Some(path) {
            self.current = None;
        }
    }

    fn record(&self, path: &[u8], status: FileStatus, bytes: u64, digest: Option<String>, error: Option<String>) {
        if !self.output.is_json() {
            return;
        }
        let hex = || path.iter().map(|byte| format!("{byte:02x}")).collect();
        self.output.record(&Record::File(FileRecord {
            session: self.session,
            path: escape(path),
            path_hex: std::str::from_utf8(path).is_err().then(hex),
            status,
            bytes,
            digest,
            error,
        }));
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
