//! Polls the connections of a session while it works: samples of the RTT, and its progress for whoever shows it.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use farhaul::Stats;
use farhaul_bond::BondedStream;
use farhaul_udp::Clock;

use crate::event::Moved;
use crate::report::{RttMicros, micros};

/// Polling interval: enough samples for a 99th percentile within seconds, at negligible cost.
const TICK: Duration = Duration::from_millis(20);
/// Most samples. Beyond, every other one is dropped, and the sampling rate is halved.
const MAX_SAMPLES: usize = 4096;

/// A polling thread. [`Watch::stop`] ends it.
pub struct Watch {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// RTTs measured so far; empty without a watch.
#[derive(Clone, Default)]
pub struct RoundTrips(Option<Arc<Shared>>);

impl RoundTrips {
    /// Summary of the RTTs so far, or of `now` if there are none yet.
    pub fn summary(&self, now: &Stats) -> RttMicros {
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
    state: Mutex<WatchState>,
    bell: Condvar,
}

#[derive(Default)]
struct WatchState {
    stopped: bool,
    samples: Samples,
}

impl Watch {
    /// Starts polling `streams`. This side `sends` if its progress is acknowledged bytes. `show` gets their state every 20 ms.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(
        streams: Vec<BondedStream>,
        clock: Clock,
        sends: bool,
        show: impl FnMut(&Moved<'_>) + Send + 'static,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared { state: Mutex::default(), bell: Condvar::new() });
        let its = Arc::clone(&shared);
        let thread =
            thread::Builder::new().name("watch".into()).spawn(move || its.run(&streams, clock, sends, show))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Summary of the RTTs so far.
    pub fn rtt(&self) -> RttMicros {
        self.shared.state().samples.summary()
    }

    /// A handle to the RTTs, for later summaries.
    pub fn round_trips(&self) -> RoundTrips {
        RoundTrips(Some(Arc::clone(&self.shared)))
    }

    /// Reports the last interval, and ends the thread.
    pub fn stop(&mut self) {
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
    fn state(&self) -> MutexGuard<'_, WatchState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, streams: &[BondedStream], clock: Clock, sends: bool, mut show: impl FnMut(&Moved<'_>)) {
        let began = clock.now();
        let mut state = self.state();
        while !state.stopped {
            state = self.bell.wait_timeout(state, TICK).unwrap_or_else(PoisonError::into_inner).0;
            let stopped = state.stopped;
            drop(state);
            let seen: Vec<Stats> = streams.iter().flat_map(BondedStream::each_stats).collect();
            show(&Moved { elapsed: clock.now() - began, connections: &seen, sends, is_last: stopped });
            state = self.state();
            seen.iter().for_each(|stats| state.samples.add(stats));
        }
    }
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
    fn nothing_measured_is_zero() {
        let mut samples = Samples::default();
        samples.add(&Stats::default());
        assert_eq!(samples.summary(), RttMicros::default());
    }
}
