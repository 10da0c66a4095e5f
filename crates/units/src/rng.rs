//! The only randomness in the pure zone: seeded, small, and equal on every machine.

/// A seeded random number generator (xoshiro256**, seeded through SplitMix64).
///
/// Not for secrets: keys and socket ids come from the operating system, through the driver. The code is written out
/// here because a library's new version might change the random streams of published figures. Both algorithms are in
/// the public domain (Blackman and Vigna, prng.di.unimi.it).
#[derive(Clone, Debug)]
pub struct Rng([u64; 4]);

impl Rng {
    /// A generator whose output is determined by `seed`.
    pub fn new(seed: u64) -> Self {
        let mut state = seed;
        Self([(); 4].map(|()| split_mix(&mut state)))
    }

    /// A generator for a component, independent of this one's later draws.
    pub fn fork(&mut self) -> Self {
        Self::new(self.next_u64())
    }

    /// 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.0;
        let result = b.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let shifted = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= shifted;
        *d = d.rotate_left(45);
        result
    }

    /// 32 random bits.
    pub fn next_u32(&mut self) -> u32 {
        (self.next_u64() >> 32) as u32
    }

    /// Uniform in 0..`bound`, by widening multiplication with a bias below 2^-32. Zero if `bound` is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Uniform in [0, 1), with 53 random bits.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// True with `probability`.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_of_seed_zero_never_changes() {
        // SplitMix64 from 0 begins with this published value. The rest fixes our own composition.
        let mut state = 0;
        assert_eq!(split_mix(&mut state), 0xE220_A839_7B1D_CDAF);
        let mut rng = Rng::new(0);
        let first: Vec<u64> = (0..2).map(|_| rng.next_u64()).collect();
        assert_eq!(first, [0x99EC_5F36_CB75_F2B4, 0xBF6E_1F78_4956_452A]);
    }

    #[test]
    fn draws_stay_in_range_and_average_out() {
        let mut rng = Rng::new(7);
        let sum: f64 = (0..100_000).map(|_| rng.unit()).sum();
        assert!((sum / 100_000.0 - 0.5).abs() < 0.01);
        assert!((0..10_000).all(|_| rng.below(10) < 10));
        assert_eq!(rng.below(0), 0);
    }
}
