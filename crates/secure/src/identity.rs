//! The private key of a side.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls::crypto::aws_lc_rs::sign::any_eddsa_type;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use rustls::sign::CertifiedKey;
use zeroize::Zeroizing;

use crate::public_key::PublicKey;

/// The lines around a key in PEM (RFC 7468, section 10).
const BEGIN: &str = "-----BEGIN PRIVATE KEY-----";
const END: &str = "-----END PRIVATE KEY-----";
/// Characters of a line.
const LINE: usize = 64;

/// A key pair of Ed25519. It cannot be printed, and its memory is erased when the last clone is dropped.
#[derive(Clone)]
pub struct KeyPair {
    pkcs8: Zeroizing<Vec<u8>>,
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
        Ok(Self { pkcs8: Zeroizing::new(der.to_vec()), public, certified: Arc::new(certified) })
    }

    /// Reads a pair in PEM, as [`to_pem`](Self::to_pem) and `openssl genpkey -algorithm ed25519` write it.
    ///
    /// # Errors
    /// The text has no private key of Ed25519.
    pub fn from_pem(text: &str) -> Result<Self, IdentityError> {
        let (_, behind) = text.split_once(BEGIN).ok_or(IdentityError::Malformed)?;
        let (body, _) = behind.split_once(END).ok_or(IdentityError::Malformed)?;
        // Of full size from the start, since a growing buffer leaves copies behind.
        let mut letters = Zeroizing::new(String::with_capacity(body.len()));
        body.split_ascii_whitespace().for_each(|line| letters.push_str(line));
        let mut der = Zeroizing::new(vec![0; letters.len()]);
        let length = STANDARD.decode_slice(letters.as_bytes(), &mut der).map_err(|_| IdentityError::Malformed)?;
        Self::from_pkcs8(&der[..length])
    }

    /// The pair in PEM, as the content of a file. Whoever reads it is this side. The text is erased when it is dropped.
    pub fn to_pem(&self) -> Zeroizing<String> {
        let body = Zeroizing::new(STANDARD.encode(&*self.pkcs8));
        let ends = BEGIN.len() + END.len() + 2;
        let mut text = Zeroizing::new(String::with_capacity(ends + body.len() + body.len().div_ceil(LINE)));
        text.push_str(BEGIN);
        text.push('\n');
        for line in body.as_bytes().chunks(LINE) {
            text.extend(line.iter().map(|&byte| char::from(byte)));
            text.push('\n');
        }
        text.push_str(END);
        text.push('\n');
        text
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
    fn a_pair_survives_its_file() {
        let pair = KeyPair::generate().unwrap();
        let text = pair.to_pem();
        assert_eq!(KeyPair::from_pem(&text).unwrap().public(), pair.public());
        assert!(text.lines().all(|line| line.len() <= LINE) && text.ends_with("KEY-----\n"));
        for damaged in [text.replace("BEGIN", "START"), text[..60].to_owned(), text.replace('M', "!"), String::new()] {
            assert_eq!(KeyPair::from_pem(&damaged).unwrap_err(), IdentityError::Malformed, "{damaged}");
        }
    }

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
