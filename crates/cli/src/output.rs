//! All output: data and JSON to stdout, all else to stderr.

pub(crate) mod human;
pub(crate) mod intervals;
mod itemized;
pub(crate) mod json;
pub(crate) mod manifest;
pub(crate) mod observer;
pub(crate) mod progress;
pub(crate) mod question;
mod remote;
pub(crate) mod standard_stream;
mod terminal;
pub(crate) mod trace;
pub(crate) mod tracker;
mod waiting_lines;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use farhaul_transfer::internal::bootstrap::send_record;
use farhaul_udp::Clock;
use indicatif::ProgressBar;

use crate::exit::{Code, Fault, words};
use human::Style;
use json::{End, ErrorRecord, Record};
use serde_json::Value;
use standard_stream::{STDERR, STDOUT};

/// Records written so far: `start` comes once, `end` in any case.
/// The name of the time in records.
const TIME: &str = "\"time_unix_seconds\":";

static WRITTEN: Written = Written { start: AtomicBool::new(false), end: AtomicBool::new(false) };

struct Written {
    start: AtomicBool,
    end: AtomicBool,
}

impl Written {
    /// Notes that `record` is written. Returns false for a second `start`, which is left out.
    fn notes(&self, record: &Record) -> bool {
        match record {
            Record::Start(_) => !self.start.swap(true, Ordering::AcqRel),
            Record::End(_) => {
                self.end.store(true, Ordering::Release);
                true
            }
            _ => true,
        }
    }
}

/// Whether the first record is written.
pub(crate) fn has_begun() -> bool {
    WRITTEN.start.load(Ordering::Acquire)
}

/// Writes the missing records of a program that fails with `fault`. `start` is `None` if the settings are unknown.
pub(crate) fn conclude(to: JsonTo, start: Option<&Value>, end: End, fault: &Fault) {
    let (output, started) = (Output::new(to), WRITTEN.start.load(Ordering::Acquire));
    // A stopped listener has written an `end` for each session.
    let is_stopped = started && matches!(fault.code, Code::Interrupted | Code::HungUp | Code::Terminated);
    if !output.is_json() || is_stopped || WRITTEN.end.load(Ordering::Acquire) && started {
        return;
    }
    if let Some(start) = start.filter(|_| !started) {
        output.record_value(start);
    }
    let (exit_code, error) = (fault.code.exit(), Some(ErrorRecord::from(fault)));
    output.record(&Record::End(Box::new(End { exit_code, error, ..end })));
}

/// The output of a verb. Clones share everything.
#[derive(Clone)]
pub(crate) struct Output {
    shared: Arc<Shared>,
}

struct Shared {
    json: JsonTo,
    style: Style,
    /// The bar on the screen; lines go above it.
    bar: Mutex<Option<ProgressBar>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JsonTo {
    Nowhere,
    Stdout,
    /// For verbs whose stdout carries data.
    Stderr,
    /// For the program at the other end of an SSH connection, as messages. Nothing is said to people here.
    Messages,
}

impl Output {
    pub(crate) fn new(json: JsonTo) -> Self {
        Self { shared: Arc::new(Shared { json, style: Style::of_stderr(), bar: Mutex::new(None) }) }
    }

    /// JSON records on stdout if `json` is set, otherwise words for people.
    pub(crate) fn from_flag(json: bool) -> Self {
        Self::new(if json { JsonTo::Stdout } else { JsonTo::Nowhere })
    }

    /// Has threads write from now on, so that those whom this verb serves do not wait for the readers of its output.
    pub(crate) fn do_not_wait(&self) {
        STDOUT.do_not_wait(|count| {
            let message = format!("the reader is too slow: {count} records are missing here");
            let record = serde_json::to_string(&Record::Warning { message }).expect("it is a string");
            format!("{}\n", dated(&record, since_1970()))
        });
        STDERR.do_not_wait(|count| format!("warning: the reader is too slow: {count} lines are missing here\n"));
    }

    pub(crate) fn is_json(&self) -> bool {
        self.shared.json != JsonTo::Nowhere
    }

    pub(crate) fn style(&self) -> Style {
        self.shared.style
    }

    /// Writes one JSON record, if JSON is wanted.
    pub(crate) fn record(&self, record: &Record) {
        if self.is_json() && !WRITTEN.notes(record) {
            return;
        }
        self.write(&serde_json::to_string(record).expect("records have string keys and finite numbers only"));
    }

    /// Writes the record of a verb whose records are no [`Record`]s, or that of another program, if JSON is wanted.
    pub(crate) fn record_value(&self, record: &Value) {
        match record["event"].as_str() {
            Some("start") => WRITTEN.start.store(true, Ordering::Release),
            Some("end") => WRITTEN.end.store(true, Ordering::Release),
            _ => {}
        }
        self.write(&record.to_string());
    }

    /// Writes a serialized record, if JSON is wanted. Each tells when it was written.
    fn write(&self, record: &str) {
        let record = &dated(record, since_1970());
        let line = format!("{}\n", terminal::record(record));
        match self.shared.json {
            JsonTo::Nowhere => {}
            JsonTo::Messages => {
                let record = serde_json::from_str(record).unwrap_or_default();
                STDOUT.note(send_record(record));
            }
            JsonTo::Stdout => STDOUT.write(line),
            JsonTo::Stderr => STDERR.write(line),
        }
    }

    /// Prints a line for people to stderr, unless JSON is wanted.
    pub(crate) fn print_line(&self, line: &str) {
        if !self.is_json() {
            self.line(line);
        }
    }

    /// Prints a warning: a line for people, and a record.
    pub(crate) fn warn(&self, message: &str) {
        let message = words(message);
        self.record(&Record::Warning { message: message.clone().into_owned() });
        self.line(&format!("{} {message}", self.style().yellow("warning:")));
    }

    /// Prints the state on SIGUSR1. It becomes a record only if stderr carries records.
    pub(crate) fn state(&self, line: &str) {
        if self.shared.json == JsonTo::Stderr {
            self.record(&Record::State { message: line.to_owned() });
        }
        self.line(&format!("{} {line}", self.style().bold("state:")));
    }

    /// Prints the error line of the program.
    pub(crate) fn error(&self, fault: &Fault) {
        self.line(&format!("{} {fault}", self.style().red("farhaul:")));
    }

    /// Prints lines above `bar` from now on.
    pub(crate) fn attach(&self, bar: ProgressBar) {
        *self.shared.bar.lock().unwrap_or_else(PoisonError::into_inner) = Some(bar);
    }

    /// Runs `what` while the bar is hidden.
    pub(crate) fn suspend(&self, what: impl FnOnce()) {
        let bar = self.shared.bar.lock().unwrap_or_else(PoisonError::into_inner);
        match &*bar {
            Some(bar) => bar.suspend(what),
            None => what(),
        }
    }

    /// Removes the bar from the screen.
    pub(crate) fn detach(&self) {
        if let Some(bar) = self.shared.bar.lock().unwrap_or_else(PoisonError::into_inner).take() {
            bar.finish_and_clear();
        }
    }

    /// Prints a line to stderr, unless stderr carries records.
    fn line(&self, line: &str) {
        if matches!(self.shared.json, JsonTo::Stderr | JsonTo::Messages) {
            return;
        }
        let line = words(line);
        let line = terminal::lines(&line, self.style().is_coloured());
        let bar = self.shared.bar.lock().unwrap_or_else(PoisonError::into_inner);
        match &*bar {
            Some(bar) => bar.suspend(|| to_stderr(&line)),
            None => to_stderr(&line),
        }
    }
}

/// A record with the time, in seconds since 1970. One of another program has its own.
fn dated(record: &str, now: Duration) -> String {
    match record.strip_suffix('}').filter(|rest| !rest.contains(TIME)) {
        Some(rest) => format!("{rest},{TIME}{:.3}}}", now.as_secs_f64()),
        None => record.to_owned(),
    }
}

/// The wall-clock time.
fn since_1970() -> Duration {
    let wall = Clock::start().wall();
    wall.time_of(wall.now)
}

/// Ignores errors: a broken stderr leaves no place to report them.
fn to_stderr(line: &str) {
    STDERR.try_write(format!("{line}\n"));
}

/// Prints the result of a verb to stdout. [`outcome`] reports failures.
pub(crate) fn print(text: &str) {
    STDOUT.write(terminal::lines(text, Style::of_stdout().is_coloured()).into_owned());
}

/// Prints the result of a verb in JSON, on a line of its own.
pub(crate) fn print_json(value: &Value) {
    STDOUT.write(format!("{}\n", terminal::record(&value.to_string())));
}

/// Gives the readers of a server what waits for them, before the program ends.
pub(crate) fn drain() {
    STDOUT.drain();
    STDERR.drain();
}

/// The first failure of printing. A reader that left is no failure.
pub(crate) fn outcome() -> Result<(), Fault> {
    drain();
    STDOUT.outcome().and_then(|()| STDERR.outcome())
}
