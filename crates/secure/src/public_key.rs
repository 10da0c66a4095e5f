//! Public Ed25519 keys: as text in the format of OpenSSH, as fingerprint, and as TLS has them.

use std::fmt;
use std::str::FromStr;

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};

/// Bytes of a key.
const LEN: usize = 32;
/// A SubjectPublicKeyInfo of Ed25519 up to the key (RFC 8410, section 4).
const SPKI: [u8; 12] = [0x30, 0x2A, 0x30, 0x05, 0x06, 0x03, 0x2B, 0x65, 0x70, 0x03, 0x21, 0x00];
/// The name of the algorithm in OpenSSH (RFC 8709).
const SSH: &str = "ssh-ed25519";

/// The public key of a side.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey([u8; LEN]);

impl PublicKey {
    /// The key with these bytes.
    pub const fn from_bytes(bytes: [u8; LEN]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    pub const fn bytes(&self) -> &[u8; LEN] {
        &self.0
    }

    /// The key in a SubjectPublicKeyInfo in DER; `None` if that is none of Ed25519.
    pub fn from_spki(der: &[u8]) -> Option<Self> {
        der.strip_prefix(&SPKI)?.try_into().ok().map(Self)
    }

    /// Its SubjectPublicKeyInfo in DER.
    pub fn spki(&self) -> Vec<u8> {
        [&SPKI[..], &self.0].concat()
    }

    /// The fingerprint that `ssh-keygen -l` prints: `SHA256:` and 43 characters.
    pub fn fingerprint(&self) -> String {
        format!("SHA256:{}", STANDARD_NO_PAD.encode(digest(&SHA256, &self.ssh_blob())))
    }

    /// The key as OpenSSH encodes it: two fields, each behind its length.
    fn ssh_blob(&self) -> Vec<u8> {
        let mut blob = Vec::with_capacity(51);
        for field in [SSH.as_bytes(), &self.0] {
            blob.extend_from_slice(&u32::try_from(field.len()).unwrap_or(0).to_be_bytes());
            blob.extend_from_slice(field);
        }
        blob
    }
}

impl fmt::Display for PublicKey {
    /// As in a `.pub` file of OpenSSH, without a comment.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SSH} {}", STANDARD.encode(self.ssh_blob()))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({self})")
    }
}

impl FromStr for PublicKey {
    type Err = PublicKeyError;

    /// Reads the first two words of a `.pub` file of OpenSSH. A comment behind them is ignored.
    fn from_str(text: &str) -> Result<Self, PublicKeyError> {
        let mut words = text.split_ascii_whitespace();
        match words.next() {
            Some(SSH) => {}
            Some(other) => return Err(PublicKeyError::Algorithm(other.chars().take(40).collect())),
            None => return Err(PublicKeyError::Empty),
        }
        let blob = STANDARD.decode(words.next().unwrap_or_default()).map_err(|_| PublicKeyError::Malformed)?;
        let key = blob.get(blob.len().saturating_sub(LEN)..).and_then(|key| key.try_into().ok()).map(Self);
        key.filter(|key| key.ssh_blob() == blob).ok_or(PublicKeyError::Malformed)
    }
}

/// Why a text is no public key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PublicKeyError {
    /// Nothing is there.
    #[error("no key: expected `ssh-ed25519 AAAA…`")]
    Empty,
    /// A key of another algorithm.
    #[error("a key of the type {0:?}: only ssh-ed25519 is supported; make one with `ssh-keygen -t ed25519`")]
    Algorithm(String),
    /// The second word is no key.
    #[error("a damaged ssh-ed25519 key")]
    Malformed,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The host key of github.com, and the fingerprint that its owner publishes.
    const TEXT: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl github";
    const FINGERPRINT: &str = "SHA256:+DiY3wvvV6TuJJhbpZisF/zLDA0zPMSvHdkr4UvCOqU";

    #[test]
    fn text_and_fingerprint_are_those_of_openssh() {
        let key: PublicKey = TEXT.parse().unwrap();
        assert_eq!(key.fingerprint(), FINGERPRINT);
        assert_eq!(format!("{key} github"), TEXT);
        assert_eq!(PublicKey::from_spki(&key.spki()), Some(key));
    }

    #[test]
    fn other_keys_are_named() {
        let refused = |text: &str| text.parse::<PublicKey>().unwrap_err();
        assert_eq!(refused(""), PublicKeyError::Empty);
        assert_eq!(refused("ssh-rsa AAAA"), PublicKeyError::Algorithm("ssh-rsa".into()));
        assert_eq!(refused("ssh-ed25519"), PublicKeyError::Malformed);
        assert_eq!(refused(&TEXT.replace("OMqq", "OMq")), PublicKeyError::Malformed);
        assert_eq!(PublicKey::from_spki(&[0; 44]), None);
    }
}
