//! Independent random loss.

use farhaul_units::{Instant, Rng};

use super::model::LossModel;

/// Loses each packet independently with the same probability.
#[derive(Clone, Debug)]
pub struct Bernoulli {
    probability: f64,
    rng: Rng,
}

impl Bernoulli {
    /// Loses packets with `probability` in 0..=1, drawn from `rng`.
    pub fn new(probability: f64, rng: Rng) -> Self {
        Self { probability, rng }
    }
}

impl LossModel for Bernoulli {
    fn loses(&mut self, _: Instant, _: u32) -> bool {
        self.rng.chance(self.probability)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::play;
    use crate::{Element, Impair};

    #[test]
    fn the_share_of_lost_packets_is_the_probability() {
        for (seed, probability) in [(1, 0.001), (2, 0.01), (3, 0.3)] {
            let mut loss = Impair::new(Bernoulli::new(probability, Rng::new(seed)));
            let packets = 1_000_000;
            play(&mut loss, packets, 1);
            let expected = f64::from(packets) * probability;
            let deviation = (expected * (1.0 - probability)).sqrt();
            let lost = loss.counters().dropped_loss.packets as f64;
            assert!((lost - expected).abs() < 4.0 * deviation, "{lost} lost, {expected} expected");
        }
    }

    #[test]
    fn probabilities_0_and_1_are_exact() {
        let delivered = |probability| play(&mut Impair::new(Bernoulli::new(probability, Rng::new(4))), 1_000, 1).len();
        assert_eq!((delivered(0.0), delivered(1.0)), (1_000, 0));
    }
}
