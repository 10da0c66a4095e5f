//! The search for the capacity after start-up. A queue that holds less than one burst of the window overflows before a train has
//! shown what the path carries, and all that is known is what has arrived so far; trains of some hundred packets show it within a
//! fifth, more often too little than too much, since hosts deliver late.
//!
//! ```text
//! growth   R grows by g = 1/20·SYN/RTT of itself per SYN, at most 1/50 and at least what growth.rs says     (1)
//! ends     when a queue is proven to stand, or at a congestion that start-up has not caused: one later
//!          than 2·RTT + 10·SYN after it                                                          (2)
//! ```
//!
//! Around what the trains have shown growth is careful (growth.rs). On a path of 1 Gbit/s and 1 ms with a queue of 84 packets
//! start-up ends with a third of the capacity. From there the growth of a flow alone, a fifth per second, took eight seconds; this
//! takes one.
//!
//! | here | unit |
//! | --- | --- |
//! | `R` the rate | packets/s |
//!
//! Departure D20.

use farhaul_units::Instant;

use super::syn::SYN_INTERVAL;
use crate::Path;

/// Growth per round trip, (1): it overruns the path by about as much before that is noticed.
const PER_ROUND: f64 = 0.05;
/// Most growth per SYN interval, (1): what arrives is smoothed over ten of them, and grows by as much in between as the rate may
/// lead it.
const PER_SYN: f64 = 0.02;
/// SYN intervals that losses of start-up are still reported for, (2).
const AFTERMATH: u32 = 10;

/// Whether the capacity is being searched for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Search {
    /// When it began; `None` unless it goes on.
    began: Option<Instant>,
}

impl Search {
    /// Start-up has just ended.
    pub(super) fn begin(path: &Path) -> Self {
        Self { began: Some(path.now) }
    }

    /// A queue was proven to stand: what arrives is what there is.
    pub(super) fn on_queue(&mut self) {
        self.began = None;
    }

    /// There was congestion.
    pub(super) fn on_congestion(&mut self, path: &Path) {
        let aftermath = path.rtt.saturating_mul(2).saturating_add(SYN_INTERVAL * AFTERMATH);
        self.began = self.began.filter(|began| path.now - *began <= aftermath);
    }

    /// What the rate grows by per SYN interval, as a share of itself, (1); nothing unless the search goes on.
    pub(super) fn growth(&self, path: &Path) -> f64 {
        let per_syn = PER_ROUND * SYN_INTERVAL.as_secs_f64() / path.rtt.as_secs_f64();
        self.began.map_or(0.0, |_| per_syn.min(PER_SYN))
    }
}

#[cfg(test)]
mod tests {
    use farhaul_units::Duration;

    use super::*;

    fn path(millis: u64, rtt: u64) -> Path {
        Path { now: Instant::ZERO + Duration::from_millis(millis), rtt: Duration::from_millis(rtt), ..Path::default() }
    }

    #[test]
    fn the_rate_grows_by_a_twentieth_per_round_trip_and_by_two_percent_per_syn_at_most() {
        let search = Search::begin(&path(0, 100));
        assert!((search.growth(&path(0, 100)) - 0.005).abs() < 1e-12);
        assert!((search.growth(&path(0, 1)) - 0.02).abs() < 1e-12);
        assert_eq!(Search::default().growth(&path(0, 1)), 0.0);
    }

    #[test]
    fn losses_of_start_up_do_not_end_it_and_later_ones_do() {
        let mut search = Search::begin(&path(1_000, 20));
        search.on_congestion(&path(1_140, 20));
        assert!(search.growth(&path(1_140, 20)) > 0.0);
        search.on_congestion(&path(1_141, 20));
        assert_eq!(search.growth(&path(1_141, 20)), 0.0);
    }

    #[test]
    fn a_queue_that_stands_ends_it() {
        let mut search = Search::begin(&path(0, 20));
        search.on_queue();
        assert_eq!(search.growth(&path(0, 20)), 0.0);
    }
}
