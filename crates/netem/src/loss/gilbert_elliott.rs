//! Loss in bursts (paper:gilbert-1960, paper:elliott-1963). The link is in a good or a bad state and may change it
//! after every packet.
//!
//! ```text
//!             p
//!      ┌──────────────▶
//!    good              bad        π_bad = p/(p + r)                        (1)
//!      ◀──────────────┘           loss  = π_good·(1 − k) + π_bad·(1 − h)   (2)
//!             r
//! ```
//!
//! | papers | here | |
//! | --- | --- | --- |
//! | p | `into_bad` | probability that the link is bad for the next packet if it is good for this one |
//! | r | `out_of_bad` | probability of the opposite change |
//! | 1 − k | `loss_in_good` | loss while the link is good; Gilbert has 0 |
//! | 1 − h | `loss_in_bad` | loss while the link is bad; the *simple* Gilbert model has 1 |
//!
//! A stay in the bad state lasts 1/r packets in the mean, geometrically distributed. The state of the first packet is
//! drawn from (1), so the loss of (2) holds from the beginning. The state changes per packet, not over time.

use farhaul_units::{Instant, Rng};

use super::model::LossModel;

/// The four parameters, all probabilities in 0..=1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GilbertElliottSpec {
    /// Probability of a change from good to bad, per packet: p.
    pub into_bad: f64,
    /// Probability of a change from bad to good, per packet: r.
    pub out_of_bad: f64,
    /// Loss in the bad state: 1 − h.
    pub loss_in_bad: f64,
    /// Loss in the good state: 1 − k.
    pub loss_in_good: f64,
}

impl GilbertElliottSpec {
    /// Bursts of `mean_burst` packets in the mean (at least one) that lose the share `loss` of all packets. The bad
    /// state loses every packet, the good state none.
    ///
    /// At least one packet passes between two bursts. A large `loss` therefore needs long bursts:
    /// `mean_burst` ≥ loss/(1 − loss).
    pub fn bursts(loss: f64, mean_burst: f64) -> Self {
        let out_of_bad = 1.0 / mean_burst.max(1.0);
        // From (1), with the loss for π_bad.
        let into_bad = if loss < 1.0 { (out_of_bad * loss / (1.0 - loss)).min(1.0) } else { 1.0 };
        let out_of_bad = if loss < 1.0 { out_of_bad } else { 0.0 };
        Self { into_bad, out_of_bad, loss_in_bad: 1.0, loss_in_good: 0.0 }
    }

    /// The share of packets that meet the bad state: equation (1). A link that never changes its state is good.
    pub fn bad_share(&self) -> f64 {
        let changes = self.into_bad + self.out_of_bad;
        if changes > 0.0 { self.into_bad / changes } else { 0.0 }
    }

    /// The share of packets lost in the long run: equation (2).
    pub fn stationary_loss(&self) -> f64 {
        let bad = self.bad_share();
        (1.0 - bad) * self.loss_in_good + bad * self.loss_in_bad
    }
}

/// Loses packets by the state of the link.
#[derive(Clone, Debug)]
pub struct GilbertElliott {
    spec: GilbertElliottSpec,
    is_bad: bool,
    rng: Rng,
}

impl GilbertElliott {
    /// Loses packets as `spec` says, drawn from `rng`.
    pub fn new(spec: GilbertElliottSpec, mut rng: Rng) -> Self {
        let is_bad = rng.chance(spec.bad_share());
        Self { spec, is_bad, rng }
    }
}

impl LossModel for GilbertElliott {
    fn loses(&mut self, _: Instant, _: u32) -> bool {
        let (loss, change) = if self.is_bad {
            (self.spec.loss_in_bad, self.spec.out_of_bad)
        } else {
            (self.spec.loss_in_good, self.spec.into_bad)
        };
        let is_lost = self.rng.chance(loss);
        self.is_bad ^= self.rng.chance(change);
        is_lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Impair;
    use crate::testing::{numbers, play};

    const PACKETS: u32 = 1_000_000;

    /// Lengths of the runs of lost packets.
    fn bursts(spec: GilbertElliottSpec, seed: u64) -> Vec<u32> {
        let arrived = numbers(&play(&mut Impair::new(GilbertElliott::new(spec, Rng::new(seed))), PACKETS, 1));
        let gaps = arrived.windows(2).map(|pair| pair[1] - pair[0] - 1);
        gaps.filter(|lost| *lost > 0).collect()
    }

    #[test]
    fn the_share_of_lost_packets_is_the_stationary_loss() {
        let general = GilbertElliottSpec { into_bad: 0.02, out_of_bad: 0.1, loss_in_bad: 0.6, loss_in_good: 0.01 };
        assert!((general.stationary_loss() - (5.0 / 6.0 * 0.01 + 1.0 / 6.0 * 0.6)).abs() < 1e-12);
        let simple = GilbertElliottSpec::bursts(0.01, 4.0);
        assert!((simple.stationary_loss() - 0.01).abs() < 1e-12);
        for (seed, spec) in [(1, general), (2, simple)] {
            let lost = f64::from(bursts(spec, seed).iter().sum::<u32>());
            let expected = spec.stationary_loss() * f64::from(PACKETS);
            assert!((lost / expected - 1.0).abs() < 0.05, "{lost} lost, {expected} expected");
        }
    }

    #[test]
    fn the_length_of_bursts_is_geometric() {
        let bursts = bursts(GilbertElliottSpec::bursts(0.05, 5.0), 3);
        let count = bursts.len() as f64;
        assert!((9_000.0..11_000.0).contains(&count), "{count} bursts");
        let mean = f64::from(bursts.iter().sum::<u32>()) / count;
        assert!((mean - 5.0).abs() < 0.2, "mean {mean}");
        // P(longer than n) = (1 − r)^n.
        for (n, share) in [(1, 0.8), (2, 0.64), (5, 0.32768), (10, 0.10737)] {
            let longer = bursts.iter().filter(|burst| **burst > n).count() as f64 / count;
            assert!((longer - share).abs() < 0.02, "longer than {n}: {longer}, expected {share}");
        }
    }

    #[test]
    fn the_first_packet_sees_the_stationary_loss() {
        let spec = GilbertElliottSpec::bursts(0.3, 50.0);
        let lost = |seed| play(&mut Impair::new(GilbertElliott::new(spec, Rng::new(seed))), 1, 1).is_empty();
        let share = (0..10_000).filter(|seed| lost(*seed)).count() as f64 / 10_000.0;
        assert!((share - 0.3).abs() < 0.02, "{share}");
    }

    #[test]
    fn loss_shares_0_and_1_are_exact() {
        assert!(bursts(GilbertElliottSpec::bursts(0.0, 3.0), 4).is_empty());
        let all = GilbertElliottSpec::bursts(1.0, 3.0);
        assert!(play(&mut Impair::new(GilbertElliott::new(all, Rng::new(5))), 1_000, 1).is_empty());
    }
}
