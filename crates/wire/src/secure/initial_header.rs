//! The clear part of an Initial packet.
//!
//! ```text
//! version u32 | connection id of the sender u32 | length u8 | client id | length u8 | token
//! ```

use super::header::{ConnectionName, HEADER_LEN};
use crate::DecodeError;

/// Fewest bytes of a client id: as many as QUIC asks for (RFC 9000, section 7.2).
pub const MIN_CLIENT_ID: usize = 8;
/// Most bytes of a client id.
pub const MAX_CLIENT_ID: usize = 20;
/// Most bytes of a token.
pub const MAX_TOKEN: usize = 128;

const WHAT: &str = "header of an Initial packet";

/// Everything that an Initial packet has in clear behind its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InitialHeader<'a> {
    /// The version of these formats that the sender speaks.
    pub version: u32,
    /// The connection id of the sender, to which answers go.
    pub from: ConnectionName,
    /// Random bytes of the client, from which both sides derive the Initial keys. A server repeats them.
    pub client_id: &'a [u8],
    /// The token of a [`Retry`](super::Frame::Retry); empty without one.
    pub token: &'a [u8],
}

impl<'a> InitialHeader<'a> {
    /// Appends its bytes. Ids and tokens beyond their limits are cut, which no side of ours has.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let id = &self.client_id[..self.client_id.len().min(MAX_CLIENT_ID)];
        let token = &self.token[..self.token.len().min(MAX_TOKEN)];
        out.extend_from_slice(&self.version.to_be_bytes());
        out.extend_from_slice(&self.from.value().to_be_bytes());
        out.push(u8::try_from(id.len()).unwrap_or(0));
        out.extend_from_slice(id);
        out.push(u8::try_from(token.len()).unwrap_or(0));
        out.extend_from_slice(token);
    }

    /// Reads it from an Initial packet. Returns it with the length of everything before the body.
    ///
    /// # Errors
    /// The packet is too short, or a length is beyond its limits.
    pub fn decode(datagram: &'a [u8]) -> Result<(Self, usize), DecodeError> {
        let too_short = DecodeError::TooShort { length: datagram.len(), header: HEADER_LEN };
        let rest = datagram.get(HEADER_LEN..).ok_or(too_short)?;
        let cut = DecodeError::BodyLength { packet: WHAT, length: rest.len(), legal: "as long as its fields" };
        let (version, rest) = rest.split_first_chunk().ok_or(cut)?;
        let (from, rest) = rest.split_first_chunk().ok_or(cut)?;
        let (client_id, rest) = field(rest, MIN_CLIENT_ID, MAX_CLIENT_ID, "length of the client id", "8 to 20")?;
        let (token, rest) = field(rest, 0, MAX_TOKEN, "length of the token", "0 to 128")?;
        let from = u32::from_be_bytes(*from);
        if from == 0 || from >> 31 != 0 {
            return Err(DecodeError::OutOfRange { field: "connection id", value: from, legal: "1 to 2^31 - 1" });
        }
        let version = u32::from_be_bytes(*version);
        let initial = Self { version, from: ConnectionName::new(from), client_id, token };
        Ok((initial, datagram.len() - rest.len()))
    }
}

/// A field behind its length, and everything behind it.
fn field<'a>(
    bytes: &'a [u8],
    least: usize,
    most: usize,
    name: &'static str,
    legal: &'static str,
) -> Result<(&'a [u8], &'a [u8]), DecodeError> {
    let cut = DecodeError::BodyLength { packet: WHAT, length: bytes.len(), legal: "as long as its fields" };
    let (&length, rest) = bytes.split_first().ok_or(cut)?;
    let size = usize::from(length);
    if size < least || size > most {
        return Err(DecodeError::OutOfRange { field: name, value: length.into(), legal });
    }
    rest.split_at_checked(size).ok_or(cut)
}
