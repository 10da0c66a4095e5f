//! The law of release 0.1, the years 2000 and 2001: by whole megabits per second, once in 5000 packets.
//!
//! ```text
//! more than 50 % lost    rate ← rate/2                                  (1)
//! at most 1 % lost       rate ← rate + 1, or + 3 after four good ones   (2)
//! otherwise              rate ← rate − 1                                (3)
//! ```
//!
//! Source: the program of release 0.1. It sets the rate of a connection by hand at first. We begin as later releases.
//!
//! **Read in one of several ways** (departure D308). The fifth good round in a row is the first to add three. Losses
//! count in the round in which they enter the sender's list. The rate is at least 1 Mbit/s and a packet has 1500 bytes.

use farhaul_units::{Duration, SeqNo};

use super::{Bounds, Law, PACKET_BITS, Report};

/// Packets of a round.
const ROUND: u64 = 5_000;
/// Share of losses above which the rate is halved, (1).
const MUCH: f64 = 0.5;
/// Share of losses up to which a round is good, (2).
const LITTLE: f64 = 0.01;
/// Steps in Mbit/s: (2) and (3), and the larger one of (2).
const STEP: f64 = 1.0;
const LARGE_STEP: f64 = 3.0;
/// Good rounds before the larger step.
const PATIENCE: u32 = 4;
/// I for 12 Gbit/s and 1 Mbit/s.
pub(super) const BOUNDS: Bounds = Bounds { shortest: 1.0, longest: 12_000.0 };

/// The law.
#[derive(Debug)]
pub(super) struct Release01 {
    /// Mbit/s.
    rate: f64,
    bounds: Bounds,
    /// In this round.
    sent: u64,
    lost: u64,
    /// Good rounds in a row.
    good: u32,
}

impl Release01 {
    pub(super) const fn new(interval: f64, bounds: Bounds) -> Self {
        Self { rate: PACKET_BITS / interval, bounds, sent: 0, lost: 0, good: 0 }
    }

    fn end_round(&mut self) {
        let loss = self.lost as f64 / self.sent as f64;
        (self.sent, self.lost) = (0, 0);
        self.good = if loss <= LITTLE { self.good.saturating_add(1) } else { 0 };
        self.rate = if loss > MUCH {
            self.rate / 2.0
        } else if self.good > PATIENCE {
            self.rate + LARGE_STEP
        } else if self.good > 0 {
            self.rate + STEP
        } else {
            self.rate - STEP
        };
        self.rate = self.rate.clamp(PACKET_BITS / self.bounds.longest, PACKET_BITS / self.bounds.shortest);
    }
}

impl Law for Release01 {
    fn interval(&self) -> f64 {
        PACKET_BITS / self.rate
    }

    fn resume(&mut self, interval: f64, _next: SeqNo) {
        *self = Self::new(interval, self.bounds);
    }

    fn on_sent(&mut self, packets: u32) {
        self.sent += u64::from(packets);
        if self.sent >= ROUND {
            self.end_round();
        }
    }

    fn on_report(&mut self, report: Report) -> Duration {
        self.lost += u64::from(report.losses);
        Duration::ZERO
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rates in Mbit/s after rounds with these losses.
    fn rounds(losses: &[u32]) -> Vec<f64> {
        let mut law = Release01::new(120.0, BOUNDS);
        let round = |&losses: &u32| {
            law.on_report(Report { first: SeqNo::new(0), losses, acked: SeqNo::new(0), next: SeqNo::new(9) });
            law.on_sent(4_990);
            law.on_sent(10);
            PACKET_BITS / law.interval()
        };
        losses.iter().map(round).collect()
    }

    #[test]
    fn good_rounds_add_one_and_after_four_of_them_three() {
        assert_eq!(rounds(&[0, 50, 0, 0, 0, 0]), [101.0, 102.0, 103.0, 104.0, 107.0, 110.0]);
    }

    #[test]
    fn a_round_with_losses_takes_one_and_one_of_half_its_packets_halves() {
        assert_eq!(rounds(&[51, 2_500, 2_501]), [99.0, 98.0, 49.0]);
    }

    #[test]
    fn the_rate_never_falls_to_nothing() {
        assert_eq!(rounds(&[5_000; 20]).last(), Some(&1.0));
    }
}
