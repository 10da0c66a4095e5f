//! The handshake body: seven words that open a connection.
//!
//! The paper names only two of them, MTU and largest flow window, and no layout. The others are ours, for open networks
//! (departure D120). They are an initial sequence number and a cookie that proves the caller's address. An id
//! distinguishes this connection from earlier ones between the same addresses.

use super::seq::SeqNo30;
use crate::DecodeError;
use crate::field::Word;

const VERSION: Word = Word::new("handshake version", 0);
const REQUEST: Word = Word::new("request", 1);
const ISN: Word = Word::new("initial sequence number", 2);
const MTU: Word = Word::new("MTU", 3);
const FLOW_WINDOW: Word = Word::new("maximum flow window", 4);
const CONNECTION: Word = Word::new("connection id", 5);
const COOKIE: Word = Word::new("cookie", 6);

/// The request or response of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Request {
    /// A caller's first request, and the response with a cookie (1).
    Cookie,
    /// A caller's second request, with the cookie, and the response that connects (2).
    Open,
    /// The listener refuses: wrong version, or no room (3).
    Refused,
}

impl Request {
    const fn from_word(word: u32) -> Result<Self, DecodeError> {
        match word {
            1 => Ok(Self::Cookie),
            2 => Ok(Self::Open),
            3 => Ok(Self::Refused),
            value => Err(DecodeError::OutOfRange { field: "request", value, legal: "1 to 3" }),
        }
    }

    const fn to_word(self) -> u32 {
        match self {
            Self::Cookie => 1,
            Self::Open => 2,
            Self::Refused => 3,
        }
    }
}

/// The body of a handshake (type 0), with the same length in every step. Every field is an unchecked claim of the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handshake {
    /// Version of the protocol: [`Handshake::VERSION`].
    pub version: u32,
    /// The step of the handshake.
    pub request: Request,
    /// Sequence number of the first data packet in both directions. The caller chooses it, responses repeat it.
    pub isn: SeqNo30,
    /// The largest packet in bytes: 28 for IP and UDP, 4 for the header, and the payload.
    pub mtu: u32,
    /// Most unacknowledged packets that the sender of this handshake accepts.
    pub flow_window: u32,
    /// Random, not zero, chosen by the caller; responses repeat it. A close packet carries it as proof that it is not
    /// forged.
    pub connection: u32,
    /// Zero in the first request. Then the listener's cookie for the caller's address.
    pub cookie: u32,
}

impl Handshake {
    /// The version of this crate. Source: release 1 of UDT, §10 of its history.
    pub const VERSION: u32 = 1;
    /// Bytes of the body.
    pub const LEN: usize = 28;

    pub(super) fn decode_body(body: &[u8]) -> Result<Self, DecodeError> {
        let words: &[u8; Self::LEN] = body.try_into().map_err(|_| DecodeError::BodyLength {
            packet: "handshake",
            length: body.len(),
            legal: "28",
        })?;
        Ok(Self {
            version: VERSION.read(words),
            request: Request::from_word(REQUEST.read(words))?,
            isn: SeqNo30::from_word("initial sequence number", ISN.read(words))?,
            mtu: MTU.read(words),
            flow_window: FLOW_WINDOW.read(words),
            connection: CONNECTION.read_31(words)?,
            cookie: COOKIE.read(words),
        })
    }

    pub(super) fn encode_body(&self, out: &mut Vec<u8>) {
        let mut words = [0; Self::LEN];
        VERSION.write(&mut words, self.version);
        REQUEST.write(&mut words, self.request.to_word());
        ISN.write(&mut words, self.isn.value());
        MTU.write(&mut words, self.mtu);
        FLOW_WINDOW.write(&mut words, self.flow_window);
        CONNECTION.write(&mut words, self.connection);
        COOKIE.write(&mut words, self.cookie);
        out.extend_from_slice(&words);
    }
}
