//! When the sender was sending without a pause, as its receiver's reports must know it.
//!
//! A report that arrives now counts what left about one RTT ago. The wait for a bitmap lies between two blasts. A report
//! that covers a part of it says nothing about the path.

use farhaul_units::{Duration, Instant};

/// The present and the last time without a pause. Pauses last an RTT at least, so no earlier one is asked for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Activity {
    since: Option<Instant>,
    last: Option<(Instant, Instant)>,
    /// When the last report came.
    reported: Instant,
    /// Reports were withheld since the last one that counted.
    gap: bool,
}

/// The use of a report for measuring the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Worth {
    /// It covers a pause.
    Nothing,
    /// A measurement may begin with it.
    Start,
    /// It continues a measurement.
    Counts,
}

impl Activity {
    /// Packets left.
    pub(super) fn on_sent(&mut self, now: Instant) {
        self.since.get_or_insert(now);
    }

    /// There is nothing to send.
    pub(super) fn pause(&mut self, now: Instant) {
        if let Some(since) = self.since.take() {
            self.last = Some((since, now));
        }
    }

    /// A report came. A rate that grows while reports come must not grow during a pause.
    pub(super) fn on_report(&mut self, now: Instant, round_trip: Duration) -> Worth {
        let busy = self.covers(now, round_trip);
        self.reported = now;
        let gap = std::mem::replace(&mut self.gap, !busy);
        match (busy, gap) {
            (false, _) => Worth::Nothing,
            (true, true) => Worth::Start,
            (true, false) => Worth::Counts,
        }
    }

    /// Whether the sender paused at no time that the report covers beyond the one before.
    fn covers(&self, now: Instant, round_trip: Duration) -> bool {
        // A part more than the RTT, because the first packets of a blast may be late.
        let from = self.reported.saturating_sub(round_trip + round_trip / 8);
        let until = now.saturating_sub(round_trip);
        self.since.is_some_and(|since| since <= from)
            || self.last.is_some_and(|(since, end)| since <= from && until <= end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND_TRIP: Duration = Duration::from_millis(80);

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn a_report_counts_if_all_that_it_covers_was_sent_without_a_pause() {
        let mut activity = Activity::default();
        activity.on_sent(at(1_000));
        activity.pause(at(1_200));
        activity.on_sent(at(1_280));
        let reports: Vec<(u64, Worth)> =
            (1_000..1_500).step_by(10).map(|time| (time, activity.on_report(at(time), ROUND_TRIP))).collect();
        let of = |worth| reports.iter().filter(move |report| report.1 == worth).map(|report| report.0);
        // Reports of the first span come one RTT later, and those of the second from 1380 ms on.
        assert!(of(Worth::Start).eq([1_100, 1_380]));
        assert!(of(Worth::Counts).eq((1_110..=1_280).step_by(10).chain((1_390..1_500).step_by(10))));
    }
}
