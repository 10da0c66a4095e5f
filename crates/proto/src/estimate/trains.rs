//! Capacity estimate from trains, for hosts that merge probe pairs. Packets that left together arrive over the time that the
//! bottleneck needs to serve them.
//!
//! Such a host hands over a train in a few runs. The packets of a run have one arrival time, about that of the last of
//! them. So the packets after the first run took the time from the first run to the last.

use farhaul_units::{Duration, Instant, PacketRate, SeqNo};
use farhaul_wire::udt4::Timestamp;

/// Fewest packets of a train: those of one probe interval.
const MIN_PACKETS: u32 = super::PROBE_INTERVAL;
/// Fewest runs of a train. The time between two shows when the host looked, and not how far packets were apart.
const MIN_RUNS: u32 = 3;
/// Packets whose departures are further apart did not leave together, µs.
const PAUSE: u32 = 50;
/// A train left at least this many times faster than it arrived.
const SPREAD: u32 = 2;
/// Trains of which the median counts, and fewest for an estimate.
const WINDOW: usize = 8;
const MIN_SAMPLES: usize = 4;
/// How long trains count: routes change more rarely.
const MEMORY: Duration = Duration::from_secs(10);

/// The train that is arriving, and what the last ones showed.
#[derive(Clone, Debug)]
pub(crate) struct Trains {
    train: Train,
    /// The sequence number that would continue the train.
    next: SeqNo,
    /// Rates in packets per second, the newest overwrites the oldest.
    rates: [f64; WINDOW],
    measured: usize,
    /// When the newest train ended.
    latest: Instant,
}

/// Packets that left together.
#[derive(Clone, Copy, Debug)]
struct Train {
    /// Departures of the first packet and of the last.
    left: [Timestamp; 2],
    /// Arrivals of the first run and of the last.
    arrived: [Instant; 2],
    packets: u32,
    runs: u32,
    /// Packets of the first run.
    first_run: u32,
}

impl Train {
    const fn new(left: Timestamp, now: Instant) -> Self {
        Self { left: [left; 2], arrived: [now; 2], packets: 1, runs: 1, first_run: 1 }
    }

    fn add(&mut self, left: Timestamp, now: Instant) {
        self.packets += 1;
        self.runs += u32::from(now != self.arrived[1]);
        self.first_run += u32::from(self.runs == 1);
        (self.left[1], self.arrived[1]) = (left, now);
    }

    /// The rate of its arrival, packets/s; `None` if it was short, arrived in few runs, or was not spread.
    fn rate(&self) -> Option<f64> {
        let leaving = Duration::from_micros(micros(self.left[0], self.left[1]).into());
        let arriving = self.arrived[1] - self.arrived[0];
        let later = self.packets - self.first_run;
        let is_long = self.packets >= MIN_PACKETS && self.runs >= MIN_RUNS && later >= self.first_run;
        let counts = is_long && arriving > leaving * SPREAD;
        counts.then(|| f64::from(later) / arriving.as_secs_f64())
    }
}

impl Trains {
    pub(super) const fn new() -> Self {
        Self {
            train: Train::new(Timestamp::ZERO, Instant::ZERO),
            next: SeqNo::new(0),
            rates: [0.0; WINDOW],
            measured: 0,
            latest: Instant::ZERO,
        }
    }

    /// A packet arrived that had `left` the peer. `now` is the arrival time of its run.
    #[inline]
    pub(crate) fn on_arrival(&mut self, seq: SeqNo, left: Timestamp, now: Instant) {
        if seq == self.next && micros(self.train.left[1], left) <= PAUSE {
            self.train.add(left, now);
        } else {
            if let Some(rate) = self.train.rate() {
                self.record(rate);
            }
            self.train = Train::new(left, now);
        }
        self.next = seq.next();
    }

    /// The bottleneck's rate: the median of the last trains. `None` without enough of them.
    pub(crate) fn estimate(&self, now: Instant) -> Option<PacketRate> {
        let count = self.measured.min(WINDOW);
        if count < MIN_SAMPLES || now - self.latest > MEMORY {
            return None;
        }
        let mut rates = self.rates;
        let (_, median, _) = rates[..count].select_nth_unstable_by(count / 2, f64::total_cmp);
        Some(PacketRate::new(*median))
    }

    fn record(&mut self, rate: f64) {
        let at = self.train.arrived[1];
        if at - self.latest > MEMORY {
            self.measured = 0;
        }
        self.rates[self.measured % WINDOW] = rate;
        (self.measured, self.latest) = (self.measured + 1, at);
    }
}

/// Microseconds from `before` to `after`.
const fn micros(before: Timestamp, after: Timestamp) -> u32 {
    after.value().wrapping_sub(before.value())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Trains of `packets` that leave every 10 ms, and whose packets arrive `gap` apart but are handed over every `poll`.
    fn arrivals(trains: u32, packets: u32, gap: Duration, poll: Duration) -> Trains {
        let mut measured = Trains::new();
        for train in 0..trains {
            let left = Duration::from_millis(10) * train;
            for packet in 0..packets {
                let nanos = (left + gap * packet).as_nanos() as u64;
                let run = nanos.div_ceil(poll.as_nanos() as u64) * poll.as_nanos() as u64;
                let seq = SeqNo::new(train * packets + packet);
                measured.on_arrival(seq, Timestamp::from_elapsed(left), Instant::from_nanos(run));
            }
        }
        measured
    }

    fn rate(trains: &Trains) -> Option<f64> {
        let now = trains.latest + Duration::from_secs(1);
        trains.estimate(now).map(PacketRate::packets_per_second)
    }

    const GIGABIT: Duration = Duration::from_micros(12);
    const POLL: Duration = Duration::from_micros(75);

    #[test]
    fn trains_show_the_capacity_though_runs_of_six_packets_are_merged() {
        let rate = rate(&arrivals(20, 40, GIGABIT, POLL)).unwrap();
        assert!((rate / 83_333.0 - 1.0).abs() < 0.15, "{rate}");
    }

    #[test]
    fn trains_that_are_short_or_come_in_few_runs_show_nothing() {
        assert_eq!(rate(&arrivals(20, 15, GIGABIT, POLL)), None);
        assert_eq!(rate(&arrivals(20, 40, GIGABIT, Duration::from_millis(1))), None);
    }

    #[test]
    fn packets_that_left_as_they_arrive_are_no_train() {
        let mut trains = Trains::new();
        for packet in 0..1_000 {
            let at = GIGABIT * packet;
            let left = Timestamp::from_elapsed(at);
            trains.on_arrival(SeqNo::new(packet), left, Instant::ZERO + at);
        }
        trains.on_arrival(SeqNo::new(2_000), Timestamp::from_elapsed(GIGABIT * 1_000), Instant::ZERO + GIGABIT * 1_000);
        assert_eq!((trains.measured, rate(&trains)), (0, None));
    }

    #[test]
    fn trains_are_forgotten_after_ten_seconds() {
        let trains = arrivals(20, 40, GIGABIT, POLL);
        assert!(trains.estimate(trains.latest + MEMORY).is_some());
        assert_eq!(trains.estimate(trains.latest + MEMORY + Duration::from_nanos(1)), None);
    }
}
