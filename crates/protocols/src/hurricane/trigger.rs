//! When the receiver asks for missing datagrams.
//!
//! Requests that are too frequent load the receiver, and lists that are too long stall the sender (paper:ornl §3.1). So
//! a request is held back until N datagrams are missing within a window V. The paper set both by hand. Ours follow from
//! the RTT R and from the rate r at which datagrams arrive:
//!
//! ```text
//! V = 2·max(R, 10 ms)           N = ⌈r·V / 100⌉, within 1..=1024        (2)
//! ```
//!
//! Up to a loss of 1 %, about one list per window leaves. Beyond, N bounds the length of a list.

use farhaul_units::{Duration, Instant};
use farhaul_wire::hurricane::{MAX_GROUPS, Terms};

use super::Options;

/// RTTs of the window V.
const ROUND_TRIPS: f64 = 2.0;
/// Most RTTs that an option or a peer may ask for. A longer wait would look like a stalled transfer.
const MOST_ROUND_TRIPS: f64 = 1_000.0;
/// Shortest RTT in (2): shorter times are those of hosts, which batch datagrams.
pub(super) const SHORTEST_ROUND_TRIP: Duration = Duration::from_millis(10);
/// Missing datagrams per datagram of a window that cause a request.
const SHARE: f64 = 0.01;
/// Most missing datagrams that wait: one record holds as many, even if none are neighbours.
const MOST_MISSING: f64 = MAX_GROUPS as f64;

/// Longest time of one measurement of the rate, in RTTs. A longer one holds a pause, in which the sender waited for a
/// request.
const LONGEST_MEASUREMENT: u32 = 4;
/// Most RTTs that repetitions wait behind each other. Beyond, another request costs less than a wait for nothing.
const LONGEST_QUEUE: u32 = 32;

/// The condition for a request.
#[derive(Debug)]
pub(super) struct Trigger {
    missing: Option<u32>,
    round_trips: f64,
    round_trip: Duration,
    /// Datagrams per second, and those that arrived since then.
    rate: f64,
    since: Instant,
    datagrams: u64,
}

impl Trigger {
    /// The receiver's own options come first, then the terms of its peer, then (2).
    pub(super) fn new(options: &Options, terms: Terms, round_trip: Duration, now: Instant) -> Self {
        let terms_missing = Some(terms.trigger).filter(|&missing| missing > 0);
        let terms_window = Some(f64::from(terms.window) / 1e3).filter(|&round_trips| round_trips > 0.0);
        let own_window = options.trigger_window.filter(|round_trips| round_trips.is_finite());
        let round_trips = own_window.or(terms_window).unwrap_or(ROUND_TRIPS);
        Self {
            missing: options.trigger.or(terms_missing),
            round_trips: round_trips.clamp(0.0, MOST_ROUND_TRIPS),
            round_trip,
            rate: 0.0,
            since: now,
            datagrams: 0,
        }
    }

    pub(super) fn set_round_trip(&mut self, round_trip: Duration) {
        self.round_trip = round_trip;
    }

    /// The RTT that counts.
    pub(super) fn round_trip(&self) -> Duration {
        self.round_trip.max(SHORTEST_ROUND_TRIP)
    }

    /// V: the longest time that a missing datagram waits for others.
    pub(super) fn window(&self) -> Duration {
        self.round_trip().mul_f64(self.round_trips)
    }

    /// N: missing datagrams that cause a request.
    pub(super) fn missing(&self) -> u32 {
        let automatic = libm::ceil(SHARE * self.rate * self.window().as_secs_f64()).clamp(1.0, MOST_MISSING);
        self.missing.map_or(automatic as u32, |missing| missing.max(1))
    }

    /// `datagrams` have arrived.
    pub(super) fn on_arrival(&mut self, now: Instant, datagrams: u64) {
        self.datagrams += datagrams;
        let time = now - self.since;
        if time >= self.round_trip() {
            if time <= self.round_trip() * LONGEST_MEASUREMENT {
                self.rate = self.datagrams as f64 / time.as_secs_f64();
            }
            (self.since, self.datagrams) = (now, 0);
        }
    }

    /// The time in which this many repetitions arrive.
    pub(super) fn time_for(&self, datagrams: u32) -> Duration {
        let longest = self.round_trip() * LONGEST_QUEUE;
        let time = f64::from(datagrams) / self.rate.max(f64::MIN_POSITIVE);
        if self.rate > 0.0 { Duration::from_secs_f64(time.min(longest.as_secs_f64())) } else { Duration::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND_TRIP: Duration = Duration::from_millis(11);

    fn trigger(options: &Options, terms: Terms) -> Trigger {
        let start = Instant::from_nanos(1_000_000_000);
        let mut trigger = Trigger::new(options, terms, ROUND_TRIP, start);
        for n in 1..=50 {
            trigger.on_arrival(start + Duration::from_millis(n), 83);
        }
        trigger
    }

    /// 83 000 datagrams per second are 1 Gbit/s at 1500 bytes.
    #[test]
    fn a_percent_of_the_datagrams_of_two_rtts_causes_a_request() {
        let trigger = trigger(&Options::default(), Terms::default());
        assert_eq!((trigger.missing(), trigger.window()), (19, Duration::from_millis(22)));
    }

    #[test]
    fn options_come_before_terms_and_terms_before_the_formula() {
        let terms = Terms { trigger: 7, window: 4_000 };
        let trigger_of = |options: &Options| {
            let trigger = trigger(options, terms);
            (trigger.missing(), trigger.window())
        };
        assert_eq!(trigger_of(&Options::default()), (7, 4 * ROUND_TRIP));
        let options = Options { trigger: Some(3), trigger_window: Some(1.0), ..Options::default() };
        assert_eq!(trigger_of(&options), (3, ROUND_TRIP));
    }

    #[test]
    fn a_pause_tells_nothing_of_the_rate() {
        let mut trigger = trigger(&Options::default(), Terms::default());
        let expected = trigger.time_for(83);
        trigger.on_arrival(Instant::from_nanos(9_000_000_000), 1);
        assert_eq!(trigger.time_for(83), expected);
        assert!((Duration::from_micros(950)..Duration::from_micros(1_050)).contains(&expected), "{expected:?}");
        assert_eq!(trigger.time_for(u32::MAX), ROUND_TRIP * 32);
    }

    #[test]
    fn before_any_rate_is_known_each_missing_datagram_counts() {
        let trigger = Trigger::new(&Options::default(), Terms::default(), ROUND_TRIP, Instant::ZERO);
        assert_eq!((trigger.missing(), trigger.time_for(100)), (1, Duration::ZERO));
    }
}
