//! The progress bar. It counts bytes at the receiver, not bytes that merely left the sender.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use farhaul_units::{ByteSize, Rate};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use crate::output::human::{self, is_terminal};
use crate::output::tracker::Snapshot;

/// Redraws per second at most: smooth, and cheap on a slow terminal.
const DRAWS_PER_SECOND: u8 = 10;
/// Interval at which the clock on an idle bar advances.
const TICK: Duration = Duration::from_millis(200);
/// Longest remaining time that the bar shows, in seconds: 100 h.
const LONGEST: f64 = 360_000.0;

/// Time between new words beside the bar of a transfer.
const WORDS: Duration = Duration::from_millis(100);

const OF_TRANSFER: &str = "{spinner} {wide_bar} {msg}";
/// Columns of a line beside its words: the spinner, a short bar, and spaces.
const BESIDE_WORDS: usize = 8;
const WITH_TOTAL: &str = "{spinner} {wide_bar} {percent:>3} %  {done} of {all}  {speed}  {prefix}  {left}";
const RUNS: &str = "{spinner} {wide_bar} {pos} of {len} runs  {left}";
const LINE: &str = "{spinner} {wide_msg}";
const WITHOUT_TOTAL: &str = "{spinner} {done}  {speed}  {prefix}  {elapsed}";

/// A bar for `total` bytes, or for an unknown number. Hidden unless stderr is a terminal.
pub(crate) fn bar(total: Option<u64>) -> ProgressBar {
    let target = match is_terminal() {
        true => ProgressDrawTarget::stderr_with_hz(DRAWS_PER_SECOND),
        false => ProgressDrawTarget::hidden(),
    };
    let bar = ProgressBar::with_draw_target(total, target);
    bar.set_style(style(if total.is_some() { WITH_TOTAL } else { WITHOUT_TOTAL }));
    bar.enable_steady_tick(TICK);
    bar
}

/// The bar of a transfer. Its total may become known while it runs.
#[derive(Clone)]
pub(crate) struct TransferBar {
    bar: ProgressBar,
    /// When it was last drawn anew, since the begin, in milliseconds.
    drawn: Arc<AtomicU64>,
}

impl TransferBar {
    /// Hidden unless stderr is a terminal.
    pub(crate) fn new() -> Self {
        let bar = line();
        bar.set_message("connecting");
        Self { bar, drawn: Arc::default() }
    }

    /// To be shown below other lines.
    pub(crate) fn on_screen(&self) -> ProgressBar {
        self.bar.clone()
    }

    /// Shows these amounts, and the RTT.
    pub(crate) fn show(&self, now: &Snapshot) {
        self.drawn.store(millis(now.elapsed), Ordering::Relaxed);
        if let Some(total) = now.total.bytes.filter(|total| *total > 0) {
            if self.bar.length().is_none() {
                self.bar.set_style(style(OF_TRANSFER));
            }
            self.bar.set_length(total);
        }
        self.bar.set_position(now.bytes);
        let rtt = now.connections.first().map(|stats| format!("RTT {}", human::time(stats.rtt)));
        let room = human::columns_of_stderr().map_or(usize::MAX, |columns| columns.saturating_sub(BESIDE_WORDS));
        self.bar.set_message(fitting(now, rtt, room));
    }

    /// Whether the words beside it are old.
    pub(crate) fn is_due(&self, elapsed: Duration) -> bool {
        millis(elapsed).saturating_sub(self.drawn.load(Ordering::Relaxed)) >= millis(WORDS)
    }
}

/// As many words as fit: the RTT goes first, then the share, which the bar shows, and the rate.
fn fitting(now: &Snapshot, rtt: Option<String>, room: usize) -> String {
    let (amount, speed, estimate, files) = (now.amount(), now.speed(), now.estimate(), now.file_count());
    let short = amount.split(" (").next().unwrap_or_default().to_owned();
    let forms = [
        [Some(amount.clone()), Some(speed.clone()), Some(estimate.clone()), files.clone(), rtt],
        [Some(amount), Some(speed.clone()), Some(estimate.clone()), files.clone(), None],
        [Some(short.clone()), Some(speed), Some(estimate.clone()), files.clone(), None],
        [Some(short), None, Some(estimate.clone()), files, None],
    ];
    let lines = forms.map(|parts| parts.into_iter().flatten().collect::<Vec<_>>().join("  "));
    lines.into_iter().find(|line| line.chars().count() <= room).unwrap_or(estimate)
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A bar for runs of the lab. Hidden unless stderr is a terminal.
pub(crate) fn runs() -> ProgressBar {
    let bar = bar(Some(0));
    bar.set_style(style(RUNS));
    bar
}

/// A line that is redrawn in place. Hidden unless stderr is a terminal.
pub(crate) fn line() -> ProgressBar {
    let line = bar(None);
    line.set_style(style(LINE));
    line
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template)
        .expect("the templates above are well formed")
        .progress_chars("━╸─")
        .with_key("done", |state: &ProgressState, w: &mut dyn std::fmt::Write| {
            let _ = write!(w, "{}", ByteSize(state.pos()));
        })
        .with_key("all", |state: &ProgressState, w: &mut dyn std::fmt::Write| {
            let _ = write!(w, "{}", ByteSize(state.len().unwrap_or(0)));
        })
        .with_key("speed", |state: &ProgressState, w: &mut dyn std::fmt::Write| {
            let _ = write!(w, "{}", speed(state.per_sec()));
        })
        .with_key("left", |state: &ProgressState, w: &mut dyn std::fmt::Write| {
            let _ = w.write_str(&left(state.len().unwrap_or(0).saturating_sub(state.pos()), state.per_sec()));
        })
}

/// Time for `remaining` steps at `per_second`; unknown while the rate is zero.
fn left(remaining: u64, per_second: f64) -> String {
    let seconds = remaining as f64 / per_second;
    if remaining == 0 || seconds < 1.0 {
        "nearly done".to_owned()
    } else if seconds < LONGEST {
        format!("{}:{:02} left", seconds as u64 / 60, seconds as u64 % 60)
    } else {
        "? left".to_owned()
    }
}

/// The rate in bits for a smoothed rate in bytes.
fn speed(bytes_per_second: f64) -> Rate {
    Rate::from_bits_per_second((bytes_per_second * 8.0).clamp(0.0, 1e15) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_large_tree_fit_into_a_terminal() {
        let total = crate::output::tracker::Total { bytes: Some(1_050_000_000), files: Some(20_000) };
        let now = Snapshot {
            bytes: 519_000_000,
            total,
            files: 12_345,
            rate: Some(Rate::from_megabits_per_second(900)),
            ..Snapshot::default()
        };
        let fits = |columns: usize| fitting(&now, Some("RTT 123 ms".to_owned()), columns - BESIDE_WORDS);
        assert_eq!(fits(120), "519 MB of 1.05 GB (49.4 %)  900 Mbit/s  ? left  12 345 of 20 000 files  RTT 123 ms");
        assert_eq!(fits(80), "519 MB of 1.05 GB (49.4 %)  900 Mbit/s  ? left  12 345 of 20 000 files");
        assert_eq!(fits(70), "519 MB of 1.05 GB  900 Mbit/s  ? left  12 345 of 20 000 files");
        assert_eq!(
            (fits(60).as_str(), fits(30).as_str()),
            ("519 MB of 1.05 GB  ? left  12 345 of 20 000 files", "? left")
        );
    }

    #[test]
    fn the_time_left_is_unknown_while_nothing_moves() {
        assert_eq!(left(400_000_000, 0.0), "? left");
        assert_eq!(left(400_000_000, 1.0), "? left");
        assert_eq!(left(400_000_000, 5_000_000.0), "1:20 left");
        assert_eq!(left(3, 0.25), "0:12 left");
        assert_eq!(left(100_000, 5_000_000.0), "nearly done");
        assert_eq!(left(0, 0.0), "nearly done");
    }
}
