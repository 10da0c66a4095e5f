//! The digest of bytes that come one after the other.

use crate::integrity::Digest;

/// A digest in progress.
#[derive(Clone, Debug, Default)]
pub(super) struct Hasher(blake3::Hasher);

impl Hasher {
    pub(super) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of all bytes so far.
    pub(super) fn digest(&self) -> Digest {
        Digest::from_bytes(*self.0.finalize().as_bytes())
    }
}
