//! Losses: whether more is lost than by chance.
//!
//! ```text
//! lossy    e > 3·max(1, √(2 %·sent)),   e ← max(0, e + lost − 2 %·sent) per round, but for the round after a cut; at once, if
//!          e + lost is that much and 4 % of a whole round
//! sent     the more of this round and of the one before: losses are reported a round after they were sent
//! ```
//!
//! The excess e adds up over rounds (CUSUM): a flow of 20 packets per round sees a loss of 6 % after four rounds. A test of single rounds
//! would need 20 %.

use farhaul_units::Instant;

use super::constants::TOLERATED;
use crate::controller::Path;
use crate::rate::syn::SYN_INTERVAL;

/// Standard deviations beyond which losses are not chance: one false alarm in a thousand rounds.
const DEVIATIONS: f64 = 3.0;

/// The loss test.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Losses {
    since: Instant,
    /// Packets sent until the round began, and in the round before.
    sent: u64,
    sent_before: u64,
    lost: f64,
    /// Those that may only have been overtaken.
    uncertain: f64,
    excess: f64,
    /// Packets delivered, and those until the round began.
    delivered: f64,
    delivered_before: f64,
    /// The round counts losses of packets that left before the last cut.
    is_old: bool,
    /// Until when a lossy round stops growth.
    pub(super) hold_until: Instant,
    /// The rate after the last halving, packets/s.
    pub(super) halved: f64,
}

impl Losses {
    /// The rate has been cut. The losses of a round are older.
    pub(super) fn cut(&mut self, path: &Path) {
        self.restart(path);
        self.is_old = true;
    }

    pub(super) fn add(&mut self, packets: u32) {
        self.lost += f64::from(packets);
        self.uncertain += f64::from(packets);
    }

    /// All packets reported lost have arrived.
    pub(super) fn on_recovered(&mut self, spurious: bool) {
        if spurious {
            self.lost = (self.lost - self.uncertain).max(0.0);
        }
        self.uncertain = 0.0;
    }

    /// Begins a round. The excess stays.
    pub(super) fn restart(&mut self, path: &Path) {
        self.sent_before = path.packets_sent.saturating_sub(self.sent);
        (self.since, self.sent, self.lost) = (path.now, path.packets_sent, 0.0);
        self.delivered_before = self.delivered;
    }

    pub(super) const fn lost(&self) -> f64 {
        self.lost
    }

    /// The share lost, if a round has ended and is lossy.
    pub(super) fn end_of_round(&mut self, path: &Path, delivered: f64) -> Option<f64> {
        self.delivered = delivered;
        let sent = path.packets_sent.saturating_sub(self.sent).max(self.sent_before).max(1) as f64;
        let tolerated = TOLERATED * sent;
        let is_over = path.now - self.since >= path.rtt.saturating_add(SYN_INTERVAL);
        // What is too much for a whole round need not wait for its end. It may become twice as long as the one before.
        let most = tolerated + DEVIATIONS * tolerated.sqrt().max(1.0);
        let is_clear = self.excess + self.lost > most.max(2.0 * tolerated);
        if !is_over && (self.is_old || !is_clear) {
            return None;
        }
        let lost = self.lost;
        let known = lost + (self.delivered - self.delivered_before).max(0.0);
        self.restart(path);
        if std::mem::take(&mut self.is_old) {
            return None;
        }
        self.excess = (self.excess + lost - tolerated).max(0.0);
        let lossy = self.excess > DEVIATIONS * tolerated.sqrt().max(1.0);
        lossy.then(|| (std::mem::take(&mut self.excess).max(lost) / if is_over { sent } else { known }).min(1.0))
    }

    /// Whether start-up, which has no rounds, has lost too much.
    pub(super) fn is_too_much_of_all(&self, path: &Path) -> bool {
        let tolerated = TOLERATED * path.packets_sent as f64;
        self.lost > tolerated + DEVIATIONS * tolerated.sqrt().max(1.0)
    }
}
