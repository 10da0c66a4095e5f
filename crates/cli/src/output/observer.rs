//! Shows the events of copies and servers: lines for people, records for scripts, the progress bar.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use farhaul::{Rate, probe};
use farhaul_session::{Change, Entry, EntryKind, Failure};
use farhaul_transfer::internal::event::{FileChange, Moved};
use farhaul_transfer::{Event, Observer};

use super::intervals::{Intervals, View};
use super::json::{self, FileRecord, FileStatus, FirstRate, Record, Start};
use super::manifest::Manifest;
use super::progress::TransferBar;
use super::trace::Trace;
use super::tracker::{Total, Tracker};
use super::{Output, human, itemized, remote};
use crate::exit::{Fault, words};

/// Reason in the record of a source that a broken copy did not reach.
const NOT_REACHED: &str = "the copy ended before it";

/// What the events of a verb are shown with.
#[derive(Default)]
pub(crate) struct Shown {
    /// The `start` record, which is written once a port is open.
    pub(crate) start: Option<Start>,
    pub(crate) bar: Option<TransferBar>,
    /// Counts what moves.
    pub(crate) tracker: Tracker,
    /// Length of reported intervals.
    pub(crate) interval: Option<Duration>,
    pub(crate) trace: Option<Trace>,
    /// Gets the digest of each file.
    pub(crate) manifest: Option<Manifest>,
    /// Nothing is changed.
    pub(crate) is_dry_run: bool,
    /// What changes, or would, is listed.
    pub(crate) lists: bool,
}

/// The observer of a verb. Clones share everything.
#[derive(Clone)]
pub(crate) struct Reporter {
    shared: Arc<Shared>,
}

struct Shared {
    output: Output,
    shown: Shown,
    intervals: Mutex<BTreeMap<Option<u64>, Intervals>>,
    /// The first failure: its path, and its line. A single failure is told by the program's error instead.
    held: Mutex<Option<(String, String)>>,
    remote: remote::Relay,
}

impl Reporter {
    pub(crate) fn new(output: Output, shown: Shown) -> Self {
        let remote = remote::Relay::new(shown.interval.is_some());
        let shared = Shared { output, shown, intervals: Mutex::default(), held: Mutex::default(), remote };
        Self { shared: Arc::new(shared) }
    }

    /// Whether another program carried the data between two other hosts through ssh.
    pub(crate) fn has_carrier(&self) -> bool {
        self.shared.remote.has_carrier()
    }

    /// Whether another program has written the last record.
    pub(crate) fn has_end(&self) -> bool {
        self.shared.remote.has_end()
    }

    /// Completes the manifest, if there is one.
    pub(crate) fn end_manifest(&self, is_whole: bool) -> Result<(), Fault> {
        self.shared.shown.manifest.as_ref().map_or(Ok(()), |manifest| manifest.end(is_whole))
    }

    /// Prints the line about a single failure, unless `fault`, the last line of the program, names its file.
    pub(crate) fn conclude(&self, fault: Option<&Fault>) {
        let names = |path: &str| fault.is_some_and(|fault| fault.is_quiet || fault.message.contains(path));
        if let Some((path, line)) = locked(&self.shared.held).take()
            && !names(&path)
        {
            self.shared.output.print_line(&line);
        }
    }
}

impl Observer for Reporter {
    fn on_event(&self, session: Option<u64>, event: &Event<'_>) {
        let (output, shown) = (&self.shared.output, &self.shared.shown);
        match event {
            Event::Connecting { local, peer, first_rate, carrier } => {
                self.connecting((*local, *peer), *first_rate, *carrier);
            }
            // A server has a total for each session, and none of its own.
            Event::Expected { files, bytes } if session.is_none() => {
                shown.tracker.set_total(Total { bytes: Some(*bytes), files: Some(*files) });
            }
            Event::Retrying(_) => shown.tracker.begin_again(),
            Event::Begun(entry) => shown.tracker.begun(entry),
            Event::Moved(moved) => self.moved(session, moved),
            Event::Placed(entry, digest, change) => {
                if let Some(manifest) = &shown.manifest {
                    manifest.add(&entry.path.to_bytes(), digest);
                }
                shown.tracker.placed(entry.size);
                let digest = output.is_json().then(|| digest.to_string());
                self.entry(session, entry, FileStatus::Verified, (*change, digest));
            }
            Event::Kept(entry, digest, change) => {
                if let (Some(manifest), Some(digest)) = (&shown.manifest, digest) {
                    manifest.add(&entry.path.to_bytes(), digest);
                }
                if entry.kind == EntryKind::File {
                    shown.tracker.kept(entry.size);
                }
                let status = match (shown.is_dry_run, change) {
                    (true, Change::New | Change::Content) => FileStatus::Planned,
                    _ => FileStatus::Kept,
                };
                let digest = digest.filter(|_| output.is_json()).map(ToString::to_string);
                self.entry(session, entry, status, (*change, digest));
            }
            Event::Made(entry, change) => self.entry(session, entry, FileStatus::Made, (*change, None)),
            Event::Deleted(path) => {
                if shown.lists {
                    output.print_line(&format!("{} {path}", itemized::DELETED));
                }
                self.file(session, path.as_bytes(), FileStatus::Deleted, (0, None), None);
            }
            Event::Repaired(entry, chunks) => {
                let part = if *chunks == 0 { "the digest".to_owned() } else { human::plural(*chunks, "MiB") };
                output.warn(&format!("{part} of {} arrived damaged and came again", entry.path));
            }
            Event::Changed(path, change) => {
                let (status, bytes, digest) = match change {
                    FileChange::Written(bytes, Some(digest)) => {
                        (FileStatus::Verified, *bytes, Some(digest.to_string()))
                    }
                    FileChange::Written(bytes, None) => (FileStatus::Copied, *bytes, None),
                    FileChange::Made => (FileStatus::Made, 0, None),
                    FileChange::Renamed => (FileStatus::Renamed, 0, None),
                    _ => (FileStatus::Removed, 0, None),
                };
                self.file(session, path.as_bytes(), status, (bytes, digest), None);
            }
            Event::Failed(path, failure, _) => {
                shown.tracker.failed();
                let line = format!("{} {path}: {failure}", output.style().red("not copied:"));
                self.failed(path.to_string(), line);
                self.file(session, path.as_bytes(), FileStatus::Failed, (0, None), sentence(failure));
            }
            Event::LeftOut(path, failure) => {
                output.print_line(&format!("left out: {path}: {}", failure.message));
                self.file(session, path.as_bytes(), FileStatus::LeftOut, (0, None), sentence(failure));
            }
            Event::Skipped(path) => {
                self.file(session, path.as_bytes(), FileStatus::Failed, (0, None), Some(NOT_REACHED.to_owned()));
            }
            Event::Remote(host, record) => {
                // Of two such records, the first is written: that program's, unless it keeps silent about it.
                if let Some(start) = shown.start.as_ref().filter(|_| record["event"] == "end") {
                    output.record(&Record::Start(Box::new(start.clone())));
                }
                self.shared.remote.show(output, &shown.tracker, (host, record));
                self.draw();
            }
            Event::Warning(message) => output.warn(message),
            Event::Note(line) => output.print_line(line),
            _ => {}
        }
    }
}

impl Reporter {
    /// Writes the `start` record.
    fn connecting(
        &self,
        (local, peer): (Option<SocketAddr>, Option<SocketAddr>),
        first_rate: Option<(Rate, Duration)>,
        carrier: Option<&str>,
    ) {
        let (output, shown) = (&self.shared.output, &self.shared.shown);
        let Some(mut start) = shown.start.clone() else { return };
        (start.local, start.address) = (local.map(|at| at.to_string()), peer.map(|at| at.to_string()));
        if let Some((rate, measured)) = first_rate {
            let rate_bps = rate.bits_per_second();
            start.first_rate = Some(FirstRate { rate_bps, measured_unix_seconds: measured.as_secs() });
            if start.for_people && start.only_sends {
                let age = days(probe::now().saturating_sub(measured));
                let rate = human::rate(Some(rate_bps));
                output.print_line(&format!("the search for the rate begins at {rate}, from a profile {age}"));
            }
        }
        if let Some(carrier) = carrier {
            start.settings.insert(remote::CARRIER.into(), carrier.into());
        }
        output.record(&Record::Start(Box::new(start)));
    }

    fn moved(&self, session: Option<u64>, moved: &Moved<'_>) {
        let shown = &self.shared.shown;
        shown.tracker.moved(moved);
        if shown.bar.as_ref().is_some_and(|bar| moved.is_last || bar.is_due(moved.elapsed)) {
            self.draw();
        }
        let mut all = locked(&self.shared.intervals);
        let intervals = all.entry(session).or_insert_with(|| {
            let (interval, trace) = (shown.interval, shown.trace.clone());
            Intervals::of(View { output: self.shared.output.clone(), session, flow: None, interval, trace })
        });
        intervals.show(moved);
        if moved.is_last {
            all.remove(&session);
        }
    }

    fn draw(&self) {
        let shown = &self.shared.shown;
        if let Some(bar) = &shown.bar {
            bar.show(&shown.tracker.snapshot());
        }
    }

    /// Prints the line of a failure; of the first one once there is a second.
    fn failed(&self, path: String, line: String) {
        let output = &self.shared.output;
        let mut held = locked(&self.shared.held);
        match held.replace((String::new(), String::new())) {
            None => *held = Some((path, line)),
            Some((_, first)) => {
                [first, line].iter().filter(|line| !line.is_empty()).for_each(|line| output.print_line(line))
            }
        }
    }

    /// An entry with its last answer.
    fn entry(
        &self,
        session: Option<u64>,
        entry: &Entry,
        status: FileStatus,
        (change, digest): (Change, Option<String>),
    ) {
        let output = &self.shared.output;
        if self.shared.shown.lists
            && let Some(line) = itemized::line(entry, change)
        {
            output.print_line(&line);
        }
        if output.is_json() {
            let bytes = if entry.has_size() { entry.size } else { 0 };
            let record = FileRecord::of(session, &entry.path.to_bytes(), status, bytes);
            let (kind, change) = (Some(json::kind(entry.kind)), Some(json::change(change)));
            output.record(&Record::File(FileRecord { digest, kind, change, ..record }));
        }
    }

    fn file(
        &self,
        session: Option<u64>,
        path: &[u8],
        status: FileStatus,
        (bytes, digest): (u64, Option<String>),
        error: Option<String>,
    ) {
        if !self.shared.output.is_json() {
            return;
        }
        let record = FileRecord { digest, error, ..FileRecord::of(session, path, status, bytes) };
        self.shared.output.record(&Record::File(record));
    }
}

/// A failure as the user of a command reads it.
fn sentence(failure: &Failure) -> Option<String> {
    Some(words(&failure.to_string()).into_owned())
}

/// The age of a profile.
fn days(age: Duration) -> String {
    match age.as_secs() / 86_400 {
        0 => "of the last 24 hours".to_owned(),
        1 => "1 day old".to_owned(),
        days => format!("{days} days old"),
    }
}

/// The content, even after a panic: all of it is consistent at any time.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
