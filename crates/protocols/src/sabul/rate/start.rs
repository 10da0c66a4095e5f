//! Ours: the start of a transfer. It doubles a modest rate until less arrives than leaves (departure D301).
//!
//! The original begins at 1.2 Gbit/s, whatever the path. Most of the first seconds is then lost on slower ones.
//!
//! ```text
//! at first            rate = 10 packets per RTT, which counts as 1 ms at least
//! arrived < 0.9·left  rate ← max(arrived/1.125, rate/2), end
//! fastest rate        end
//! left ≥ 0.9·rate     rate ← 2·rate
//! left less for 0.2 s rate ← max(left, rate/2), end
//! ```
//!
//! Each line is judged after a measurement of half an RTT, of 20 ms and 10 packets at least. It begins one RTT and 20 ms
//! after a change of the rate. Only a sender that always had something to send is judged. At the end the law takes over.
//!
//! What arrives is compared with what left an RTT earlier. So the pause of a busy host is no limit of the path.

use farhaul_units::{Duration, Instant};

use super::PACKET_BITS;
use crate::blast::engine::{Feedback, RoundTrips};
use crate::blast::rate::counts::{Comparison, Counts, time_of};

/// Packets per RTT of the first rate.
const FIRST_PACKETS: f64 = 10.0;
/// Shortest RTT that counts. A loopback would begin at full speed.
const SHORTEST_ROUND_TRIP: Duration = Duration::from_millis(1);
/// The rate doubles as long as this share of it leaves, and this share of what left arrives.
const KEEPS_UP: f64 = 0.9;
/// Less is counted than a measurement needs below this time and this number of packets.
const SHORTEST_MEASUREMENT: Duration = Duration::from_millis(20);
const FEWEST_ARRIVALS: f64 = 10.0;
/// Losses of fewer packets show nothing.
const FEWEST_SENT: u64 = 100;
/// The rate found is lower by the law's own step, so that the queue drains.
const MARGIN: f64 = 1.125;
/// The rate before did arrive. So fewer arrivals than half are a disturbance.
const LARGEST_FALL: f64 = 2.0;
/// A host that sends less than its rate for this long can do no more. Its pauses are shorter.
const LONGEST_PAUSE: Duration = Duration::from_millis(200);

/// A start-up under way.
#[derive(Debug)]
pub(super) struct StartUp {
    /// I, µs, and the shortest.
    interval: f64,
    shortest: f64,
    round_trip: Duration,
    counts: Counts,
    /// Not before then do arrivals show the present rate, and since then nothing was measured.
    settled: Instant,
    /// Time in which less than the rate left, since the rate last doubled.
    late: Duration,
    /// Packets sent and losses reported at the present rate.
    sent: u64,
    lost: u64,
}

impl StartUp {
    pub(super) fn new(round_trip: Duration, shortest: f64, now: Instant) -> Self {
        let round_trip = round_trip.max(SHORTEST_ROUND_TRIP);
        let interval = (round_trip.as_secs_f64() * 1e6 / FIRST_PACKETS).max(shortest);
        Self {
            interval,
            shortest,
            round_trip,
            counts: Counts::default(),
            settled: now + round_trip + SHORTEST_MEASUREMENT,
            late: Duration::ZERO,
            sent: 0,
            lost: 0,
        }
    }

    /// I, µs.
    pub(super) const fn interval(&self) -> f64 {
        self.interval
    }

    /// Time after which arrivals show a new rate: one RTT, and the time of a report.
    fn settling(&self) -> Duration {
        self.round_trip + SHORTEST_MEASUREMENT
    }

    pub(super) fn set_round_trip(&mut self, round_trip: Duration) {
        self.round_trip = round_trip.max(SHORTEST_ROUND_TRIP);
    }

    pub(super) fn on_sent(&mut self, now: Instant, packets: u32) {
        self.counts.on_sent(now, f64::from(packets) * PACKET_BITS);
        self.sent += u64::from(packets);
    }

    pub(super) fn on_losses(&mut self, losses: u32) {
        self.lost += u64::from(losses);
    }

    /// Counts of arrivals from now on have another clock.
    pub(super) fn forget_arrivals(&mut self) {
        self.counts.forget_arrivals();
    }

    /// The receiver counted. `busy` is whether the sender always had something to send. Returns I once it is found.
    pub(super) fn on_arrivals(&mut self, now: Instant, arrivals: &Feedback, busy: bool) -> Option<f64> {
        self.counts.on_feedback(now, arrivals);
        if now < self.settled || !busy {
            let was_settled = now >= self.settled;
            if !busy {
                self.settled = self.settled.max(now + self.settling());
            }
            // Arrivals of an idle sender show nothing, but its losses do.
            let too_fast = self.sent >= FEWEST_SENT && self.lost as f64 > (1.0 - KEEPS_UP) * self.sent as f64;
            return (too_fast && was_settled).then_some(2.0 * self.interval);
        }
        let rate = PACKET_BITS * 1e6 / self.interval;
        let least = SHORTEST_MEASUREMENT.max(self.round_trip / 2).max(time_of(FEWEST_ARRIVALS, rate));
        let steady = RoundTrips { least: self.round_trip, smoothed: self.round_trip, variation: Duration::ZERO };
        let path = if arrivals.path.smoothed.is_zero() { steady } else { arrivals.path };
        let compared = self.counts.compare(self.settled, least, &path)?;
        self.judge(now, rate, &compared)
    }

    fn judge(&mut self, now: Instant, rate: f64, compared: &Comparison) -> Option<f64> {
        self.settled = now;
        // The last packet may be in flight.
        let arrived = compared.arrived + PACKET_BITS / compared.time.as_secs_f64();
        if arrived < KEEPS_UP * compared.least {
            return Some(self.interval * (MARGIN * rate / arrived).clamp(1.0, LARGEST_FALL));
        }
        if self.interval <= self.shortest {
            return Some(self.interval);
        }
        if !compared.tests(rate, KEEPS_UP) {
            self.late += compared.time;
            return (self.late >= LONGEST_PAUSE).then(|| self.interval * (rate / compared.sent).min(LARGEST_FALL));
        }
        self.interval = (self.interval / 2.0).max(self.shortest);
        (self.settled, self.late) = (now + self.settling(), Duration::ZERO);
        (self.sent, self.lost) = (0, 0);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: Duration = Duration::from_millis(10);

    /// Where a step does not happen.
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Pause {
        Sender,
        Receiver,
    }

    /// A path and its two hosts, in steps.
    struct Path {
        start: StartUp,
        /// Packets per second.
        capacity: f64,
        /// Steps of the RTT.
        delay: usize,
        /// What left in each step.
        left: Vec<f64>,
        /// Packets that arrived, and packets that wait for the receiver.
        arrived: f64,
        waiting: f64,
        /// The sender's share of its rate.
        share: f64,
    }

    impl Path {
        fn new(capacity: f64, round_trip: Duration) -> Self {
            let delay = (round_trip.as_millis() / STEP.as_millis()) as usize;
            let start = StartUp::new(round_trip, 1.0, Instant::ZERO);
            Self { start, capacity, delay, left: Vec::new(), arrived: 0.0, waiting: 0.0, share: 1.0 }
        }

        fn step(&mut self, pause: Option<Pause>) -> Option<f64> {
            let step = self.left.len();
            let now = Instant::ZERO + STEP * step as u32;
            let packets = self.share * 1e6 / self.start.interval() * STEP.as_secs_f64();
            self.left.push(if pause == Some(Pause::Sender) { 0.0 } else { packets });
            if pause != Some(Pause::Sender) {
                self.start.counts.on_sent(now, packets * PACKET_BITS);
            }
            let arriving = step.checked_sub(1 + self.delay).map_or(0.0, |step| self.left[step]);
            self.waiting += arriving.min(self.capacity * STEP.as_secs_f64());
            // The kernel dates the last packet that a late receiver takes.
            if pause == Some(Pause::Receiver) || self.waiting == 0.0 {
                return None;
            }
            self.arrived += std::mem::take(&mut self.waiting);
            let (datagrams, clock) = (libm::floor(self.arrived) as u64, now - Instant::ZERO);
            let arrivals = Feedback { datagrams, bytes: datagrams * 1_464, clock, ..Feedback::default() };
            self.start.on_arrivals(now, &arrivals, true)
        }

        /// I found, and the time it took.
        fn find(&mut self, pause: impl Fn(usize) -> Option<Pause>) -> (f64, Duration) {
            loop {
                if let Some(found) = self.step(pause(self.left.len())) {
                    return (found, STEP * self.left.len() as u32);
                }
                assert!(self.left.len() < 6_000, "it never ends");
            }
        }
    }

    /// I found on a path of this many packets per second, and the time it took.
    fn find(capacity: f64, round_trip: Duration) -> (f64, Duration) {
        Path::new(capacity, round_trip).find(|_| None)
    }

    #[test]
    fn pauses_of_both_hosts_are_no_limit_of_the_path() {
        for pause in 1..7 {
            for begin in 0..200 {
                for host in [Pause::Sender, Pause::Receiver] {
                    let mut path = Path::new(83_333.0, Duration::from_millis(10));
                    let (found, _) = path.find(|step| (begin..begin + pause).contains(&(step % 200)).then_some(host));
                    let share = 1e6 / found / 83_333.0;
                    assert!(share > 0.7, "{share} with {pause} steps at {begin} of the {host:?}");
                }
            }
        }
    }

    #[test]
    fn a_host_that_sends_no_faster_ends_it_at_what_it_sends() {
        let mut path = Path::new(1e6, Duration::from_millis(1));
        path.share = 0.7;
        let (found, _) = path.find(|_| None);
        assert!((1.3..1.6).contains(&(found / path.start.interval())), "{found}");
    }

    #[test]
    fn it_ends_one_step_below_the_capacity_of_the_path() {
        for (capacity, millis) in [(83_333.0, 100), (8_333.0, 1), (833.0, 20), (200.0, 200)] {
            let (interval, _) = find(capacity, Duration::from_millis(millis));
            let share = 1e6 / interval / capacity;
            assert!((0.8..=1.0).contains(&share), "{share} of {capacity} packets/s at {millis} ms");
        }
    }

    #[test]
    fn a_gigabit_at_100_ms_takes_three_seconds() {
        let (_, time) = find(83_333.0, Duration::from_millis(100));
        assert!(time < Duration::from_secs(3), "{time:?}");
    }

    /// A count at this step.
    fn count(step: u32, datagrams: u64) -> (Instant, Feedback) {
        let clock = STEP * step;
        (Instant::ZERO + clock, Feedback { datagrams, bytes: datagrams * 1_464, clock, ..Feedback::default() })
    }

    #[test]
    fn arrivals_of_an_idle_sender_show_nothing() {
        let mut start = StartUp::new(Duration::from_millis(10), 1.0, Instant::ZERO);
        for step in 1..100 {
            let (now, arrivals) = count(step, 0);
            assert_eq!(start.on_arrivals(now, &arrivals, false), None);
        }
        assert_eq!(start.interval(), 1_000.0);
    }

    #[test]
    fn losses_of_a_sender_that_is_often_idle_end_it() {
        let mut start = StartUp::new(Duration::from_millis(10), 1.0, Instant::ZERO);
        start.on_sent(Instant::ZERO, 1_000);
        start.on_losses(99);
        let (now, arrivals) = count(4, 0);
        assert_eq!(start.on_arrivals(now, &arrivals, false), None, "a tenth is tolerated");
        start.on_losses(2);
        let (now, arrivals) = count(8, 0);
        assert_eq!(start.on_arrivals(now, &arrivals, false), Some(2_000.0));
    }

    #[test]
    fn counts_of_another_clock_are_forgotten() {
        let mut start = StartUp::new(Duration::from_millis(1), 1.0, Instant::ZERO);
        let (mut late, arrivals) = count(500, 7);
        late = Instant::ZERO + (late - Instant::ZERO) / 500;
        start.on_arrivals(late, &arrivals, true);
        start.forget_arrivals();
        let first = start.interval();
        for step in 2..20 {
            start.on_sent(Instant::ZERO + STEP * step, 100);
            let (now, arrivals) = count(step, 100 * u64::from(step));
            start.on_arrivals(now, &arrivals, true);
        }
        assert!(start.interval() < first, "the rate has not grown");
    }

    #[test]
    fn the_fastest_rate_ends_it() {
        let mut start = StartUp::new(Duration::from_millis(1), 100.0, Instant::ZERO);
        let found = (1..100).find_map(|step| {
            let (now, arrivals) = count(step, 100 * u64::from(step));
            start.on_sent(now, 100);
            start.on_arrivals(now, &arrivals, true)
        });
        assert_eq!(found, Some(100.0));
    }
}
