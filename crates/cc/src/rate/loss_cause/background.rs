//! What a link loses by itself, as far as losses show that came while no queue stood, and how much of what is lost while
//! one stands it explains.
//!
//! ```text
//! no queue:  p ← lost / sent, of about the last hundred thousand packets              (1)
//! queue:     e = p·D·RTT packets are to be expected per round trip; more than that is
//!            congestion if it is more than three deviations, √e each                  (2)
//! ```
//!
//! Without (2) a faulty link has its losses taken for congestion whenever the flow has filled a little of the queue: at
//! 1 Gbit/s, 100 ms and a loss of 1e-3 that cost a tenth of the first ten seconds' throughput.

use farhaul_units::Instant;

use crate::Path;

/// Packets after which what was seen before has half its weight, (1).
const MEMORY: f64 = 100_000.0;
/// Fewest losses that make a share, (1).
const FEWEST: f64 = 4.0;
/// Deviations of a Poisson count that chance explains, (2): one round trip in seven hundred has more.
const DEVIATIONS: f64 = 3.0;
/// Where fewer are to be expected per round trip, a loss beside a queue is the queue's: a flow that is small against its
/// rivals cannot tell, and has to yield.
const FEWEST_EXPECTED: f64 = 0.5;

/// Losses of the link.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Background {
    /// Packets sent by the report before.
    sent_before: u64,
    /// Packets sent and lost while no queue stood.
    sent: f64,
    lost: f64,
    /// When the present round trip of a standing queue began, and what was lost since.
    round: Instant,
    lost_in_round: u64,
}

impl Background {
    /// `newly_lost` packets were reported while no queue stood, (1).
    pub(super) fn learn(&mut self, path: &Path, newly_lost: u32) {
        self.sent += self.sent_since(path);
        self.lost += f64::from(newly_lost);
        if self.sent > MEMORY {
            self.sent /= 2.0;
            self.lost /= 2.0;
        }
    }

    /// `newly_lost` packets were reported while a queue stood; whether that is more than the link explains, (2).
    pub(super) fn is_exceeded(&mut self, path: &Path, newly_lost: u32) -> bool {
        self.sent_since(path);
        if path.now - self.round > path.rtt {
            self.round = path.now;
            self.lost_in_round = 0;
        }
        self.lost_in_round += u64::from(newly_lost);
        let per_round = path.delivery_rate.map_or(0.0, |rate| rate.packets_in(path.rtt));
        let expected = if self.lost < FEWEST { 0.0 } else { self.lost / self.sent.max(1.0) * per_round };
        expected < FEWEST_EXPECTED || self.lost_in_round as f64 > expected + DEVIATIONS * expected.sqrt()
    }

    /// Packets sent since the report before.
    fn sent_since(&mut self, path: &Path) -> f64 {
        path.packets_sent.saturating_sub(std::mem::replace(&mut self.sent_before, path.packets_sent)) as f64
    }
}

#[cfg(test)]
mod tests {
    use farhaul_units::{Duration, PacketRate};

    use super::*;

    /// 80 000 packets/s at 100 ms: 8000 per round trip.
    fn path(sent: u64) -> Path {
        Path {
            now: Instant::ZERO + Duration::from_micros(sent * 25 / 2),
            rtt: Duration::from_millis(100),
            delivery_rate: Some(PacketRate::new(80_000.0)),
            packets_sent: sent,
            ..Path::default()
        }
    }

    /// A link that loses every `nth` packet, seen for ten seconds.
    fn link_losing(nth: u64) -> (Background, u64) {
        let mut background = Background::default();
        let reports = 800_000 / nth;
        for report in 1..=reports {
            background.learn(&path(report * nth), 1);
        }
        (background, reports * nth)
    }

    #[test]
    fn a_queue_beside_a_link_without_losses_is_to_blame_for_each() {
        assert!(Background::default().is_exceeded(&path(1_000), 1));
    }

    #[test]
    fn the_usual_losses_of_a_link_are_its_own_and_an_overflow_is_not() {
        let (mut background, sent) = link_losing(1_000);
        let usual = (1..=8).any(|report| background.is_exceeded(&path(sent + 1_000 * report), 1));
        assert!(!usual, "eight in a round trip are what it loses");
        assert!(background.is_exceeded(&path(sent + 8_100), 30));
    }

    #[test]
    fn a_rare_loss_explains_nothing() {
        let (mut background, sent) = link_losing(50_000);
        assert!(background.is_exceeded(&path(sent + 100), 1));
    }
}
