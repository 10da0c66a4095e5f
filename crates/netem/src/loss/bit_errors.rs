//! Random bit errors: longer packets are lost more often.
//!
//! Each bit is wrong independently with the bit error rate e. A packet with a wrong bit does not arrive, because the
//! link's checksum rejects it:
//!
//! ```text
//! P(lost) = 1 − (1 − e)^bits     (1)
//! ```

use farhaul_units::{Instant, Rng};

use super::model::LossModel;

const BITS_PER_BYTE: f64 = 8.0;

/// Number of packet lengths whose loss probability is cached. Most traffic has two: full packets and acknowledgements.
const REMEMBERED: usize = 4;

/// Loses packets with a probability that depends on their length.
#[derive(Clone, Debug)]
pub struct BitErrors {
    /// ln(1 − e).
    log_of_right: f64,
    rng: Rng,
    /// Packet lengths and their loss by (1).
    remembered: [(u32, f64); REMEMBERED],
    oldest: usize,
}

impl BitErrors {
    /// Bit errors with `error_rate` in 0..=1, drawn from `rng`.
    pub fn new(error_rate: f64, rng: Rng) -> Self {
        let log_of_right = libm::log1p(-error_rate.clamp(0.0, 1.0));
        Self { log_of_right, rng, remembered: [(0, 0.0); REMEMBERED], oldest: 0 }
    }

    /// The probability that a packet of `bytes` bytes is lost: equation (1), accurate also for very small rates.
    #[cfg(test)]
    fn loss_of(error_rate: f64, bytes: u32) -> f64 {
        Self::new(error_rate, Rng::new(0)).loss(bytes)
    }

    fn loss(&mut self, bytes: u32) -> f64 {
        if let Some((_, loss)) = self.remembered.iter().find(|(length, _)| *length == bytes) {
            return *loss;
        }
        let loss = -libm::expm1(BITS_PER_BYTE * f64::from(bytes) * self.log_of_right);
        self.remembered[self.oldest] = (bytes, loss);
        self.oldest = (self.oldest + 1) % REMEMBERED;
        loss
    }
}

impl LossModel for BitErrors {
    fn loses(&mut self, _: Instant, bytes: u32) -> bool {
        let loss = self.loss(bytes);
        self.rng.chance(loss)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Numbered;
    use crate::{Element, Impair};

    #[test]
    fn the_probability_follows_from_the_number_of_bits() {
        // 1 − (1 − 1/2)^8. For small rates nearly bits × rate.
        assert!((BitErrors::loss_of(0.5, 1) - 255.0 / 256.0).abs() < 1e-15);
        assert!((BitErrors::loss_of(1e-12, 1_500) / 1.2e-8 - 1.0).abs() < 1e-8);
        assert!((BitErrors::loss_of(1e-3, 1_500) - (1.0 - 6.113e-6)).abs() < 1e-8);
        assert_eq!((BitErrors::loss_of(0.0, 1_500), BitErrors::loss_of(1.0, 1)), (0.0, 1.0));
    }

    #[test]
    fn loss_grows_with_the_length_of_a_packet() {
        let mut errors = Impair::new(BitErrors::new(1e-5, Rng::new(1)));
        let lengths = [40, 576, 1_500, 9_000, 100];
        let packets = 200_000;
        let mut arrived = [0u32; 5];
        for number in 0..packets {
            for (bytes, arrived) in lengths.iter().zip(&mut arrived) {
                errors.push(Instant::ZERO, Numbered { bytes: *bytes, ..Numbered::new(number) });
                *arrived += u32::from(errors.pop(Instant::ZERO).is_some());
            }
        }
        for (bytes, arrived) in lengths.into_iter().zip(arrived) {
            let expected = BitErrors::loss_of(1e-5, bytes);
            let deviation = (expected * (1.0 - expected) / f64::from(packets)).sqrt();
            let share = 1.0 - f64::from(arrived) / f64::from(packets);
            assert!((share - expected).abs() < 4.0 * deviation, "{bytes} bytes: {share}, expected {expected}");
        }
    }
}
