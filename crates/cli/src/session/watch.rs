//! Polls a connection while it works: samples of the RTT, intervals, the progress bar.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use farhaul::{Stats, Stream};
use farhaul_udp::Clock;
use farhaul_units::{ByteSize, Instant, Rate};
use indicatif::ProgressBar;

use crate::output::Output;
use crate::output::human;
use crate::output::json::{Interval, Record, RttMicros, bits_per_second, micros};
use crate::output::trace::Trace;

/// Polling interval: enough samples for a 99th percentile within seconds, at negligible cost.
const TICK: Duration = Duration::from_millis(20);
/// Most samples. Beyond, every other one is dropped, and the sampling rate is halved.
const MAX_SAMPLES: usize = 4096;

/// The view of a connection.
pub(crate) struct View {
    pub(crate) output: Output,
    /// Numbers the sessions of a listener.
    pub(crate) session: Option<u64>,
    /// Numbers the flows of a measurement. Their intervals go to records only.
    pub(crate) flow: Option<u64>,
    /// This side sends. Its progress is acknowledged bytes, a receiver's is received bytes.
    pub(crate) sends: bool,
    /// Length of reported intervals.
    pub(crate) interval: Option<Duration>,
    pub(crate) bar: Option<ProgressBar>,
    pub(crate) trace: Option<Trace>,
}

/// A polling thread. [`Watch::stop`] ends it.
pub(crate) struct Watch {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// RTTs measured so far; empty without a watch.
#[derive(Clone, Default)]
pub(crate) struct RoundTrips(Option<Arc<Shared>>);

impl RoundTrips {
    /// Summary of the RTTs so far, or of `now` if there are none yet.
    pub(crate) fn summary(&self, now: &Stats) -> RttMicros {
        let seen = self.0.as_ref().map_or_else(RttMicros::default, |shared| shared.state().samples.summary());
        if seen.mean > 0 {
            return seen;
        }
        let mut samples = Samples::default();
        samples.add(now);
        samples.summary()
    }
}

struct Shared {
    state: Mutex<State>,
    bell: Condvar,
}

#[derive(Default)]
struct State {
    stopped: bool,
    samples: Samples,
}

impl Watch {
    /// Starts polling `streams`, and shows their sum.
    pub(crate) fn start(streams: Vec<Stream>, clock: Clock, view: View) -> io::Result<Self> {
        let shared = Arc::new(Shared { state: Mutex::default(), bell: Condvar::new() });
        let its = Arc::clone(&shared);
        let thread = thread::Builder::new().name("watch".into()).spawn(move || its.run(&streams, clock, view))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Summary of the RTTs so far.
    pub(crate) fn rtt(&self) -> RttMicros {
        self.shared.state().samples.summary()
    }

    /// A handle to the RTTs, for later summaries.
    pub(crate) fn round_trips(&self) -> RoundTrips {
        RoundTrips(Some(Arc::clone(&self.shared)))
    }

    /// Reports the last interval, and ends the thread.
    pub(crate) fn stop(&mut self) {
        self.shared.state().stopped = true;
        self.shared.bell.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, streams: &[Stream], clock: Clock, view: View) {
        let mut intervals = Intervals::new(view, clock.now());
        let mut seen = vec![Stats::default(); streams.len()];
        let mut state = self.state();
        while !state.stopped {
            state = self.bell.wait_timeout(state, TICK).unwrap_or_else(PoisonError::into_inner).0;
            let stopped = state.stopped;
            drop(state);
            // A stream that has ended keeps its last figures.
            for (seen, stream) in seen.iter_mut().zip(streams) {
                *seen = stream.stats().unwrap_or(*seen);
            }
            intervals.look(clock.now(), &sum(&seen), stopped);
            intervals.trace(clock.now(), &seen, stopped);
            state = self.state();
            seen.iter().for_each(|stats| state.samples.add(stats));
        }
    }
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

/// Turns snapshots into intervals and progress.
struct Intervals {
    view: View,
    began: Instant,
    since: Instant,
    before: Stats,
}

impl Intervals {
    fn new(view: View, now: Instant) -> Self {
        Self { view, began: now, since: now, before: Stats::default() }
    }

    fn look(&mut self, now: Instant, stats: &Stats, last: bool) {
        if let Some(bar) = &self.view.bar {
            bar.set_position(self.bytes(stats).min(bar.length().unwrap_or(u64::MAX)));
            bar.set_prefix(format!("RTT {}", human::time(stats.rtt)));
        }
        let Some(every) = self.view.interval else { return };
        // A last interval shorter than a tenth is noise.
        if now - self.since >= every || (last && now - self.since >= every / 10) {
            self.report(now, stats);
            self.since = now;
            self.before = *stats;
        }
    }

    fn trace(&self, now: Instant, all: &[Stats], last: bool) {
        let Some(trace) = &self.view.trace else { return };
        let group = self.view.session.or(self.view.flow).unwrap_or(1).to_string();
        all.iter().for_each(|stats| trace.metrics(&group, now - self.began, stats));
        if last {
            trace.flush();
        }
    }

    const fn bytes(&self, stats: &Stats) -> u64 {
        if self.view.sends { stats.totals.bytes_acked } else { stats.totals.bytes_read }
    }

    fn report(&self, now: Instant, stats: &Stats) {
        let (totals, before) = (&stats.totals, &self.before.totals);
        let bytes = self.bytes(stats).saturating_sub(self.bytes(&self.before));
        let interval = Interval {
            session: self.view.session,
            flow: self.view.flow,
            start_seconds: (self.since - self.began).as_secs_f64(),
            end_seconds: (now - self.began).as_secs_f64(),
            bytes,
            bytes_total: self.bytes(stats),
            goodput_bps: bits_per_second(bytes, now - self.since),
            packets_sent: totals.packets_sent.saturating_sub(before.packets_sent),
            packets_retransmitted: totals.packets_retransmitted.saturating_sub(before.packets_retransmitted),
            packets_received: totals.packets_received.saturating_sub(before.packets_received),
            rtt_us: micros(stats.rtt),
            cwnd_packets: stats.cwnd,
            in_flight_packets: stats.in_flight,
        };
        if self.view.flow.is_none() {
            self.view.output.say(&line(&interval, self.view.sends));
        }
        self.view.output.record(&Record::Interval(interval));
    }
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

/// RTTs in microseconds, thinned out as they become many.
#[derive(Default)]
struct Samples {
    kept: Vec<u32>,
    /// Samples skipped after each kept one.
    stride: usize,
    skipped: usize,
    min: Option<u64>,
}

impl Samples {
    fn add(&mut self, stats: &Stats) {
        // A side that only receives has a meaningless default at first.
        let least = micros(stats.min_rtt);
        if least == 0 || stats.totals.acks_received + stats.totals.acks_sent == 0 {
            return;
        }
        self.min = Some(self.min.map_or(least, |before| before.min(least)));
        self.skipped += 1;
        if self.skipped <= self.stride {
            return;
        }
        self.skipped = 0;
        self.kept.push(u32::try_from(micros(stats.rtt)).unwrap_or(u32::MAX));
        if self.kept.len() == MAX_SAMPLES {
            let mut index = 0;
            self.kept.retain(|_| {
                index += 1;
                index % 2 == 0
            });
            self.stride = self.stride * 2 + 1;
        }
    }

    fn summary(&self) -> RttMicros {
        if self.kept.is_empty() {
            return RttMicros::default();
        }
        let mut sorted = self.kept.clone();
        sorted.sort_unstable();
        let mean = sorted.iter().map(|&rtt| u64::from(rtt)).sum::<u64>() / sorted.len() as u64;
        // Nearest rank: the largest of fewer than 100 samples.
        let p99 = u64::from(sorted[(sorted.len() * 99).div_ceil(100) - 1]);
        RttMicros { min: self.min.unwrap_or(mean).min(mean), mean, p99 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats(millis: u64) -> Stats {
        let mut stats = Stats::default();
        stats.totals.acks_received = 1;
        stats.rtt = Duration::from_millis(millis);
        stats.min_rtt = Duration::from_millis(1);
        stats
    }

    #[test]
    fn a_long_transfer_keeps_few_samples_and_the_right_summary() {
        let mut samples = Samples::default();
        (0..100_000u64).for_each(|sample| samples.add(&stats(if sample % 50 == 0 { 200 } else { 100 })));
        assert!(samples.kept.len() < MAX_SAMPLES);
        let rtt = samples.summary();
        assert_eq!(rtt.min, 1_000);
        assert!((99_000..105_000).contains(&rtt.mean), "{rtt:?}");
    }

    #[test]
    fn rtts_before_the_first_measurement_do_not_count() {
        let mut samples = Samples::default();
        let mut early = stats(100);
        early.min_rtt = Duration::ZERO;
        samples.add(&early);
        assert_eq!(samples.summary(), RttMicros::default());
        samples.add(&stats(5));
        assert_eq!(samples.summary(), RttMicros { min: 1_000, mean: 5_000, p99: 5_000 });
    }

    #[test]
    fn of_few_samples_the_largest_is_the_99th_percentile() {
        let mut samples = Samples::default();
        (0..20).for_each(|sample| samples.add(&stats(if sample == 7 { 900 } else { 2 })));
        let rtt = samples.summary();
        assert!(rtt.p99 == 900_000 && rtt.p99 >= rtt.mean, "{rtt:?}");
    }

    #[test]
    fn intervals_stand_in_columns() {
        let interval =
            Interval { end_seconds: 1.0, bytes: 21_200_000, goodput_bps: 168_000_000, ..Interval::default() };
        let slow = Interval { start_seconds: 99.0, end_seconds: 100.0, rtt_us: 24_700, ..Interval::default() };
        let (first, second) = (line(&interval, true), line(&slow, true));
        assert_eq!(first.chars().count(), second.chars().count(), "{first}\n{second}");
        assert!(line(&Interval { session: Some(3), ..slow }, false).starts_with("[3] "));
    }

    #[test]
    fn nothing_measured_is_zero() {
        let mut samples = Samples::default();
        samples.add(&Stats::default());
        assert_eq!(samples.summary(), RttMicros::default());
    }
}
