//! Delay that varies from packet to packet.

use farhaul_units::{Duration, Instant, Rng};

use crate::impair::{Impairment, Outlet, WireLen};
use crate::schedule::nanos;

/// Number of uniform draws that are averaged to approximate a normal distribution. With three, the bounds lie at
/// exactly three standard deviations.
const NORMAL_DRAWS: u128 = 3;

/// Distribution of the additional delays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JitterShape {
    /// Every delay up to the maximum is equally likely.
    #[default]
    Uniform,
    /// Approximates a normal distribution cut off at three standard deviations: mean max/2, standard deviation max/6.
    ///
    /// The delay is the mean of three uniform draws. The bounds are exact and the result is the same on every machine.
    Normal,
}

/// Range and distribution of the additional delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JitterSpec {
    /// The additional delay lies in 0..=`max`, in whole nanoseconds.
    pub max: Duration,
    /// Its distribution in that range.
    pub shape: JitterShape,
    /// Whether packets may overtake one another. If not, a packet waits for the one before it. Packets closer together
    /// than the jitter then arrive in bunches, delayed by nearly `max`.
    pub may_reorder: bool,
}

impl JitterSpec {
    /// Jitter up to `max` that keeps packets in order, as queueing behind cross traffic does.
    pub const fn up_to(max: Duration) -> Self {
        Self { max, shape: JitterShape::Uniform, may_reorder: false }
    }
}

/// Delays each packet by its own random draw.
#[derive(Clone, Debug)]
pub struct Jitter {
    spec: JitterSpec,
    rng: Rng,
    /// When the latest packet leaves.
    last_due: Instant,
}

impl Jitter {
    /// Delays packets as `spec` says, drawn from `rng`.
    pub fn new(spec: JitterSpec, rng: Rng) -> Self {
        Self { spec, rng, last_due: Instant::ZERO }
    }
}

impl<P: WireLen> Impairment<P> for Jitter {
    fn apply(&mut self, now: Instant, packet: P, out: &mut Outlet<P>) {
        let values = nanos(self.spec.max).saturating_add(1);
        let delay = match self.spec.shape {
            JitterShape::Uniform => self.rng.below(values),
            JitterShape::Normal => {
                let sum: u128 = (0..NORMAL_DRAWS).map(|_| u128::from(self.rng.below(values))).sum();
                (sum / NORMAL_DRAWS) as u64 // the mean of draws of 64 bits
            }
        };
        let drawn = now + Duration::from_nanos(delay);
        let due = if self.spec.may_reorder { drawn } else { drawn.max(self.last_due) };
        self.last_due = due;
        out.pass(due, packet);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Impair;
    use crate::testing::{numbers, play};

    const PERIOD: u64 = 10_000;

    fn reordering(max: Duration) -> JitterSpec {
        JitterSpec { may_reorder: true, ..JitterSpec::up_to(max) }
    }

    fn delays(spec: JitterSpec) -> (Vec<u32>, Vec<u64>) {
        let out = play(&mut Impair::new(Jitter::new(spec, Rng::new(5))), 10_000, PERIOD);
        let delays = out.iter().map(|(due, packet)| due.as_nanos() - u64::from(packet.number) * PERIOD).collect();
        (numbers(&out), delays)
    }

    #[test]
    fn the_additional_delay_is_uniform_up_to_the_maximum() {
        let (_, delays) = delays(reordering(Duration::from_nanos(1_000)));
        let mean = delays.iter().sum::<u64>() as f64 / delays.len() as f64;
        assert!((mean - 500.0).abs() < 12.0, "{mean}");
        assert_eq!((delays.iter().min(), delays.iter().max()), (Some(&0), Some(&1_000)));
    }

    #[test]
    fn the_normal_shape_has_its_mean_its_deviation_and_its_bounds() {
        let shape = JitterShape::Normal;
        let (_, delays) = delays(JitterSpec { shape, ..reordering(Duration::from_nanos(6_000)) });
        let count = delays.len() as f64;
        let mean = delays.iter().sum::<u64>() as f64 / count;
        let variance = delays.iter().map(|delay| (*delay as f64 - mean) * (*delay as f64 - mean)).sum::<f64>() / count;
        assert!((mean - 3_000.0).abs() < 40.0 && (variance.sqrt() - 1_000.0).abs() < 30.0, "{mean}, {variance}");
        assert!(delays.iter().all(|delay| *delay <= 6_000));
        let within_one_deviation =
            delays.iter().filter(|delay| (2_000..=4_000).contains(*delay)).count() as f64 / count;
        assert!((within_one_deviation - 0.667).abs() < 0.02, "{within_one_deviation}");
    }

    #[test]
    fn packets_keep_their_order_unless_asked() {
        let max = Duration::from_millis(1);
        let (ordered, late) = delays(JitterSpec::up_to(max));
        assert!(ordered.is_sorted() && late.iter().all(|delay| *delay <= 1_000_000));
        assert!(!delays(reordering(max)).0.is_sorted());
    }
}
