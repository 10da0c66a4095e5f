//! The body of a protected packet of an application: a packet of the transport, or a message of packet protection itself.
//!
//! ```text
//! data of a stream    its sequence number (4 bytes, first bit 0) | its payload
//! packet of UDT4      its header without the socket id (12 bytes) | its body
//! message             0xC5 | kind u8 | body
//! ```
//!
//! | kind | body |
//! | --- | --- |
//! | 1 done, 2 close | see [`Message`] |
//! | 3 challenge, 4 response | 8 random bytes, which the peer sends back from where it received them |
//! | 16 datagram | a datagram of another protocol, which packet protection carries beside its stream |
//!
//! Data of a stream without payload are the end of its direction, if both sides have the term *half-close*. The end has the
//! sequence number after the last data, so it is acknowledged and repeated as data are. Nothing follows it.
//!
//! UDT4's last header word, the socket id, is the connection id of the header. So a receiver restores the packet in place: 12
//! bytes move by four. The data of a stream leave out two more words. Each packet of a stream is a message of its own, and the
//! time stamp tells in which order packets left, as the packet number does.

use farhaul_units::SeqNo;

use super::frame::{CloseCode, MAX_REASON, short};
use super::header::{HEADER_LEN, Header, KIND, TAG_LEN};
use crate::udt4;

/// Bytes of a UDT4 header that travel inside.
const KEPT: usize = udt4::HEADER_LEN - 4;
/// Bytes of it that travel in front of the data of a stream: the sequence number.
const SEQ: usize = 4;
/// Where a restored packet begins in the datagram.
pub const RESTORED_AT: usize = HEADER_LEN - 4;

/// Bytes that packet protection adds to a packet of UDT4: its header and tag, less the word with the socket id.
pub const OVERHEAD: usize = HEADER_LEN + KEPT + TAG_LEN - udt4::HEADER_LEN;
/// Bytes that packet protection adds to a data packet of a stream.
pub const STREAM_OVERHEAD: usize = HEADER_LEN + SEQ + TAG_LEN - udt4::HEADER_LEN;

/// Bytes in front of a message.
const HEAD: usize = 2;

/// How data packets travel. Both sides know it from the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataForm {
    /// Data of a stream, with its sequence number alone.
    Stream,
    /// Data of messages, with the whole header.
    Messages,
}

impl DataForm {
    /// Bytes that packet protection adds to a data packet.
    pub const fn overhead(self) -> usize {
        match self {
            Self::Stream => STREAM_OVERHEAD,
            Self::Messages => OVERHEAD,
        }
    }

    /// Bytes that packet protection adds to this packet.
    #[inline]
    pub fn overhead_of(self, packet: &[u8]) -> usize {
        HEADER_LEN + self.kept(packet) + TAG_LEN - udt4::HEADER_LEN
    }

    /// Bytes of a UDT4 header that travel with a packet.
    #[inline]
    fn kept(self, packet: &[u8]) -> usize {
        if self == Self::Stream && !udt4::is_control(packet) { SEQ } else { KEPT }
    }
}

mod kind {
    pub(super) const DONE: u8 = 1;
    pub(super) const CLOSE: u8 = 2;
    pub(super) const CHALLENGE: u8 = 3;
    pub(super) const RESPONSE: u8 = 4;
    pub(super) const DATAGRAM: u8 = 16;
}

/// Bytes that packet protection adds to a datagram of another protocol: its header, the front of the message, and its tag.
pub const DATAGRAM_OVERHEAD: usize = HEADER_LEN + HEAD + TAG_LEN;

/// Bytes of a path challenge: as many as QUIC has (RFC 9000, section 19.17).
pub const CHALLENGE_LEN: usize = 8;
/// Bytes of a datagram with a challenge or its response.
pub const CHALLENGE_DATAGRAM: usize = HEADER_LEN + HEAD + CHALLENGE_LEN + TAG_LEN;

/// A message of packet protection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// The server has verified the client, so both sides forget the keys of the handshake.
    Done,
    /// The sender ends the connection because of packet protection.
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
        out.extend_from_slice(&[KIND, kind]);
        match self {
            Self::Done => {}
            Self::Close(code, reason) => {
                out.extend_from_slice(&u16::from(*code).to_be_bytes());
                out.extend_from_slice(short(reason).as_bytes());
            }
            Self::Challenge(bytes) | Self::Response(bytes) => out.extend_from_slice(bytes),
            Self::Datagram(bytes) => out.extend_from_slice(bytes),
        }
    }

    /// Reads one from an opened body. `None` if it is malformed or of a kind that no version so far has.
    pub fn decode(body: &'a [u8]) -> Option<Self> {
        let (&[_, kind], rest) = body.split_first_chunk::<HEAD>()?;
        Some(match kind {
            kind::DONE => Self::Done,
            kind::CLOSE => {
                let (code, reason) = rest.split_first_chunk()?;
                let reason = str::from_utf8(reason).ok().filter(|reason| reason.len() <= MAX_REASON)?;
                Self::Close(u16::from_be_bytes(*code).into(), reason)
            }
            kind::CHALLENGE => Self::Challenge(rest.try_into().ok()?),
            kind::RESPONSE => Self::Response(rest.try_into().ok()?),
            kind::DATAGRAM => Self::Datagram(rest),
            _ => return None,
        })
    }
}

/// Whether an opened body is a message of packet protection. Its first byte is that of a protected packet, which begins no packet of UDT4.
#[inline]
pub fn is_message(body: &[u8]) -> bool {
    body.first() == Some(&KIND)
}

/// Writes the protected packet of a UDT4 packet, given as its header and payload, into `out`, ready for sealing: header, what travels inside,
/// and room for the tag.
#[inline]
pub fn enclose(header: &Header, (head, payload): (&[u8; udt4::HEADER_LEN], &[u8]), form: DataForm, out: &mut Vec<u8>) {
    out.extend_from_slice(&header.bytes());
    out.extend_from_slice(&head[..form.kept(head)]);
    out.extend_from_slice(payload);
    out.extend_from_slice(&[0; TAG_LEN]);
}

/// Turns a UDT4 packet into a protected packet, as [`enclose`] does, in place. A packet that is too short for one is cut to nothing.
pub fn enclose_in_place(header: &Header, packet: &mut Vec<u8>, form: DataForm) {
    let Some(payload) = packet.len().checked_sub(udt4::HEADER_LEN) else { return packet.clear() };
    let kept = form.kept(packet);
    let begin = HEADER_LEN + kept;
    packet.resize(packet.len().max(begin + payload), 0);
    packet.copy_within(udt4::HEADER_LEN..udt4::HEADER_LEN + payload, begin);
    packet.copy_within(..kept, HEADER_LEN);
    packet[..HEADER_LEN].copy_from_slice(&header.bytes());
    packet.truncate(begin + payload);
    packet.extend_from_slice(&[0; TAG_LEN]);
}

/// Turns a message into a protected packet, in place, ready for sealing.
pub fn enclose_message(header: &Header, message: &mut Vec<u8>) {
    let length = message.len();
    message.resize(HEADER_LEN + length + TAG_LEN, 0);
    message.copy_within(..length, HEADER_LEN);
    message[..HEADER_LEN].copy_from_slice(&header.bytes());
}

/// Writes the protected packet of a [`Datagram`](Message::Datagram) into `out`, ready for sealing.
#[inline]
pub fn enclose_datagram(header: &Header, datagram: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&header.bytes());
    out.extend_from_slice(&[KIND, kind::DATAGRAM]);
    out.extend_from_slice(datagram);
    out.extend_from_slice(&[0; TAG_LEN]);
}

/// The data of a stream in an opened body. `None` if it is a packet of another kind, or too short for any.
#[inline]
pub fn stream_data(body: &[u8]) -> Option<(SeqNo, &[u8])> {
    let (seq, payload) = body.split_first_chunk::<SEQ>()?;
    let seq = u32::from_be_bytes(*seq);
    (seq >> 31 == 0).then_some((SeqNo::new(seq), payload))
}

/// Restores the UDT4 packet in a datagram whose body was opened in place. `None` if it is too short for one.
#[inline]
pub fn restore(datagram: &mut [u8]) -> Option<&mut [u8]> {
    let end = datagram.len().checked_sub(TAG_LEN)?;
    if end < HEADER_LEN + KEPT {
        return None;
    }
    let socket_id: [u8; 4] = datagram[HEADER_LEN - 4..HEADER_LEN].try_into().ok()?;
    datagram.copy_within(HEADER_LEN..HEADER_LEN + KEPT, RESTORED_AT);
    datagram[RESTORED_AT + KEPT..HEADER_LEN + KEPT].copy_from_slice(&socket_id);
    Some(&mut datagram[RESTORED_AT..end])
}
