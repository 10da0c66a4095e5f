//! Packets held back so that later ones overtake them.

use farhaul_units::{Duration, Instant, Rng};

use crate::impair::{Impairment, Outlet, WireLen};

/// How many packets are held back, and for how long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReorderSpec {
    /// The share of packets held back, in 0..=1.
    pub probability: f64,
    /// How long they are held back. Packets that arrive in this time overtake, unless they are held back too.
    pub extra_delay: Duration,
}

/// Holds back randomly chosen packets and passes the others at once.
#[derive(Clone, Debug)]
pub struct Reorder {
    spec: ReorderSpec,
    rng: Rng,
}

impl Reorder {
    /// Holds packets back as `spec` says, drawn from `rng`.
    pub fn new(spec: ReorderSpec, rng: Rng) -> Self {
        Self { spec, rng }
    }
}

impl<P: WireLen> Impairment<P> for Reorder {
    fn apply(&mut self, now: Instant, packet: P, out: &mut Outlet<P>) {
        if self.rng.chance(self.spec.probability) {
            out.counters.reordered.add(packet.wire_len());
            out.pass(now + self.spec.extra_delay, packet);
        } else {
            out.pass(now, packet);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::play;
    use crate::{Element, Impair};

    #[test]
    fn a_held_packet_is_overtaken_by_those_of_its_extra_delay() {
        let spec = ReorderSpec { probability: 0.1, extra_delay: Duration::from_nanos(35) };
        let mut reorder = Impair::new(Reorder::new(spec, Rng::new(6)));
        let out = play(&mut reorder, 10_000, 10);
        let held = out.iter().filter(|(due, packet)| due.as_nanos() > u64::from(packet.number) * 10).count();
        assert_eq!(held as u64, reorder.counters().reordered.packets);
        assert!((900..1_100).contains(&held), "{held}");
        let displaced = out.windows(2).filter(|pair| pair[0].1.number > pair[1].1.number).count();
        assert!(displaced > 500, "{displaced}");
    }
}
