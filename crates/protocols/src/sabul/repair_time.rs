//! How long a repair takes from the report of a loss, as the receiver sees it (departure D303).
//!
//! The original repeats a report after 1.5 RTT of an idle path. Behind a full queue repairs take longer, and most of
//! them would then be sent twice.

use farhaul_units::{Duration, Instant, SeqNo};

/// Weight of a shorter time in the mean. A longer one counts at once.
const SHORTER: u32 = 8;

/// The time that repairs take.
#[derive(Debug, Default)]
pub(super) struct RepairTime {
    /// The loss that is watched, and when it was first reported.
    watched: Option<(SeqNo, Instant)>,
    time: Duration,
}

impl RepairTime {
    /// A loss was reported.
    pub(super) fn on_report(&mut self, now: Instant, seq: SeqNo) {
        self.watched.get_or_insert((seq, now));
    }

    /// A packet arrived.
    pub(super) fn on_arrival(&mut self, now: Instant, seq: SeqNo) {
        let Some((_, reported)) = self.watched.filter(|(watched, _)| *watched == seq) else { return };
        self.watched = None;
        let sample = now - reported;
        self.time = sample.max((self.time * (SHORTER - 1) + sample) / SHORTER);
    }

    /// The present estimate; zero before the first repair.
    pub(super) const fn estimate(&self) -> Duration {
        self.time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn it_rises_at_once_and_falls_by_eighths() {
        let mut time = RepairTime::default();
        let mut repair = |from, until| {
            time.on_report(at(from), SeqNo::new(7));
            time.on_report(at(from + 1), SeqNo::new(9));
            time.on_arrival(at(from + 2), SeqNo::new(9));
            time.on_arrival(at(until), SeqNo::new(7));
            time.estimate().as_millis()
        };
        assert_eq!([repair(0, 80), repair(1_000, 1_016), repair(2_000, 2_100)], [80, 72, 100]);
    }
}
