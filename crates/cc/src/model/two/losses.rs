//! The loss test: whether more was lost than a path may lose at random.
//!
//! ```text
//! per round      e ← max(0, e + lost − 2 %·sent)
//! lossy if       e > 3·max(1, √(2 %·sent)),  and then e ← 0
//! ```
//!
//! The excess e adds up over rounds (CUSUM). So a flow of 20 packets per round notices a loss of 6 % after four rounds. A
//! test of single rounds would need 20 %.

use crate::Path;
use crate::rate::syn::SYN_INTERVAL;

/// Share of packets that a path may lose. Source: BBRv2 and BBRv3 (BBRLossThresh).
pub(super) const CEILING: f64 = 0.02;
/// Standard deviations beyond which losses are not chance: one false alarm in a thousand rounds.
const DEVIATIONS: f64 = 3.0;
/// Largest share that a lossy round may report, since old losses also count in it.
const MOST_LOST: f64 = 0.95;

/// Losses of this round and the excess of all.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Losses {
    since: farhaul_units::Instant,
    /// Packets sent before this round and before the last one.
    sent: u64,
    sent_before: u64,
    lost: f64,
    lost_before: f64,
    /// Of the lost ones, those that may only have been reordered.
    doubtful: f64,
    excess: f64,
}

impl Losses {
    pub(super) fn add(&mut self, packets: u32) {
        self.lost += f64::from(packets);
        self.doubtful += f64::from(packets);
    }

    /// All packets reported lost have arrived.
    pub(super) fn on_recovered(&mut self, spurious: bool) {
        if spurious {
            self.lost = (self.lost - self.doubtful).max(0.0);
        }
        self.doubtful = 0.0;
    }

    /// Begins a round. The excess stays.
    pub(super) fn restart(&mut self, path: &Path) {
        self.begin(path);
        self.doubtful = 0.0;
    }

    fn begin(&mut self, path: &Path) {
        *self = Self {
            since: path.now,
            sent: path.packets_sent,
            sent_before: self.sent,
            lost: 0.0,
            lost_before: self.lost,
            ..*self
        };
    }

    /// Losses of the round so far.
    pub(super) fn lost(&self) -> f64 {
        self.lost
    }

    /// Losses of this round and of the one before.
    pub(super) fn lost_lately(&self) -> f64 {
        self.lost + self.lost_before
    }

    /// The share of packets lost, if a round has ended and is lossy. `reordered` excuses losses that may be reordering.
    pub(super) fn end_of_round(&mut self, path: &Path, reordered: bool) -> Option<f64> {
        if path.now - self.since < path.rtt.saturating_add(SYN_INTERVAL) {
            return None;
        }
        // What is reported lost in a round was sent in it or in the one before.
        let rounds = if self.sent_before == self.sent { 1.0 } else { 2.0 };
        let sent = path.packets_sent.saturating_sub(self.sent_before).max(1) as f64 / rounds;
        let tolerated = CEILING * sent;
        let lost = self.lost - if reordered { self.doubtful } else { 0.0 };
        self.begin(path);
        self.excess = (self.excess + lost - tolerated).max(0.0);
        let lossy = self.excess > DEVIATIONS * tolerated.sqrt().max(1.0);
        lossy.then(|| (std::mem::take(&mut self.excess).max(lost) / sent).min(MOST_LOST))
    }

    /// Whether start-up, which has no rounds yet, has lost too much.
    pub(super) fn is_too_much_of_all(&self, path: &Path, reordered: bool) -> bool {
        let tolerated = CEILING * path.packets_sent as f64;
        self.lost - if reordered { self.doubtful } else { 0.0 } > tolerated + DEVIATIONS * tolerated.sqrt()
    }
}

#[cfg(test)]
mod tests {
    use farhaul_units::{Duration, Instant};

    use super::*;

    /// Rounds of `sent` packets with these losses: what each of them reports.
    fn rounds(sent: u64, losses: &[u32]) -> Vec<Option<f64>> {
        let mut path = Path { rtt: Duration::from_millis(90), ..Path::default() };
        let mut test = Losses::default();
        test.restart(&path);
        losses
            .iter()
            .map(|lost| {
                test.add(*lost);
                path.now += Duration::from_millis(100);
                path.packets_sent += sent;
                test.end_of_round(&path, false)
            })
            .collect()
    }

    #[test]
    fn two_percent_and_chance_are_tolerated() {
        assert_eq!(rounds(10_000, &[200, 240, 200]), [None; 3]);
        assert_eq!(rounds(10_000, &[200, 243]), [None, Some(0.0243)]);
    }

    #[test]
    fn losses_of_small_rounds_add_up() {
        let lossy = |losses: &[u32]| rounds(20, losses).iter().position(Option::is_some);
        assert_eq!(lossy(&[2; 10]), Some(1), "10 %");
        assert!(matches!(lossy(&[1; 10]), Some(4..=5)), "5 %");
        assert_eq!(lossy(&[1, 0, 0, 1, 0, 0, 1, 0, 0]), None, "chance");
    }

    #[test]
    fn a_round_lasts_a_round_trip_and_an_interval() {
        let mut path = Path { rtt: Duration::from_millis(90), ..Path::default() };
        let mut test = Losses::default();
        test.restart(&path);
        test.add(50);
        (path.now, path.packets_sent) = (Instant::ZERO + Duration::from_millis(99), 100);
        assert_eq!(test.end_of_round(&path, false), None);
        path.now += Duration::from_millis(1);
        assert_eq!(test.end_of_round(&path, false), Some(0.5));
    }

    #[test]
    fn reordered_packets_are_not_lost() {
        let mut path = Path { packets_sent: 100, ..Path::default() };
        let mut test = Losses::default();
        test.add(50);
        path.now += Duration::from_secs(1);
        assert!(test.is_too_much_of_all(&path, false) && !test.is_too_much_of_all(&path, true));
        test.on_recovered(true);
        assert_eq!(test.end_of_round(&path, false), None);
    }
}
