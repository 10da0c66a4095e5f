//! Delay that differs from packet to packet.

use farhaul_units::{Duration, Instant, Rng};

use crate::{Impairment, Outlet, WireLen};

/// How far the additional delay goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JitterSpec {
    /// The additional delay is uniform in 0..=`max`, to the nanosecond.
    pub max: Duration,
    /// Whether packets may overtake one another. If not, a packet waits for the one before it; so when packets follow
    /// closer than the jitter, they come in bunches, delayed by nearly `max`.
    pub may_reorder: bool,
}

impl JitterSpec {
    /// Jitter up to `max` that keeps the order of packets, as a queue of other people's traffic does.
    pub const fn up_to(max: Duration) -> Self {
        Self { max, may_reorder: false }
    }
}

/// Delays each packet by a draw of its own.
#[derive(Clone, Debug)]
pub struct Jitter {
    spec: JitterSpec,
    rng: Rng,
    /// When the latest packet leaves.
    last_due: Instant,
}

impl Jitter {
    /// Delays as `spec` says, drawn from `rng`.
    pub fn new(spec: JitterSpec, rng: Rng) -> Self {
        Self { spec, rng, last_due: Instant::ZERO }
    }
}

impl<P: WireLen> Impairment<P> for Jitter {
    fn apply(&mut self, now: Instant, packet: P, out: &mut Outlet<P>) {
        let max = u64::try_from(self.spec.max.as_nanos()).unwrap_or(u64::MAX);
        let drawn = now + Duration::from_nanos(self.rng.below(max.saturating_add(1)));
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

    fn delays(spec: JitterSpec) -> (Vec<u32>, Vec<u64>) {
        let out = play(&mut Impair::new(Jitter::new(spec, Rng::new(5))), 10_000, PERIOD);
        let delays = out.iter().map(|(due, packet)| due.as_nanos() - u64::from(packet.number) * PERIOD).collect();
        (numbers(&out), delays)
    }

    #[test]
    fn the_additional_delay_is_uniform_up_to_the_maximum() {
        let (_, delays) = delays(JitterSpec { max: Duration::from_nanos(1_000), may_reorder: true });
        let mean = delays.iter().sum::<u64>() as f64 / delays.len() as f64;
        assert!((mean - 500.0).abs() < 12.0, "{mean}");
        assert_eq!((delays.iter().min(), delays.iter().max()), (Some(&0), Some(&1_000)));
    }

    #[test]
    fn packets_keep_their_order_unless_asked() {
        let max = Duration::from_millis(1);
        let (ordered, late) = delays(JitterSpec::up_to(max));
        assert!(ordered.is_sorted() && late.iter().all(|delay| *delay <= 1_000_000));
        assert!(!delays(JitterSpec { max, may_reorder: true }).0.is_sorted());
    }
}
