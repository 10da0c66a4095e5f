//! Everything that is printed: data and JSON to stdout, all else to stderr.

pub(crate) mod human;
pub(crate) mod json;
pub(crate) mod progress;
pub(crate) mod standard_stream;
pub(crate) mod trace;

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use indicatif::ProgressBar;

use crate::exit::{Code, Fault};
use human::Style;
use json::{End, ErrorRecord, Record};
use serde_json::Value;
use standard_stream::{STDERR, STDOUT};

/// Which records of this program there were: `start` comes once, `end` in any case.
static WRITTEN: Written = Written { start: AtomicBool::new(false), end: AtomicBool::new(false) };

struct Written {
    start: AtomicBool,
    end: AtomicBool,
}

impl Written {
    /// Takes note of `record`; false if it was there already and comes once only.
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

/// Takes note that a verb with records of its own has begun, or ended.
pub(crate) fn has_written(event: &str) {
    match event {
        "start" => WRITTEN.start.store(true, Ordering::Release),
        _ => WRITTEN.end.store(true, Ordering::Release),
    }
}

/// Whether the first record is written.
pub(crate) fn has_begun() -> bool {
    WRITTEN.start.load(Ordering::Acquire)
}

/// The records that are still missing when the program fails with `fault`; `start` is none where nobody knows the settings.
pub(crate) fn conclude(to: JsonTo, start: Option<&Value>, end: End, fault: &Fault) {
    let (output, started) = (Output::new(to), WRITTEN.start.load(Ordering::Acquire));
    // A listener that is stopped has had an end for each session.
    let is_stopped = started && matches!(fault.code, Code::Interrupted | Code::Terminated);
    if !output.is_json() || is_stopped || WRITTEN.end.load(Ordering::Acquire) && started {
        return;
    }
    if let Some(start) = start.filter(|_| !started) {
        output.write(&start.to_string());
    }
    let (exit_code, error) = (fault.code.exit(), Some(ErrorRecord::from(fault)));
    output.record(&Record::End(Box::new(End { exit_code, error, ..end })));
}

/// Where a verb's words go. Clones share everything.
#[derive(Clone)]
pub(crate) struct Output {
    shared: Arc<Shared>,
}

struct Shared {
    json: JsonTo,
    style: Style,
    /// The bar that lines must be printed above.
    bar: Mutex<Option<ProgressBar>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JsonTo {
    Nowhere,
    Stdout,
    /// For verbs whose stdout is data.
    Stderr,
}

impl Output {
    pub(crate) fn new(json: JsonTo) -> Self {
        Self { shared: Arc::new(Shared { json, style: Style::of_stderr(), bar: Mutex::new(None) }) }
    }

    /// JSON records on stdout, or words for people.
    pub(crate) fn from_flag(json: bool) -> Self {
        Self::new(if json { JsonTo::Stdout } else { JsonTo::Nowhere })
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

    /// Writes a record of a verb's own kind, if JSON is wanted.
    pub(crate) fn write(&self, record: &str) {
        let line = format!("{record}\n");
        match self.shared.json {
            JsonTo::Nowhere => {}
            JsonTo::Stdout => STDOUT.write(io::stdout().lock(), &line),
            JsonTo::Stderr => STDERR.write(io::stderr().lock(), &line),
        }
    }

    /// Prints a line for people to stderr, unless JSON is wanted.
    pub(crate) fn say(&self, line: &str) {
        if !self.is_json() {
            self.line(line);
        }
    }

    /// A warning: a line for people, and a record.
    pub(crate) fn warn(&self, message: &str) {
        self.record(&Record::Warning { message: message.to_owned() });
        self.line(&format!("{} {message}", self.style().yellow("warning:")));
    }

    /// What SIGUSR1 asked for. A record only where stderr is for records: whoever reads those did not ask.
    pub(crate) fn state(&self, line: &str) {
        if self.shared.json == JsonTo::Stderr {
            self.record(&Record::State { message: line.to_owned() });
        }
        self.line(&format!("{} {line}", self.style().bold("state:")));
    }

    /// Why the program fails.
    pub(crate) fn error(&self, fault: &Fault) {
        self.line(&format!("{} {fault}", self.style().red("farhaul:")));
    }

    /// Lines are printed above `bar` from now on.
    pub(crate) fn attach(&self, bar: ProgressBar) {
        *self.shared.bar.lock().unwrap_or_else(PoisonError::into_inner) = Some(bar);
    }

    /// Does `what` while no bar is on the screen.
    pub(crate) fn suspend(&self, what: impl FnOnce()) {
        let bar = self.shared.bar.lock().unwrap_or_else(PoisonError::into_inner);
        match &*bar {
            Some(bar) => bar.suspend(what),
            None => what(),
        }
    }

    /// Takes the bar from the screen.
    pub(crate) fn detach(&self) {
        if let Some(bar) = self.shared.bar.lock().unwrap_or_else(PoisonError::into_inner).take() {
            bar.finish_and_clear();
        }
    }

    /// Where stderr is for records, each line there is one.
    fn line(&self, line: &str) {
        if self.shared.json == JsonTo::Stderr {
            return;
        }
        let bar = self.shared.bar.lock().unwrap_or_else(PoisonError::into_inner);
        match &*bar {
            Some(bar) => bar.suspend(|| to_stderr(line)),
            None => to_stderr(line),
        }
    }
}

/// Nobody can be told when stderr is gone.
fn to_stderr(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Prints to stdout what a verb was asked for; [`outcome`] knows whether that worked.
pub(crate) fn print(text: &str) {
    STDOUT.write(io::stdout().lock(), text);
}

/// Why something that was to be printed is missing, if it is not that nobody reads it.
pub(crate) fn outcome() -> Result<(), Fault> {
    STDOUT.outcome().and_then(|()| STDERR.outcome())
}
