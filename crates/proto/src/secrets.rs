//! Numbers that strangers must not guess (attack A2): ids and first sequence numbers.

use siphasher::sip::SipHasher24;

/// Numbers that follow from a key alone, and that nobody without it can guess from those it has seen.
pub(crate) struct Secrets {
    key: [u8; 16],
    made: u64,
}

impl Secrets {
    pub(crate) const fn new(key: [u8; 16]) -> Self {
        Self { key, made: 0 }
    }

    /// The next one: 32 bits, each as likely as any other.
    pub(crate) fn draw(&mut self) -> u32 {
        self.made += 1;
        SipHasher24::new_with_key(&self.key).hash(&self.made.to_be_bytes()) as u32
    }

    /// The key, for others that keep secrets from the same strangers.
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
