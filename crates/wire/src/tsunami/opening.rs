//! The beginning of a connection: revision, challenge, proof, and the answers of one byte.

use md5::{Digest, Md5};
use num_enum::TryFromPrimitive;

use super::MessageError;

/// The revision of the protocol that tsunami-udp 1.1 speaks. Both sides send it at once.
pub const REVISION: u32 = 0x2006_1025;
/// Bytes of a challenge.
pub const CHALLENGE_LEN: usize = 64;
/// Bytes of a proof, an MD5 digest (RFC 1321).
pub const PROOF_LEN: usize = 16;

/// Random bytes of a server, new for each connection.
pub type Challenge = [u8; CHALLENGE_LEN];

/// Whether `bytes` begin with our revision; `None` if more bytes are needed.
///
/// # Errors
/// The peer speaks another revision.
pub fn check_revision(bytes: &[u8]) -> Result<Option<usize>, MessageError> {
    let Some(revision) = bytes.first_chunk() else { return Ok(None) };
    match u32::from_be_bytes(*revision) {
        REVISION => Ok(Some(4)),
        other => Err(MessageError::Revision(other)),
    }
}

/// The client's proof that it knows the secret.
///
/// The proof is weak (attack C1). Whoever sees a challenge and its proof can search for the secret at the speed of MD5.
/// Any program that poses as a server can do the same. The server proves nothing, and the data is neither secret nor safe
/// from changes. The proof is here because programs of the original demand it.
#[derive(Clone, Copy, Debug)]
pub struct Proof(pub [u8; PROOF_LEN]);

impl Proof {
    /// The proof for `challenge`: MD5 of the challenge, combined by XOR with the secret repeated over its length.
    /// Without a secret it is the MD5 of the bare challenge.
    pub fn of(challenge: &Challenge, secret: &[u8]) -> Self {
        let mut keyed = *challenge;
        for (byte, key) in keyed.iter_mut().zip(secret.iter().cycle()) {
            *byte ^= key;
        }
        Self(Md5::digest(keyed).into())
    }

    /// Whether both are equal, in a time that does not depend on where they differ.
    pub fn matches(&self, other: &Self) -> bool {
        self.0.iter().zip(other.0).fold(0, |differences, (one, two)| differences | (one ^ two)) == 0
    }
}

/// A byte with which a server answers a proof or a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, TryFromPrimitive)]
#[repr(u8)]
pub enum Answer {
    /// The proof is right, or the file can be had.
    Accepted = 0,
    /// The proof is wrong.
    WrongProof = 1,
    /// The file cannot be opened. The server waits for the next name.
    NoFile = 8,
}

impl Answer {
    /// Its byte.
    pub const fn byte(self) -> u8 {
        self as u8
    }

    /// The answer that a byte means.
    ///
    /// # Errors
    /// No server answers so.
    pub fn from_byte(byte: u8) -> Result<Self, MessageError> {
        Self::try_from_primitive(byte).map_err(|_| MessageError::Answer(byte))
    }
}
