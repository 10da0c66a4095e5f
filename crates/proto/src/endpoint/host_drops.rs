//! Packets that died in the receive buffer of this host, and not on the path.
//!
//! The system counts datagrams that it drops because a socket's buffer is full. It does not tell whose they were, and a train that it has
//! merged counts as one. So what a connection finds missing soon after such a count counts as dropped.
//!
//! The gap is behind everything that was in the buffer. So it shows once that has been read, and once a new packet has come. The sender may
//! have to wait for a time-out before it sends one.

use farhaul_units::{Duration, Instant};

/// A gap shows in less: 8 MiB at 1 Gbit/s are read in 67 ms, and most time-outs of a sender are shorter.
const SHOWS_WITHIN: Duration = Duration::from_secs(1);

/// What a connection has lost in this host.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HostDrops {
    /// Until when packets that are found missing died here, and the packets that were missing at its beginning.
    window: Option<(Instant, u64)>,
    /// Those of earlier windows.
    before: u64,
}

impl HostDrops {
    /// The host has dropped datagrams. So far the connection has found `missing` packets missing.
    pub(super) fn note(&mut self, now: Instant, missing: u64, round_trip: Duration) {
        self.end(now, missing);
        let since = self.window.map_or(missing, |(_, since)| since);
        self.window = Some((now + SHOWS_WITHIN + round_trip, since));
    }

    /// Whether the window is over, and [`end`](Self::end) is to be called.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        self.window.is_some_and(|(until, _)| now > until)
    }

    /// Ends the window if it is over.
    pub(super) fn end(&mut self, now: Instant, missing: u64) {
        if self.is_over(now) {
            self.before = self.packets(missing);
            self.window = None;
        }
    }

    /// Packets that died here, of so many that were found missing.
    pub(super) fn packets(&self, missing: u64) -> u64 {
        self.before + self.window.map_or(0, |(_, since)| missing.saturating_sub(since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_found_missing_soon_after_a_drop_died_here() {
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let round_trip = Duration::from_millis(20);
        let mut drops = HostDrops::default();
        assert_eq!(drops.packets(40), 0, "nothing was dropped");
        drops.note(at(1_000), 40, round_trip);
        assert_eq!(drops.packets(45), 5);
        // The host still drops.
        drops.note(at(1_050), 45, round_trip);
        assert!(!drops.is_over(at(2_070)) && drops.is_over(at(2_071)));
        drops.end(at(2_071), 52);
        assert_eq!(drops.packets(90), 12, "what follows is the path's");
        drops.note(at(3_000), 90, round_trip);
        drops.note(at(5_000), 100, round_trip);
        assert_eq!(drops.packets(101), 23);
    }
}
