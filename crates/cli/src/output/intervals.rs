//! What people and scripts see of a running transfer: intervals, the trace.

use std::time::Duration;

use farhaul::Stats;
use farhaul_transfer::internal::event::Moved;
use farhaul_transfer::internal::report::{bits_per_second, micros};
use farhaul_units::{ByteSize, Rate};

use super::Output;
use super::human;
use super::json::{Interval, Record};
use super::trace::Trace;

/// The view of the connections of a session.
pub(crate) struct View {
    pub(crate) output: Output,
    /// Numbers the sessions of a listener.
    pub(crate) session: Option<u64>,
    /// Numbers the flows of a measurement. Their intervals go to records only.
    pub(crate) flow: Option<u64>,
    /// Length of reported intervals.
    pub(crate) interval: Option<Duration>,
    pub(crate) trace: Option<Trace>,
}

/// The sum of several connections, for the fields of intervals.
fn sum(all: &[Stats]) -> Stats {
    let Some((first, others)) = all.split_first() else { return Stats::default() };
    let mut sum = *first;
    for stats in others {
        let (into, from) = (&mut sum.totals, &stats.totals);
        into.bytes_acked += from.bytes_acked;
        into.bytes_read += from.bytes_read;
        into.packets_sent += from.packets_sent;
        into.packets_retransmitted += from.packets_retransmitted;
        into.packets_received += from.packets_received;
        sum.cwnd = sum.cwnd.saturating_add(stats.cwnd);
        sum.in_flight = sum.in_flight.saturating_add(stats.in_flight);
        sum.rtt += stats.rtt;
    }
    sum.rtt /= u32::try_from(all.len()).unwrap_or(u32::MAX);
    sum
}

/// Turns snapshots into intervals.
pub(crate) struct Intervals {
    view: View,
    /// When the present interval began, counted from the begin of the session.
    since: Duration,
    before: Stats,
}

impl Intervals {
    pub(crate) fn of(view: View) -> Self {
        Self { view, since: Duration::ZERO, before: Stats::default() }
    }

    /// Shows the state of the connections, the sum of all.
    pub(crate) fn show(&mut self, moved: &Moved<'_>) {
        let stats = sum(moved.connections);
        self.trace(moved);
        let Some(every) = self.view.interval else { return };
        let passed = moved.elapsed.saturating_sub(self.since);
        // A last interval shorter than a tenth is noise.
        if passed >= every || (moved.is_last && passed >= every / 10) {
            self.report(moved.elapsed, &stats, moved.sends);
            self.since = moved.elapsed;
            self.before = stats;
        }
    }

    fn trace(&self, moved: &Moved<'_>) {
        let Some(trace) = &self.view.trace else { return };
        let group = self.view.session.or(self.view.flow).unwrap_or(1).to_string();
        moved.connections.iter().for_each(|stats| trace.metrics(&group, moved.elapsed, stats));
        if moved.is_last {
            trace.flush();
        }
    }

    fn report(&self, now: Duration, stats: &Stats, sends: bool) {
        let (totals, before) = (&stats.totals, &self.before.totals);
        let moved = bytes(stats, sends).saturating_sub(bytes(&self.before, sends));
        let interval = Interval {
            session: self.view.session,
            flow: self.view.flow,
            start_seconds: self.since.as_secs_f64(),
            end_seconds: now.as_secs_f64(),
            bytes: moved,
            bytes_total: bytes(stats, sends),
            goodput_bps: bits_per_second(moved, now.saturating_sub(self.since)),
            packets_sent: totals.packets_sent.saturating_sub(before.packets_sent),
            packets_retransmitted: totals.packets_retransmitted.saturating_sub(before.packets_retransmitted),
            packets_received: totals.packets_received.saturating_sub(before.packets_received),
            rtt_us: micros(stats.rtt),
            cwnd_packets: stats.cwnd,
            in_flight_packets: stats.in_flight,
        };
        if self.view.flow.is_none() {
            self.view.output.print_line(&line(&interval, sends));
        }
        self.view.output.record(&Record::Interval(interval));
    }
}

/// The progress of a session: what the peer has acknowledged, or what arrived here.
const fn bytes(stats: &Stats, sends: bool) -> u64 {
    if sends { stats.totals.bytes_acked } else { stats.totals.bytes_read }
}

fn line(interval: &Interval, sends: bool) -> String {
    // Sessions of a listener run concurrently.
    let session = interval.session.map_or(String::new(), |session| format!("[{session}] "));
    let mut line = format!(
        "{session}{:>5.1} to {:>5.1} s   {:>8}   {:>11}   RTT {:>7}",
        interval.start_seconds,
        interval.end_seconds,
        ByteSize(interval.bytes).to_string(),
        Rate::from_bits_per_second(interval.goodput_bps).to_string(),
        human::time(Duration::from_micros(interval.rtt_us)),
    );
    if sends {
        line.push_str(&format!("   {:>5} packets retransmitted", human::count(interval.packets_retransmitted)));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_stand_in_columns() {
        let interval =
            Interval { end_seconds: 1.0, bytes: 21_200_000, goodput_bps: 168_000_000, ..Interval::default() };
        let slow = Interval { start_seconds: 99.0, end_seconds: 100.0, rtt_us: 24_700, ..Interval::default() };
        let (first, second) = (line(&interval, true), line(&slow, true));
        assert_eq!(first.chars().count(), second.chars().count(), "{first}\n{second}");
        assert!(line(&Interval { session: Some(3), ..slow }, false).starts_with("[3] "));
    }
}
