//! What a transfer has moved so far, for everything that shows it: the bar, SIGUSR1, `ctl`, metrics.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use farhaul::Stats;
use farhaul_session::{Entry, EntryKind};
use farhaul_transfer::internal::event::Moved;
use farhaul_transfer::internal::report::micros;
use farhaul_units::{ByteSize, Rate};
use serde_json::{Map, Value, json};

use farhaul_transfer::internal::text::count;

use super::human::{percent, plural};

/// The rate is that of the last such time: so long that a burst or a pause of the path does not swing the estimate.
const WINDOW: Duration = Duration::from_secs(10);
/// Time between the samples of the rate.
const SAMPLE: Duration = Duration::from_millis(250);
/// With fewer files in that time, their number says nothing of the rest.
const ENOUGH_FILES: u64 = 16;
/// An estimate before this time would be one of start-up.
const SETTLES: Duration = Duration::from_secs(2);
/// Longest remaining time that is shown: 100 h.
const LONGEST: Duration = Duration::from_secs(360_000);
/// A last phase of this time without a byte is worth a word: confirmations take an RTT anyway.
const LAST_PHASE: Duration = Duration::from_millis(500);

/// The amounts of a transfer. Clones share everything.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tracker {
    shared: Arc<Mutex<Amounts>>,
}

#[derive(Debug, Default)]
struct Amounts {
    /// Bytes and files in all, if known.
    total: Total,
    /// The one source has no name of its own, so its size is the total.
    takes_size_of_first: bool,
    /// Payload bytes, acknowledged or arrived.
    bytes: u64,
    /// Time of the last sample, since the begin.
    elapsed: Duration,
    /// When a byte moved last.
    moved_at: Duration,
    sends: bool,
    begun: u64,
    files: u64,
    failed: u64,
    /// Sizes of the files with their final names, and of those that did not have to move.
    placed: u64,
    kept: u64,
    /// Times, bytes and files done, the oldest first.
    samples: VecDeque<(Duration, u64, u64)>,
    connections: Vec<Stats>,
}

/// The amounts of the whole transfer, as far as they are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Total {
    pub(crate) bytes: Option<u64>,
    pub(crate) files: Option<u64>,
}

/// The amounts at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Snapshot {
    pub(crate) elapsed: Duration,
    pub(crate) bytes: u64,
    pub(crate) total: Total,
    /// Files with their final names.
    pub(crate) files: u64,
    pub(crate) failed: u64,
    /// Payload of the last seconds; `None` before two samples.
    pub(crate) rate: Option<Rate>,
    /// Time left by that rate; `None` if nobody knows.
    pub(crate) left: Option<Duration>,
    /// Everything has moved, and this side waits for the end.
    pub(crate) last_phase: Option<&'static str>,
    pub(crate) connections: Vec<Stats>,
}

impl Tracker {
    /// One whose first file is the only one.
    pub(crate) fn of_one_file() -> Self {
        let tracker = Self::default();
        tracker.amounts().takes_size_of_first = true;
        tracker
    }

    /// The amounts of the whole transfer are these.
    pub(crate) fn set_total(&self, total: Total) {
        self.amounts().total = total;
    }

    /// Another attempt begins, and counts what is there anew.
    pub(crate) fn begin_again(&self) {
        let mut amounts = self.amounts();
        let (total, takes_size_of_first) = (amounts.total, amounts.takes_size_of_first);
        *amounts = Amounts { total, takes_size_of_first, ..Amounts::default() };
    }

    /// A file begins to move.
    pub(crate) fn begun(&self, entry: &Entry) {
        let mut amounts = self.amounts();
        if entry.kind == EntryKind::File {
            amounts.begun += 1;
        }
        if amounts.takes_size_of_first && amounts.begun == 1 && entry.has_size() {
            amounts.total = Total { bytes: Some(entry.size), files: Some(1) };
        }
    }

    /// A file of this size has its final name.
    pub(crate) fn placed(&self, size: u64) {
        let mut amounts = self.amounts();
        amounts.files += 1;
        amounts.placed = amounts.placed.saturating_add(size);
    }

    /// The target had a file of this size.
    pub(crate) fn kept(&self, size: u64) {
        let mut amounts = self.amounts();
        amounts.files += 1;
        amounts.kept = amounts.kept.saturating_add(size);
    }

    /// A file was not copied.
    pub(crate) fn failed(&self) {
        self.amounts().failed += 1;
    }

    /// Time passes, and bytes may have moved.
    pub(crate) fn moved(&self, moved: &Moved<'_>) {
        let mut amounts = self.amounts();
        amounts.sends = moved.sends;
        amounts.connections.clear();
        amounts.connections.extend_from_slice(moved.connections);
        amounts.sample(moved.elapsed, moved.bytes());
    }

    /// The same of a pipe, whose bytes go both ways.
    pub(crate) fn moved_both_ways(&self, moved: &Moved<'_>) {
        let of = |stats: &Stats| stats.totals.bytes_acked + stats.totals.bytes_read;
        let mut amounts = self.amounts();
        amounts.connections.clear();
        amounts.connections.extend_from_slice(moved.connections);
        amounts.sample(moved.elapsed, moved.connections.iter().map(of).sum());
    }

    /// The same of another program, which tells only this.
    pub(crate) fn moved_elsewhere(&self, elapsed: Duration, bytes: u64) {
        self.amounts().sample(elapsed, bytes);
    }

    /// The amounts now.
    pub(crate) fn snapshot(&self) -> Snapshot {
        self.amounts().snapshot()
    }

    /// The content, even after a panic: numbers are always consistent enough to be shown.
    fn amounts(&self) -> MutexGuard<'_, Amounts> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Amounts {
    fn sample(&mut self, elapsed: Duration, bytes: u64) {
        if bytes > self.bytes {
            self.moved_at = elapsed;
        }
        (self.bytes, self.elapsed) = (bytes, elapsed);
        if self.samples.back().is_none_or(|(at, ..)| elapsed.saturating_sub(*at) >= SAMPLE) {
            self.samples.push_back((elapsed, bytes, self.done()));
        }
        while self.samples.get(1).is_some_and(|(at, ..)| elapsed.saturating_sub(*at) >= WINDOW) {
            self.samples.pop_front();
        }
    }

    /// Files that nothing more happens to.
    const fn done(&self) -> u64 {
        self.files + self.failed
    }

    /// The time that the remaining files take, if they go on as the last ones: where files are small, their number counts.
    fn left_by_files(&self) -> Option<Duration> {
        let (at, _, done) = self.samples.front()?;
        let lately = self.done().saturating_sub(*done);
        let rest = self.total.files?.saturating_sub(self.done());
        let time = self.elapsed.saturating_sub(*at).as_secs_f64();
        (lately >= ENOUGH_FILES).then(|| Duration::try_from_secs_f64(rest as f64 * time / lately as f64).ok())?
    }

    fn rate(&self) -> Option<Rate> {
        let (at, bytes, _) = self.samples.front()?;
        Rate::from_bytes_in(self.bytes.saturating_sub(*bytes), self.elapsed.saturating_sub(*at))
    }

    fn snapshot(&self) -> Snapshot {
        // Of a file that goes on, only a part moves. Frames of the session count among the bytes.
        let done = self.bytes.max(self.placed).saturating_add(self.kept);
        let bytes = self.total.bytes.map_or(self.bytes, |total| done.min(total));
        let rest = self.total.bytes.map(|total| total - bytes);
        let rate = self.rate();
        let is_over = rest == Some(0) && self.elapsed.saturating_sub(self.moved_at) >= LAST_PHASE;
        let last_phase = is_over.then_some(match self.sends {
            true => "waiting until the other side has written and confirmed everything",
            false => "writing to the disk and confirming",
        });
        let left = rest.zip(rate).filter(|_| self.elapsed >= SETTLES).and_then(|(rest, rate)| {
            let seconds = rest as f64 * 8.0 / rate.bits_per_second() as f64;
            let by_bytes = Duration::try_from_secs_f64(seconds).ok()?;
            Some(self.left_by_files().map_or(by_bytes, |by_files| by_files.max(by_bytes)))
                .filter(|left| *left < LONGEST)
        });
        Snapshot {
            elapsed: self.elapsed,
            bytes,
            total: self.total,
            files: self.files,
            failed: self.failed,
            rate,
            left: left.filter(|_| !is_over),
            last_phase,
            connections: self.connections.clone(),
        }
    }
}

impl Snapshot {
    /// The share that has moved, from 0 to 1.
    pub(crate) fn share(&self) -> Option<f64> {
        let total = self.total.bytes.filter(|total| *total > 0)?;
        Some(self.bytes as f64 / total as f64)
    }

    /// The bytes, of how many, and their share.
    pub(crate) fn amount(&self) -> String {
        match (self.total.bytes, self.share()) {
            (Some(total), Some(share)) => {
                format!("{} of {} ({})", ByteSize(self.bytes), ByteSize(total), percent(share))
            }
            _ => ByteSize(self.bytes).to_string(),
        }
    }

    /// The files; `None` for a transfer without any.
    pub(crate) fn file_count(&self) -> Option<String> {
        let failed = if self.failed > 0 { format!(", {} failed", self.failed) } else { String::new() };
        match self.total.files {
            Some(total) => Some(format!("{} of {}{failed}", count(self.files), plural(total, "file"))),
            None if self.files + self.failed > 0 => Some(format!("{}{failed}", plural(self.files, "file"))),
            None => None,
        }
    }

    /// The rate of the last seconds.
    pub(crate) fn speed(&self) -> String {
        self.rate.unwrap_or(Rate::ZERO).to_string()
    }

    /// The time left, or what it waits for at the end.
    pub(crate) fn estimate(&self) -> String {
        match (self.last_phase, self.left) {
            (Some(phase), _) => phase.to_owned(),
            (None, Some(left)) if left.as_secs() == 0 => "nearly done".to_owned(),
            (None, Some(left)) => format!("{} left", clock(left)),
            (None, None) if self.total.bytes.is_some() => "? left".to_owned(),
            (None, None) => format!("after {}", clock(self.elapsed)),
        }
    }

    /// All of it for `ctl`.
    pub(crate) fn record(&self) -> Map<String, Value> {
        let connection = |stats: &Stats| {
            json!({
                "rtt_us": micros(stats.rtt),
                "packets_sent": stats.totals.packets_sent,
                "packets_retransmitted": stats.totals.packets_retransmitted,
                "in_flight_packets": stats.in_flight,
            })
        };
        let connections: Vec<Value> = self.connections.iter().map(connection).collect();
        let fields = [
            ("seconds", self.elapsed.as_secs_f64().into()),
            ("bytes", self.bytes.into()),
            ("bytes_total", self.total.bytes.into()),
            ("files", self.files.into()),
            ("files_total", self.total.files.into()),
            ("files_failed", self.failed.into()),
            ("rate_bps", self.rate.map(Rate::bits_per_second).into()),
            ("seconds_left", self.left.map(|left| left.as_secs()).into()),
            ("waiting_for", self.last_phase.into()),
            ("connections", connections.into()),
        ];
        fields.into_iter().map(|(name, value): (&str, Value)| (name.to_owned(), value)).collect()
    }

    /// All of it in a line.
    pub(crate) fn words(&self) -> String {
        let parts = [Some(self.amount()), self.file_count(), Some(self.speed()), Some(self.estimate())];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// A time as on a clock: 0:07, 12:30, 3:05:00.
fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds / 3_600 {
        0 => format!("{}:{:02}", seconds / 60, seconds % 60),
        hours => format!("{hours}:{:02}:{:02}", seconds / 60 % 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEGABYTE: u64 = 1_000_000;

    /// A transfer of 100 MB at 1 MB a second, looked at ten times a second.
    fn after(seconds: u64, per_second: impl Fn(u64) -> u64) -> Snapshot {
        let tracker = Tracker::default();
        tracker.set_total(Total { bytes: Some(100 * MEGABYTE), files: Some(4) });
        let mut bytes = 0;
        for tenth in 0..=seconds * 10 {
            tracker.moved_elsewhere(Duration::from_millis(tenth * 100), bytes);
            bytes += per_second(tenth / 10) / 10;
        }
        tracker.snapshot()
    }

    #[test]
    fn the_estimate_comes_from_the_rate_of_the_last_seconds() {
        let steady = after(20, |_| MEGABYTE);
        assert_eq!(steady.words(), "20.0 MB of 100 MB (20.0 %), 0 of 4 files, 8.00 Mbit/s, 1:20 left");
        let slower = after(40, |second| if second < 20 { MEGABYTE } else { MEGABYTE / 4 });
        assert_eq!((slower.speed(), slower.estimate()), ("2.00 Mbit/s".to_owned(), "5:00 left".to_owned()));
    }

    #[test]
    fn many_small_files_take_as_long_as_their_number_says() {
        let tracker = Tracker::default();
        tracker.set_total(Total { bytes: Some(1_010 * MEGABYTE), files: Some(10_100) });
        // A large file has moved while 100 small ones got their names, ten a second.
        for second in 0..=10 {
            tracker.moved_elsewhere(Duration::from_secs(second), second * 100 * MEGABYTE);
            (0..10).for_each(|_| tracker.placed(1_000));
        }
        assert_eq!(tracker.snapshot().estimate(), "15:08 left");
    }

    #[test]
    fn there_is_no_estimate_at_the_begin_nor_while_nothing_moves_nor_without_a_total() {
        assert_eq!(after(1, |_| MEGABYTE).estimate(), "? left");
        assert_eq!(after(30, |_| 0).estimate(), "? left");
        let tracker = Tracker::default();
        tracker.moved_elsewhere(Duration::from_secs(62), MEGABYTE);
        assert_eq!(tracker.snapshot().words(), "1.00 MB, 0 bit/s, after 1:02");
    }

    #[test]
    fn an_attempt_after_a_lost_connection_counts_anew() {
        let tracker = Tracker::default();
        tracker.set_total(Total { bytes: Some(10 * MEGABYTE), files: Some(4) });
        tracker.moved_elsewhere(Duration::from_secs(9), 5 * MEGABYTE);
        (0..3).for_each(|_| tracker.placed(MEGABYTE));
        tracker.begin_again();
        (0..3).for_each(|_| tracker.kept(MEGABYTE));
        tracker.moved_elsewhere(Duration::from_secs(1), MEGABYTE);
        assert_eq!(tracker.snapshot().words(), "4.00 MB of 10.0 MB (40.0 %), 3 of 4 files, 0 bit/s, ? left");
    }

    #[test]
    fn the_end_says_what_it_waits_for() {
        let all = after(100, |_| MEGABYTE);
        assert_eq!((all.share(), all.estimate()), (Some(1.0), "nearly done".to_owned()));
        let waiting = after(103, |second| if second < 100 { MEGABYTE } else { 0 });
        assert_eq!(waiting.estimate(), "writing to the disk and confirming");
    }

    #[test]
    fn files_that_are_there_and_parts_that_arrived_before_count_as_done() {
        let tracker = Tracker::default();
        tracker.set_total(Total { bytes: Some(100 * MEGABYTE), files: Some(3) });
        tracker.moved_elsewhere(Duration::from_secs(4), 10 * MEGABYTE);
        tracker.kept(20 * MEGABYTE);
        assert_eq!(tracker.snapshot().bytes, 30 * MEGABYTE);
        tracker.placed(50 * MEGABYTE);
        assert_eq!((tracker.snapshot().bytes, tracker.snapshot().files), (70 * MEGABYTE, 2));
    }

    #[test]
    fn a_clock_has_hours_where_it_needs_them() {
        let at = |seconds| clock(Duration::from_secs(seconds));
        assert_eq!((at(7), at(750), at(11_100)), ("0:07".to_owned(), "12:30".to_owned(), "3:05:00".to_owned()));
    }
}
