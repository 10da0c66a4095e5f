//! The handshake body: seven words that open a connection.
//!
//! The paper names only two of them, MTU and largest flow window, and no layout. The others are ours, for open networks
//! (departure D120). They are an initial sequence number and a cookie that proves the caller's address. An id
//! distinguishes this connection from earlier ones between the same addresses.

use num_enum::{IntoPrimitive, TryFromPrimitive, TryFromPrimitiveError};

use super::seq::SeqNo30;
use crate::DecodeError;
use crate::field::{below_2_31, put_words, read_words};

/// The request or response of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, IntoPrimitive, TryFromPrimitive)]
#[repr(u32)]
pub enum Request {
    /// A caller's first request, and the response with a cookie.
    Cookie = 1,
    /// A caller's second request, with the cookie, and the response that connects.
    Open = 2,
    /// The listener refuses: wrong version, or no room.
    Refused = 3,
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
        let [version, request, isn, mtu, flow_window, connection, cookie] = read_words("handshake", body, "28")?;
        let unknown = |_: TryFromPrimitiveError<Request>| DecodeError::OutOfRange {
            field: "request",
            value: request,
            legal: "1 to 3",
        };
        Ok(Self {
            version,
            request: request.try_into().map_err(unknown)?,
            isn: SeqNo30::from_word("initial sequence number", isn)?,
            mtu,
            flow_window,
            connection: below_2_31("connection id", connection)?,
            cookie,
        })
    }

    pub(super) fn encode_body(&self, out: &mut Vec<u8>) {
        let Self { version, request, isn, mtu, flow_window, connection, cookie } = *self;
        put_words(out, [version, request.into(), isn.value(), mtu, flow_window, connection, cookie]);
    }
}
