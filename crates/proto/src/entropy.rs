//! Randomness of an endpoint, and numbers that strangers must not guess (attack A2): socket ids and initial sequence numbers.

use siphasher::sip::SipHasher24;

/// Randomness from the operating system, or from a simulator's seed.
#[derive(Clone, Debug)]
pub struct Entropy {
    /// Key of the handshake cookie. Must be secret on a network.
    pub cookie_key: [u8; 16],
    /// Seed of socket ids, initial sequence numbers and jitter.
    pub seed: u64,
}

impl Entropy {
    /// Makes as many others from it as are needed. None reveals another one.
    pub(crate) fn divided(self) -> impl FnMut() -> Self {
        let mut secrets = Secrets::new(self.cookie_key);
        move || {
            let cookie_key = secrets.draw_bytes();
            let seed = u64::from(secrets.draw()) << 32 | u64::from(secrets.draw());
            Self { cookie_key, seed: seed ^ self.seed }
        }
    }
}

/// A sequence of numbers derived from a key. Without the key, earlier numbers do not reveal later ones.
pub struct Secrets {
    key: [u8; 16],
    made: u64,
}

impl Secrets {
    /// Secrets that follow from `key`.
    pub const fn new(key: [u8; 16]) -> Self {
        Self { key, made: 0 }
    }

    /// The next number: 32 uniformly distributed bits.
    pub fn draw(&mut self) -> u32 {
        self.made += 1;
        SipHasher24::new_with_key(&self.key).hash(&self.made.to_be_bytes()) as u32
    }

    /// Bytes of the next numbers. `N` is a multiple of four.
    pub fn draw_bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        bytes.chunks_exact_mut(4).for_each(|chunk| chunk.copy_from_slice(&self.draw().to_be_bytes()));
        bytes
    }

    /// The key, for other parts that need secrets.
    pub(crate) const fn key(&self) -> [u8; 16] {
        self.key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_do_not_repeat_and_differ_from_key_to_key() {
        let draw = |key| {
            let mut secrets = Secrets::new([key; 16]);
            std::array::from_fn::<_, 100, _>(|_| secrets.draw())
        };
        let mut seen = [draw(1), draw(2)].concat();
        assert_eq!(draw(1)[..], seen[..100], "the same key, the same numbers");
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 200);
    }
}
