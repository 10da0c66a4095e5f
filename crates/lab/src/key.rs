//! Keys of runs: a hash of everything that a run depends on, equal on every machine and in every version.

use std::fmt;

/// FNV-1a with 128 bits. Offset and prime are from the authors' page, <http://www.isthe.com/chongo/tech/comp/fnv/>.
const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

/// A hash of texts and numbers, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RunKey(u128);

impl RunKey {
    /// The hash of no input.
    pub(crate) fn new() -> Self {
        Self(OFFSET)
    }

    /// Appends bytes.
    #[must_use]
    pub(crate) fn bytes(self, bytes: &[u8]) -> Self {
        Self(bytes.iter().fold(self.0, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(PRIME)))
    }

    /// Appends the content of a file, eight bytes at a time, which is fast for large files.
    #[must_use]
    pub(crate) fn content(self, bytes: &[u8]) -> Self {
        let words = bytes.chunks(8).map(|chunk| chunk.iter().fold(0, |word, &byte| word << 8 | u128::from(byte)));
        Self(words.fold(self.0, |hash, word| (hash ^ word).wrapping_mul(PRIME))).number(bytes.len() as u64)
    }

    /// Appends a text and its length.
    #[must_use]
    pub(crate) fn text(self, text: &str) -> Self {
        self.bytes(text.as_bytes()).number(text.len() as u64)
    }

    /// Appends a number.
    #[must_use]
    pub(crate) fn number(self, number: u64) -> Self {
        self.bytes(&number.to_be_bytes())
    }
}

impl fmt::Display for RunKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_the_published_ones() {
        // Of "", "a" and "foobar", from the authors' test vectors.
        assert_eq!(RunKey::new().to_string(), "6c62272e07bb014262b821756295c58d");
        assert_eq!(RunKey::new().bytes(b"a").to_string(), "d228cb696f1a8caf78912b704e4a8964");
        assert_eq!(RunKey::new().bytes(b"foobar").to_string(), "343e1662793c64bf6f0d3597ba446f18");
    }

    #[test]
    fn texts_cut_at_another_place_have_another_key() {
        assert_ne!(RunKey::new().text("ab").text("c"), RunKey::new().text("a").text("bc"));
    }
}
