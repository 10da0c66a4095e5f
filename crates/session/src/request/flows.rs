//! Further flows of a stream: their offer, and the request of each.

use std::fmt;

use crate::field::{Fields, Malformed};

/// Most flows of one stream: a machine with more idle cores is rare, and each flow has a port and two threads.
pub const MAX_FLOWS: u8 = 16;
/// The type of the offer among the extensions of an opening frame. Those of `sender_request` come before it.
pub(crate) const BONDING: u8 = 0xa2;

/// The secret that ties flows together. Whoever knows it may join, if its key is the right one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Token(pub [u8; 16]);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

/// The offer of further flows in an opening frame. Sides that do not know it ignore it, and then refuse the flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bonding {
    /// Flows that may join, up to [`MAX_FLOWS`].
    pub flows: u8,
    /// The token that they will say.
    pub token: Token,
}

/// The request of a further flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Join {
    /// The token of the stream.
    pub token: Token,
    /// Its number, from 1. Each joins once.
    pub index: u8,
}

impl Bonding {
    /// Whether a flow of this number may join.
    pub const fn admits(&self, index: u8) -> bool {
        index >= 1 && index <= self.flows && index <= MAX_FLOWS
    }

    pub(crate) fn to_bytes(self) -> Vec<u8> {
        [&[self.flows][..], &self.token.0].concat()
    }

    pub(crate) fn decode(body: &[u8]) -> Result<Self, Malformed> {
        let mut fields = Fields::new(body);
        Ok(Self { flows: fields.u8()?, token: Token(fields.array()?) })
    }
}

impl Join {
    pub(crate) fn encode(self, out: &mut Vec<u8>) {
        out.push(self.index);
        out.extend_from_slice(&self.token.0);
    }

    pub(crate) fn decode(body: &[u8]) -> Result<Self, Malformed> {
        let mut fields = Fields::new(body);
        Ok(Self { index: fields.u8()?, token: Token(fields.array()?) })
    }
}
