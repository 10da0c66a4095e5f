//! The client's random bytes, which name a handshake before the client knows the server's connection id.

use farhaul_wire::secure::{MAX_CLIENT_ID, MIN_CLIENT_ID};

use crate::entropy::Secrets;

/// Between 8 and 20 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ClientId {
    bytes: [u8; MAX_CLIENT_ID],
    length: u8,
}

impl ClientId {
    /// `None` if the length is not one of a client id.
    pub(super) fn new(from: &[u8]) -> Option<Self> {
        if from.len() < MIN_CLIENT_ID {
            return None;
        }
        let mut bytes = [0; MAX_CLIENT_ID];
        bytes.get_mut(..from.len())?.copy_from_slice(from);
        Some(Self { bytes, length: u8::try_from(from.len()).ok()? })
    }

    /// One of 20 bytes that nobody guesses.
    pub(super) fn draw(secrets: &mut Secrets) -> Self {
        Self { bytes: secrets.draw_bytes(), length: MAX_CLIENT_ID as u8 }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length.into()]
    }
}
