//! Interval records and the progress bar of a running session.

use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use farhaul_originals::{Figures, Progress};
use farhaul_transfer::internal::report::bits_per_second;
use farhaul_transfer::internal::session::measure::Meter;
use indicatif::ProgressBar;

use crate::exit::Fault;
use crate::output::Output;
use crate::output::json::{Interval, Record};

/// Time between two looks at the figures for the bar.
const LOOK: Duration = Duration::from_millis(100);

/// A thread that reports until its drop.
pub(super) struct Meanwhile {
    ends: Option<SyncSender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Meanwhile {
    /// Reports to `output` at each `interval`, and shows the bytes on `bar`.
    pub(super) fn start(
        progress: Progress,
        meter: Meter,
        output: &Output,
        interval: Option<Duration>,
        bar: Option<ProgressBar>,
    ) -> Result<Self, Fault> {
        if interval.is_none() && bar.is_none() {
            return Ok(Self { ends: None, thread: None });
        }
        // Its end is the message.
        let (ends, ended) = sync_channel(0);
        let output = output.clone();
        let mut reports = Reports { progress, meter, output, bar, since: Duration::ZERO, before: Figures::default() };
        let thread = thread::Builder::new().name("progress".into()).spawn(move || {
            let mut next = interval;
            loop {
                let passed = reports.meter.elapsed();
                let left = next.map_or(LOOK, |next| next.saturating_sub(passed).min(LOOK));
                if !matches!(ended.recv_timeout(left), Err(RecvTimeoutError::Timeout)) {
                    return;
                }
                reports.show();
                if let Some(due) = next.filter(|due| reports.meter.elapsed() >= *due) {
                    reports.report();
                    next = interval.map(|interval| due + interval);
                }
            }
        })?;
        Ok(Self { ends: Some(ends), thread: Some(thread) })
    }
}

impl Drop for Meanwhile {
    fn drop(&mut self) {
        drop(self.ends.take());
        if let Some(thread) = self.thread.take() {
            // It has nothing to say after a panic.
            let _ = thread.join();
        }
    }
}

struct Reports {
    progress: Progress,
    meter: Meter,
    output: Output,
    bar: Option<ProgressBar>,
    /// The end of the last interval, and the figures then.
    since: Duration,
    before: Figures,
}

impl Reports {
    fn show(&self) {
        if let Some(bar) = &self.bar {
            let now = self.progress.figures();
            bar.set_length(now.announced);
            bar.set_position(now.bytes);
        }
    }

    fn report(&mut self) {
        let (now, elapsed, before) = (self.progress.figures(), self.meter.elapsed(), self.before);
        let bytes = now.bytes - before.bytes;
        self.output.record(&Record::Interval(Interval {
            start_seconds: self.since.as_secs_f64(),
            end_seconds: elapsed.as_secs_f64(),
            bytes,
            bytes_total: now.bytes,
            goodput_bps: bits_per_second(bytes, elapsed.saturating_sub(self.since)),
            packets_sent: now.packets_sent - before.packets_sent,
            packets_retransmitted: now.packets_retransmitted - before.packets_retransmitted,
            packets_received: now.packets_received - before.packets_received,
            ..Interval::default()
        }));
        (self.since, self.before) = (elapsed, now);
    }
}
