//! Digests that verify a copy: BLAKE3 over a file's bytes, as `b3sum` prints it.

mod chunks;

use std::fmt;

pub use chunks::{CHUNK_LEN, ChunkDigest, ChunkDigests, ChunkHasher, chunk_count, chunk_range};

/// Length of a digest in bytes.
pub(crate) const DIGEST_LEN: usize = blake3::OUT_LEN;

/// The BLAKE3 digest of one file's content. Displayed in hexadecimal form, as by `b3sum`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; DIGEST_LEN]);

impl Digest {
    /// The digest with these bytes.
    pub const fn from_bytes(bytes: [u8; DIGEST_LEN]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    pub const fn as_bytes(&self) -> &[u8; DIGEST_LEN] {
        &self.0
    }

    /// The digest of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&blake3::Hash::from_bytes(self.0).to_hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Published test vector: the empty input.
    const EMPTY: &str = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262";

    #[test]
    fn digest_prints_like_b3sum() {
        assert_eq!(Digest::of(b"").to_string(), EMPTY);
    }
}
