//! The packet key of one cipher alone, to measure what it costs.

use rustls::Side;
use rustls::quic::{Keys, PacketKey, Version};

use crate::provider::{Cipher, has_aes};

/// A key that anybody can derive. It hides nothing, and takes as long as a secret one.
pub struct Sealer(Box<dyn PacketKey>);

impl Sealer {
    /// A key of this cipher. `None` if the TLS library lacks it.
    pub fn new(cipher: Cipher) -> Option<Self> {
        let suite = cipher.suites().first()?.tls13()?;
        let keys = Keys::initial(Version::V1, suite, suite.quic?, b"measured", Side::Client);
        Some(Self(keys.local.packet))
    }

    /// Encrypts `body` in place, and computes its tag. Returns false if the cipher refuses.
    pub fn seal(&self, number: u64, header: &[u8], body: &mut [u8]) -> bool {
        self.0.encrypt_in_place(number, header, body).is_ok()
    }

    /// Whether this processor has instructions for AES.
    pub fn has_aes_instructions() -> bool {
        has_aes()
    }
}

impl std::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sealer").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cipher_changes_the_body_in_its_own_way() {
        let sealed = [Cipher::Aes128Gcm, Cipher::Aes256Gcm, Cipher::ChaCha20Poly1305].map(|cipher| {
            let mut body = [0; 64];
            assert!(Sealer::new(cipher).unwrap().seal(1, b"header", &mut body));
            body
        });
        assert!(sealed[0] != sealed[1] && sealed[1] != sealed[2] && sealed[0] != sealed[2] && sealed[0] != [0; 64]);
    }
}
