//! The body of an application envelope: a packet of the transport, or a message of the envelope itself.
//!
//! ```text
//! packet of UDT4   its header without the socket id (12 bytes) | its body
//! message          1 bit 1 | type 0x4648 | kind u16 | body
//! ```
//!
//! | kind | body |
//! | --- | --- |
//! | 1 done, 2 close | see [`Message`] |
//! | 3 challenge, 4 response | 8 random bytes, which the peer sends back from where it received them |
//! | 16 datagram | a datagram of another protocol, which the envelope carries beside its stream |
//!
//! UDT4's last header word, the socket id, is the envelope's connection id. So a receiver restores the packet in place: 12
//! bytes move by four.

use super::frame::{CloseCode, MAX_REASON, short};
use super::header::{HEADER_LEN as ENVELOPE, Header, TAG_LEN, is_envelope};
use crate::udt4;

/// Bytes of a UDT4 header that travel inside.
const KEPT: usize = udt4::HEADER_LEN - 4;
/// Where a restored packet begins in the datagram.
pub const RESTORED_AT: usize = ENVELOPE - 4;

/// Bytes of the first word, with the kind.
const WORD: usize = 4;

mod kind {
    pub(super) const DONE: u16 = 1;
    pub(super) const CLOSE: u16 = 2;
    pub(super) const CHALLENGE: u16 = 3;
    pub(super) const RESPONSE: u16 = 4;
    pub(super) const DATAGRAM: u16 = 16;
}

/// Bytes that an envelope adds to a datagram of another protocol: its header, the first word of the message, and its tag.
pub const DATAGRAM_OVERHEAD: usize = ENVELOPE + WORD + TAG_LEN;

/// Bytes of a path challenge: as many as QUIC has (RFC 9000, section 19.17).
pub const CHALLENGE_LEN: usize = 8;
/// Bytes of a datagram with a challenge or its response.
pub const CHALLENGE_DATAGRAM: usize = ENVELOPE + WORD + CHALLENGE_LEN + TAG_LEN;

/// A message of the envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// The server has verified the client, so both sides forget the keys of the handshake.
    Done,
    /// The sender ends the connection because of the envelope.
    Close(CloseCode, &'a str),
    /// Asks whether the peer is at this address (attack B16).
    Challenge([u8; CHALLENGE_LEN]),
    /// The bytes of a challenge, from the address to which that came.
    Response([u8; CHALLENGE_LEN]),
    /// A datagram of the protocol inside. It may be lost, and comes in any order.
    Datagram(&'a [u8]),
}

impl<'a> Message<'a> {
    /// Appends its bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let kind = match self {
            Self::Done => kind::DONE,
            Self::Close(..) => kind::CLOSE,
            Self::Challenge(_) => kind::CHALLENGE,
            Self::Response(_) => kind::RESPONSE,
            Self::Datagram(_) => kind::DATAGRAM,
        };
        out.extend_from_slice(&word(kind));
        match self {
            Self::Done => {}
            Self::Close(code, reason) => {
                out.extend_from_slice(&code.value().to_be_bytes());
                out.extend_from_slice(short(reason).as_bytes());
            }
            Self::Challenge(bytes) | Self::Response(bytes) => out.extend_from_slice(bytes),
            Self::Datagram(bytes) => out.extend_from_slice(bytes),
        }
    }

    /// Reads one from an opened body. `None` if it is malformed or of a kind that no version so far has.
    pub fn decode(body: &'a [u8]) -> Option<Self> {
        let (word, rest) = body.split_first_chunk::<WORD>()?;
        Some(match u16::from_be_bytes([word[2], word[3]]) {
            kind::DONE => Self::Done,
            kind::CLOSE => {
                let (code, reason) = rest.split_first_chunk()?;
                let reason = str::from_utf8(reason).ok().filter(|reason| reason.len() <= MAX_REASON)?;
                Self::Close(CloseCode::from_value(u16::from_be_bytes(*code)), reason)
            }
            kind::CHALLENGE => Self::Challenge(rest.try_into().ok()?),
            kind::RESPONSE => Self::Response(rest.try_into().ok()?),
            kind::DATAGRAM => Self::Datagram(rest),
            _ => return None,
        })
    }
}

/// The first word of a message. Its first two bytes are those of an envelope, which is no type of any packet of UDT4.
fn word(kind: u16) -> [u8; WORD] {
    let [a, b, c, d, ..] = Header { epoch: super::Epoch(kind), number: 0, to: super::ConnectionName::NONE }.bytes();
    [a, b, c, d]
}

/// Whether an opened body is a message of the envelope.
#[inline]
pub fn is_message(body: &[u8]) -> bool {
    is_envelope(body)
}

/// Writes the envelope of a UDT4 packet into `out`, ready for sealing: header, what travels inside, and room for the tag.
/// Returns false, and writes nothing, if it is too short for a packet of UDT4.
#[inline]
pub fn enclose(header: &Header, packet: &[u8], out: &mut Vec<u8>) -> bool {
    let Some((head, body)) = packet.split_first_chunk::<{ udt4::HEADER_LEN }>() else { return false };
    out.extend_from_slice(&header.bytes());
    out.extend_from_slice(&head[..KEPT]);
    out.extend_from_slice(body);
    out.extend_from_slice(&[0; TAG_LEN]);
    true
}

/// Writes the envelope of a [`Datagram`](Message::Datagram) into `out`, ready for sealing.
#[inline]
pub fn enclose_datagram(header: &Header, datagram: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&header.bytes());
    out.extend_from_slice(&word(kind::DATAGRAM));
    out.extend_from_slice(datagram);
    out.extend_from_slice(&[0; TAG_LEN]);
}

/// Restores the UDT4 packet in a datagram whose body was opened in place. `None` if it is too short for one.
#[inline]
pub fn restore(datagram: &mut [u8]) -> Option<&mut [u8]> {
    let end = datagram.len().checked_sub(TAG_LEN)?;
    if end < ENVELOPE + KEPT {
        return None;
    }
    let socket_id: [u8; 4] = datagram[ENVELOPE - 4..ENVELOPE].try_into().ok()?;
    datagram.copy_within(ENVELOPE..ENVELOPE + KEPT, RESTORED_AT);
    datagram[RESTORED_AT + KEPT..ENVELOPE + KEPT].copy_from_slice(&socket_id);
    Some(&mut datagram[RESTORED_AT..end])
}
