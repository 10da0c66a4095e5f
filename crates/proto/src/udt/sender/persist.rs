//! Asking again for room at a receiver whose window is closed while nothing is in flight (attack B10).

use farhaul_units::{Duration, Instant};

use super::repair::MIN_RETRANSMISSION_TIMEOUT;
use crate::timer::Timer;

/// Longest time between two probes of a window that stays closed (attack B10).
pub(super) const MAX_PERSIST: Duration = Duration::from_secs(60);

/// The persist timer.
#[derive(Debug)]
pub(super) struct Persist {
    timer: Timer,
    interval: Duration,
    /// One packet may leave although the window is closed.
    probe: bool,
}

impl Default for Persist {
    fn default() -> Self {
        Self { timer: Timer::stopped(), interval: MIN_RETRANSMISSION_TIMEOUT, probe: false }
    }
}

impl Persist {
    /// The window is closed and nothing is in flight whose acknowledgement could open it.
    pub(super) fn start(&mut self, now: Instant) {
        self.timer.start(now, self.interval);
    }

    /// The window is open.
    pub(super) fn stop(&mut self) {
        self.timer.stop();
        self.interval = MIN_RETRANSMISSION_TIMEOUT;
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if self.timer.fires(now) {
            self.probe = true;
            self.interval = (self.interval * 2).min(MAX_PERSIST);
        }
    }

    /// Whether one packet may leave although the window is closed.
    pub(super) const fn wants_probe(&self) -> bool {
        self.probe
    }

    /// The same; if so, the packet leaves.
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

    /// Probes until `end`, each taken when it is due.
    fn probes(persist: &mut Persist, mut now: Instant, end: Instant) -> Vec<Instant> {
        let mut probes = Vec::new();
        while now < end {
            persist.start(now);
            now = persist.deadline().unwrap();
            persist.handle_timeout(now);
            assert!(persist.take_probe() && !persist.wants_probe());
            probes.push(now);
        }
        probes
    }

    #[test]
    fn probes_come_at_doubling_intervals_up_to_a_minute() {
        let mut persist = Persist::default();
        let all = probes(&mut persist, Instant::ZERO, Instant::ZERO + Duration::from_secs(600));
        let gaps: Vec<Duration> = all.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.windows(2).all(|pair| pair[1] == (pair[0] * 2).min(MAX_PERSIST)), "{gaps:?}");
        assert_eq!(gaps.last(), Some(&MAX_PERSIST));
    }

    #[test]
    fn a_window_that_was_open_is_probed_soon_again() {
        let mut persist = Persist::default();
        let all = probes(&mut persist, Instant::ZERO, Instant::ZERO + Duration::from_secs(600));
        persist.stop();
        assert_eq!(persist.deadline(), None);
        let again = all[all.len() - 1];
        persist.start(again);
        assert_eq!(persist.deadline(), Some(again + MIN_RETRANSMISSION_TIMEOUT));
    }
}
