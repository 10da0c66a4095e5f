//! The private key of a side.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use rustls::crypto::aws_lc_rs::sign::any_eddsa_type;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use rustls::sign::CertifiedKey;

use crate::public_key::PublicKey;

/// A key pair of Ed25519. It cannot be printed.
#[derive(Clone)]
pub struct KeyPair {
    pkcs8: Vec<u8>,
    public: PublicKey,
    certified: Arc<CertifiedKey>,
}

impl KeyPair {
    /// A new pair, from the randomness of the operating system.
    ///
    /// # Errors
    /// The system has no randomness.
    pub fn generate() -> Result<Self, IdentityError> {
        let pair = Ed25519KeyPair::generate().map_err(|_| IdentityError::NoRandomness)?;
        let document = pair.to_pkcs8v1().map_err(|_| IdentityError::NoRandomness)?;
        Self::from_pkcs8(document.as_ref())
    }

    /// Reads a pair in PKCS #8 (RFC 8410), in DER.
    ///
    /// # Errors
    /// The bytes are no private key of Ed25519.
    pub fn from_pkcs8(der: &[u8]) -> Result<Self, IdentityError> {
        let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der).map_err(|_| IdentityError::Malformed)?;
        let public = pair.public_key().as_ref().try_into().map(PublicKey::from_bytes);
        let public = public.map_err(|_| IdentityError::Malformed)?;
        let signing = any_eddsa_type(&PrivatePkcs8KeyDer::from(der)).map_err(|_| IdentityError::Malformed)?;
        let certified = CertifiedKey::new(vec![CertificateDer::from(public.spki())], signing);
        Ok(Self { pkcs8: der.to_vec(), public, certified: Arc::new(certified) })
    }

    /// The pair in PKCS #8, in DER. Whoever has these bytes is this side.
    pub fn pkcs8(&self) -> &[u8] {
        &self.pkcs8
    }

    /// The public key.
    pub const fn public(&self) -> PublicKey {
        self.public
    }

    pub(crate) fn certified(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.certified)
    }
}

impl fmt::Debug for KeyPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyPair({})", self.public)
    }
}

/// Why there is no key pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IdentityError {
    /// The system has no randomness.
    #[error("the system gives no randomness")]
    NoRandomness,
    /// The bytes are no private key of Ed25519.
    #[error("no private key of Ed25519 in PKCS #8")]
    Malformed,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_survives_its_bytes_and_hides_its_secret() {
        let pair = KeyPair::generate().unwrap();
        let again = KeyPair::from_pkcs8(pair.pkcs8()).unwrap();
        assert_eq!(again.public(), pair.public());
        assert_eq!(format!("{pair:?}"), format!("KeyPair({})", pair.public()));
        assert_ne!(KeyPair::generate().unwrap().public(), pair.public());
        assert_eq!(KeyPair::from_pkcs8(&[0; 48]).unwrap_err(), IdentityError::Malformed);
    }
}
