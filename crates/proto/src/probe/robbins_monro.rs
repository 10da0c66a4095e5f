//! Stabilisation of a goodput at a target by stochastic approximation (Robbins and Monro 1951, paper:robbins-1951; as
//! applied in paper:ornl §3.2).
//!
//! ```text
//! 1/T′  = 1/T − (a/W)/n^α · (g − g*)       the paper's form                     (1)
//! r′    = r   − a/n^α · (g − g*)           the same for the rate r = W/T        (2)
//! ```
//!
//! | paper | here | unit |
//! | --- | --- | --- |
//! | W_c | `window` | datagrams |
//! | T_s | [`sleep`](RobbinsMonro::sleep) | |
//! | g, g* | `goodput`, `target` | datagrams per second |
//! | a, α | `gain`, `exponent` | |
//! | n | `step` | |
//!
//! It converges under random loss if 0.5 < α ≤ 1. The paper's denominator can become zero or negative. Here the rate is
//! kept within bounds instead (departure D160).

use farhaul_units::Duration;

/// a and α of the paper's experiments.
pub(super) const GAIN: f64 = 0.8;
pub(super) const EXPONENT: f64 = 0.8;
/// The first sleep of the paper's experiments.
pub(super) const FIRST_SLEEP: Duration = Duration::from_millis(100);
/// Longest and shortest sleep. A stream that sleeps longer measures nothing, one that sleeps less is not paced.
const LONGEST: Duration = Duration::from_secs(10);
const SHORTEST: Duration = Duration::from_micros(10);

/// The law of one stream.
#[derive(Clone, Copy, Debug)]
pub struct RobbinsMonro {
    /// Datagrams in a burst.
    window: f64,
    /// Datagrams per second.
    target: f64,
    rate: f64,
    step: f64,
    gain: f64,
    exponent: f64,
}

impl RobbinsMonro {
    /// The law for bursts of `window` datagrams and a target in datagrams per second.
    pub fn new(window: u32, target: f64, first_sleep: Duration, gain: f64, exponent: f64) -> Self {
        let window = f64::from(window.max(1));
        let rate = window / first_sleep.clamp(SHORTEST, LONGEST).as_secs_f64();
        Self { window, target, rate, step: 1.0, gain, exponent }
    }

    /// The sleep between two bursts.
    pub fn sleep(&self) -> Duration {
        Duration::from_secs_f64(self.window / self.rate)
    }

    /// Datagrams per second of the source.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Steps made so far.
    pub fn steps(&self) -> u64 {
        self.step as u64 - 1
    }

    /// Takes the target as the rate, if the rate is higher. Without answers nothing says that more would help
    /// (departure D163).
    pub fn fall_to_target(&mut self) {
        self.rate = self.rate.min(self.target).max(self.window / LONGEST.as_secs_f64());
    }

    /// One step with the goodput of the last one, datagrams per second.
    //= paper:ornl §3.2 eq. (2)
    pub fn update(&mut self, goodput: f64) {
        let change = self.gain / libm::pow(self.step, self.exponent) * (goodput - self.target);
        let (slowest, fastest) = (self.window / LONGEST.as_secs_f64(), self.window / SHORTEST.as_secs_f64());
        self.rate = (self.rate - change).clamp(slowest, fastest);
        self.step += 1.0;
    }
}

#[cfg(test)]
mod tests {
    use farhaul_units::Rng;

    use super::*;

    fn law(window: u32, target: f64) -> RobbinsMonro {
        RobbinsMonro::new(window, target, FIRST_SLEEP, GAIN, EXPONENT)
    }

    #[test]
    fn one_step_is_the_papers_formula() {
        let mut law = law(6, 100.0);
        assert_eq!(law.sleep(), FIRST_SLEEP);
        law.update(60.0);
        // 1/T' = 1/0.1 − (0.8/6)/1 · (60 − 100)
        let sleep = 1.0 / (1.0 / 0.1 - 0.8 / 6.0 * (60.0 - 100.0));
        assert!((law.sleep().as_secs_f64() - sleep).abs() < 1e-8);
        law.update(92.0);
        let sleep = 1.0 / (1.0 / sleep - 0.8 / 6.0 / libm::pow(2.0, 0.8) * (92.0 - 100.0));
        assert!((law.sleep().as_secs_f64() - sleep).abs() < 1e-8);
    }

    #[test]
    fn a_denominator_that_would_be_negative_gives_the_longest_sleep() {
        let mut law = law(2, 1.0);
        law.update(1_000.0);
        assert_eq!(law.sleep(), LONGEST);
        law.update(0.0);
        assert!(law.sleep() < LONGEST, "and the stream recovers");
    }

    #[test]
    fn random_loss_moves_the_source_and_not_the_goodput() {
        let (mut law, mut rng) = (law(6, 139.0), Rng::new(5));
        let mut sum = 0.0;
        for step in 0..4_000 {
            let arrived = (0..6).filter(|_| rng.unit() >= 0.05).count() as f64;
            let goodput = law.rate() * arrived / 6.0;
            if step >= 2_000 {
                sum += goodput;
            }
            law.update(goodput);
        }
        assert!((sum / 2_000.0 / 139.0 - 1.0).abs() < 0.01, "{}", sum / 2_000.0);
        assert!((law.rate() * 0.95 / 139.0 - 1.0).abs() < 0.01, "{}", law.rate());
    }
}
