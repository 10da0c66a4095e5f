//! Packets that arrive damaged.

use farhaul_units::{Instant, Rng};

use crate::impair::{Impairment, Outlet, Packet};

/// Damages randomly chosen packets.
#[derive(Clone, Debug)]
pub struct Corrupt {
    probability: f64,
    /// Chooses the packets. Separate from `damage`, so that a packet that needs more draws does not change later
    /// choices.
    choice: Rng,
    /// Chooses the damage within a packet.
    damage: Rng,
}

impl Corrupt {
    /// Damages each packet with `probability` in 0..=1, drawn from `rng`.
    pub fn new(probability: f64, mut rng: Rng) -> Self {
        let damage = rng.fork();
        Self { probability, choice: rng, damage }
    }
}

impl<P: Packet> Impairment<P> for Corrupt {
    fn apply(&mut self, now: Instant, mut packet: P, out: &mut Outlet<P>) {
        if self.choice.chance(self.probability) {
            packet.corrupt(&mut self.damage);
            out.counters.corrupted.add(packet.wire_len());
        }
        out.pass(now, packet);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::play;
    use crate::{Element, Impair, flip_random_bit};

    #[test]
    fn a_damaged_buffer_differs_in_one_bit() {
        let mut corrupt = Impair::new(Corrupt::new(1.0, Rng::new(9)));
        for _ in 0..1_000 {
            corrupt.push(Instant::ZERO, vec![0xA5_u8; 64]);
            let damaged = corrupt.pop(Instant::ZERO).unwrap();
            assert_eq!(damaged.iter().map(|byte| (byte ^ 0xA5).count_ones()).sum::<u32>(), 1);
        }
    }

    #[test]
    fn an_empty_buffer_survives() {
        let mut empty: [u8; 0] = [];
        flip_random_bit(&mut empty, &mut Rng::new(10));
    }

    #[test]
    fn the_share_of_damaged_packets_is_the_probability() {
        let mut corrupt = Impair::new(Corrupt::new(0.05, Rng::new(11)));
        let damaged = play(&mut corrupt, 100_000, 10).iter().filter(|(_, packet)| packet.damaged).count();
        assert_eq!(damaged as u64, corrupt.counters().corrupted.packets);
        assert!((4_700..5_300).contains(&damaged), "{damaged}");
    }
}
