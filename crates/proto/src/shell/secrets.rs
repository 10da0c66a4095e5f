//! Numbers that strangers must not guess (attack A2): socket ids and initial sequence numbers.

use siphasher::sip::SipHasher24;

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
