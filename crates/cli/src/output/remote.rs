//! Records of the program that sends in a copy between two other hosts: shown as if they were this program's.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use farhaul_session::escape;
use serde_json::Value;

use super::Output;
use super::tracker::Tracker;

/// The setting in records that names what carries the data, if it is not UDP.
pub(crate) const CARRIER: &str = "carrier";

/// Passes records on.
pub(super) struct Relay {
    /// Whether the user wants intervals. The other program reports them for the progress bar.
    with_intervals: bool,
    has_carrier: AtomicBool,
    has_end: AtomicBool,
}

impl Relay {
    pub(super) const fn new(with_intervals: bool) -> Self {
        Self { with_intervals, has_carrier: AtomicBool::new(false), has_end: AtomicBool::new(false) }
    }

    /// Whether the data did not go over UDP.
    pub(super) fn has_carrier(&self) -> bool {
        self.has_carrier.load(Ordering::Acquire)
    }

    /// Whether the last record was passed on.
    pub(super) fn has_end(&self) -> bool {
        self.has_end.load(Ordering::Acquire)
    }

    pub(super) fn show(&self, output: &Output, tracker: &Tracker, (host, record): (&str, &Value)) {
        let event = record["event"].as_str().unwrap_or_default();
        match event {
            "start" => self.has_carrier.store(record["settings"][CARRIER].is_string(), Ordering::Release),
            "end" => self.has_end.store(true, Ordering::Release),
            _ => {}
        }
        if event != "interval" || self.with_intervals {
            output.record_value(record);
        }
        match event {
            "warning" => output.print_line(&format!("{host}: {}", text(&record["message"]))),
            "file" if record["status"] == "failed" => {
                tracker.failed();
                output.print_line(&format!("{} was not copied: {}", text(&record["path"]), text(&record["error"])));
            }
            "file" if record["status"] == "verified" => tracker.placed(0),
            "interval" => {
                let elapsed = Duration::try_from_secs_f64(record["end_seconds"].as_f64().unwrap_or(0.0));
                tracker.moved_elsewhere(elapsed.unwrap_or_default(), record["bytes_total"].as_u64().unwrap_or(0));
            }
            _ => {}
        }
    }
}

/// A text of another host, without characters that move the cursor.
fn text(value: &Value) -> String {
    escape(value.as_str().unwrap_or_default().as_bytes())
}
