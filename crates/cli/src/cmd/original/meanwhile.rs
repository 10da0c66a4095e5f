//! Interval records and the progress bar of a running session.

use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use farhaul_originals::Progress;
use farhaul_transfer::report::bits_per_second;
use farhaul_transfer::session::measure::Meter;
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
        let mut reports = Reports { progress, meter, output: output.clone(), bar, last: Interval::default() };
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
    last: Interval,
}

impl Reports {
    fn show(&self) {
        if let Some(bar) = &self.bar {
            bar.set_length(self.progress.announced());
            bar.set_position(self.progress.bytes());
        }
    }

    fn report(&mut self) {
        let (progress, elapsed) = (&self.progress, self.meter.elapsed());
        let start_seconds = self.last.end_seconds;
        let (bytes_total, received) = (progress.bytes(), progress.packets_received());
        let (sent, again) = (progress.packets_sent(), progress.packets_retransmitted());
        let bytes = bytes_total - self.last.bytes_total;
        let time = elapsed.saturating_sub(Duration::from_secs_f64(start_seconds));
        let interval = Interval {
            start_seconds,
            end_seconds: elapsed.as_secs_f64(),
            bytes,
            bytes_total,
            goodput_bps: bits_per_second(bytes, time),
            packets_sent: sent - self.last.packets_sent,
            packets_retransmitted: again - self.last.packets_retransmitted,
            packets_received: received - self.last.packets_received,
            ..Interval::default()
        };
        self.output.record(&Record::Interval(interval.clone()));
        // The totals, from which the next interval counts.
        self.last =
            Interval { packets_sent: sent, packets_retransmitted: again, packets_received: received, ..interval };
    }
}
