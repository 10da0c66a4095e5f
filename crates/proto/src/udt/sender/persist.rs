//! Probes a receiver with a closed window for room, with one packet at a time (attack B10).
//!
//! The probe is a new packet if nothing is in flight. If the window closed on data in flight, it is the oldest packet.
//! The intervals double up to a minute. They vary at random, so that connections that were refused together do not
//! probe together (attack B15).

use farhaul_units::{Duration, Instant, Rng};

use crate::timer::Timer;

/// Shortest time to the first probe. It exceeds the 100 ms after which an idle libudt checks its acknowledgement timer.
pub(super) const MIN_PERSIST: Duration = Duration::from_millis(120);
/// Longest time between two probes, as that of TCP's persist timer. RFC 1122, §4.2.2.17, leaves the bound open, and BSD
/// chose 60 s. Source: attack B10 of the security design.
const MAX_PERSIST: Duration = Duration::from_secs(60);
/// Growth of the interval from one probe to the next …
const GROWTH: f64 = 2.0;
/// … give or take this share. Intervals at the upper bound are shorter than it by up to this share.
const JITTER: f64 = 0.1;

/// The persist timer.
#[derive(Debug)]
pub(super) struct Persist {
    timer: Timer,
    /// Time from the latest probe to the next; `None` while the window is open.
    interval: Option<Duration>,
    /// One packet may leave although the window is closed.
    probe: bool,
    rng: Rng,
}

impl Persist {
    /// For an open window.
    pub(super) const fn new(rng: Rng) -> Self {
        Self { timer: Timer::stopped(), interval: None, probe: false, rng }
    }

    /// The window is closed, and no acknowledgement is outstanding that could open it. `round_trip` is the time until
    /// an answer.
    pub(super) fn start(&mut self, now: Instant, round_trip: Duration) {
        let interval = self.interval(round_trip);
        self.timer.start(now, interval);
    }

    /// Time to the next probe. `round_trip`, the time until an answer, counts for the first one only, because doubling
    /// must not depend on a changing estimate.
    pub(super) fn interval(&mut self, round_trip: Duration) -> Duration {
        *self.interval.get_or_insert(round_trip.clamp(MIN_PERSIST, MAX_PERSIST))
    }

    /// A probe was sent, so the next interval is longer.
    pub(super) fn widen(&mut self) {
        let vary = 1.0 - JITTER + 2.0 * JITTER * self.rng.unit();
        let longest = MAX_PERSIST.mul_f64(1.0 - JITTER * self.rng.unit());
        self.interval = self.interval.map(|interval| interval.mul_f64(GROWTH * vary).min(longest));
    }

    /// The window is open, or the receiver took a packet. The next probe starts with the first interval.
    pub(super) fn stop(&mut self) {
        self.timer.stop();
        self.interval = None;
        self.probe = false;
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if self.timer.fires(now) {
            self.probe = true;
            self.widen();
        }
    }

    /// Whether one packet may leave although the window is closed.
    pub(super) const fn wants_probe(&self) -> bool {
        self.probe
    }

    /// The same, and clears it.
    pub(super) fn take_probe(&mut self) -> bool {
        std::mem::take(&mut self.probe)
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.timer.deadline()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Probes until `end`, each sent when it is due. The RTT estimate changes meanwhile.
    fn questions(persist: &mut Persist, mut now: Instant, end: Instant) -> Vec<Instant> {
        let mut all = Vec::new();
        while now < end {
            persist.start(now, Duration::from_millis(150 + 10 * all.len() as u64));
            now = persist.deadline().unwrap();
            persist.handle_timeout(now);
            assert!(persist.take_probe() && !persist.wants_probe());
            all.push(now);
        }
        all
    }

    fn gaps(all: &[Instant]) -> Vec<f64> {
        all.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64()).collect()
    }

    #[test]
    fn probes_come_at_doubling_intervals_up_to_a_minute() {
        let mut persist = Persist::new(Rng::new(1));
        let end = Instant::ZERO + Duration::from_secs(1_200);
        let gaps = gaps(&questions(&mut persist, Instant::ZERO, end));
        let doubling = gaps.iter().take_while(|gap| **gap < 54.0).count();
        assert!(doubling >= 7, "{gaps:?}");
        assert!(gaps[..doubling].windows(2).all(|pair| (1.8..=2.2).contains(&(pair[1] / pair[0]))), "{gaps:?}");
        assert!(gaps[doubling..].iter().all(|gap| (54.0..=60.0).contains(gap)), "{gaps:?}");
    }

    #[test]
    fn connections_that_were_refused_together_do_not_probe_together() {
        let end = Instant::ZERO + Duration::from_secs(100);
        let asked = |seed| questions(&mut Persist::new(Rng::new(seed)), Instant::ZERO, end);
        let (one, other) = (asked(1), asked(2));
        assert_eq!(one[0], other[0], "the first question is on time");
        assert!(one.iter().skip(1).zip(other.iter().skip(1)).all(|(one, other)| one != other));
    }

    #[test]
    fn a_window_that_was_open_is_probed_soon_again() {
        let mut persist = Persist::new(Rng::new(1));
        let all = questions(&mut persist, Instant::ZERO, Instant::ZERO + Duration::from_secs(600));
        persist.stop();
        assert_eq!(persist.deadline(), None);
        let again = all[all.len() - 1];
        persist.start(again, Duration::from_millis(10));
        assert_eq!(persist.deadline(), Some(again + MIN_PERSIST));
    }

    #[test]
    fn a_probe_not_sent_before_the_window_opened_is_dropped() {
        let mut persist = Persist::new(Rng::new(1));
        persist.start(Instant::ZERO, MIN_PERSIST);
        persist.handle_timeout(Instant::ZERO + MIN_PERSIST);
        persist.stop();
        assert!(!persist.wants_probe());
    }
}
