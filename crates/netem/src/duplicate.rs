//! Packets that arrive twice.

use farhaul_units::{Instant, Rng};

use crate::impair::{Impairment, Outlet, Packet};

/// Sends a copy directly behind randomly chosen packets.
#[derive(Clone, Debug)]
pub struct Duplicate {
    probability: f64,
    rng: Rng,
}

impl Duplicate {
    /// Copies each packet with `probability` in 0..=1, drawn from `rng`.
    pub fn new(probability: f64, rng: Rng) -> Self {
        Self { probability, rng }
    }
}

impl<P: Packet> Impairment<P> for Duplicate {
    fn apply(&mut self, now: Instant, packet: P, out: &mut Outlet<P>) {
        let copy = self.rng.chance(self.probability).then(|| packet.duplicate());
        out.pass(now, packet);
        if let Some(copy) = copy {
            out.counters.duplicated.add(copy.wire_len());
            out.pass(now, copy);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{numbers, play};
    use crate::{Element, Impair};

    #[test]
    fn a_copy_follows_its_original() {
        let mut duplicate = Impair::new(Duplicate::new(1.0, Rng::new(7)));
        assert_eq!(numbers(&play(&mut duplicate, 3, 10)), [0, 0, 1, 1, 2, 2]);
    }

    #[test]
    fn the_share_of_copies_is_the_probability() {
        let mut duplicate = Impair::new(Duplicate::new(0.05, Rng::new(8)));
        let out = play(&mut duplicate, 100_000, 10);
        let copies = duplicate.counters().duplicated.packets;
        assert_eq!(out.len() as u64, 100_000 + copies);
        assert!((4_700..5_300).contains(&copies), "{copies}");
    }
}
