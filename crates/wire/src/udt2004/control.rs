//! Control packets: a type of three bits, and the content of each type.

use super::ack::Ack;
use super::data::{is_control, split};
use super::handshake::Handshake;
use super::loss_list::LossList;
use super::seq::SeqNo30;
use crate::DecodeError;
use crate::field::{below_2_31, put_words, read_words};

/// The types in bits 1 to 3 of the header. Source: paper:udt-2004 §3.2; 5 is ours (departure D122), as in UDT4.
mod kind {
    pub(super) const HANDSHAKE: u32 = 0;
    pub(super) const KEEP_ALIVE: u32 = 1;
    pub(super) const ACK: u32 = 2;
    pub(super) const NAK: u32 = 3;
    pub(super) const DELAY_WARNING: u32 = 4;
    pub(super) const CLOSE: u32 = 5;
    pub(super) const ACK2: u32 = 6;
}

const CONTROL_BIT: u32 = 1 << 31;
const KIND_SHIFT: u32 = 28;
const KIND_MASK: u32 = 0b111;

/// Whether `datagram` claims to be a handshake. It may be invalid all the same.
pub fn is_handshake(datagram: &[u8]) -> bool {
    let kind = |&word: &[u8; 4]| u32::from_be_bytes(word) >> KIND_SHIFT;
    datagram.first_chunk().map(kind) == Some(CONTROL_BIT >> KIND_SHIFT | kind::HANDSHAKE)
}

/// The content of a control packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control<'a> {
    /// Opens a connection (type 0).
    Handshake(Handshake),
    /// Keeps the connection alive (type 1).
    KeepAlive,
    /// Acknowledges received data (type 2).
    Ack(Ack),
    /// Reports lost packets (type 3).
    Nak(LossList<'a>),
    /// Warns of a growing RTT: the sender should slow down (type 4).
    DelayWarning,
    /// Closes the connection in both directions (type 5).
    Close {
        /// The id of the connection from its handshake.
        connection: u32,
        /// One past the last packet of this side's stream. A receiver that misses an earlier packet has lost data.
        end: SeqNo30,
        /// Everything before this packet of the peer's stream has arrived: a final acknowledgement.
        acked: SeqNo30,
    },
    /// Confirms the acknowledgement with this number (type 6).
    Ack2(u16),
}

impl<'a> Control<'a> {
    /// Reads a control packet.
    ///
    /// # Errors
    /// The datagram is shorter than a header, a data packet, of the undefined type 7, or has an invalid body.
    pub fn decode(datagram: &'a [u8]) -> Result<Self, DecodeError> {
        let (word, body) = split(datagram)?;
        if !is_control(datagram) {
            return Err(DecodeError::NotControl);
        }
        let number = (word & 0xFFFF) as u16;
        Ok(match word >> KIND_SHIFT & KIND_MASK {
            kind::HANDSHAKE => Self::Handshake(Handshake::decode_body(body)?),
            kind::KEEP_ALIVE => empty(Self::KeepAlive, "keep-alive", body)?,
            kind::ACK => Self::Ack(Ack::decode(number, body)?),
            kind::NAK => Self::Nak(LossList::from_body(number, body)?),
            kind::DELAY_WARNING => empty(Self::DelayWarning, "delay warning", body)?,
            kind::CLOSE => decode_close(body)?,
            kind::ACK2 => empty(Self::Ack2(number), "ACK2", body)?,
            value => return Err(DecodeError::OutOfRange { field: "packet type", value, legal: "0 to 6" }),
        })
    }

    /// Appends the packet to `out` as one datagram.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let (kind, number) = self.head();
        put_words(out, [CONTROL_BIT | kind << KIND_SHIFT | u32::from(number)]);
        match self {
            Self::Handshake(handshake) => handshake.encode_body(out),
            Self::Ack(ack) => ack.encode_body(out),
            Self::Nak(losses) => out.extend_from_slice(losses.as_body()),
            Self::Close { connection, end, acked } => put_words(out, [*connection, end.value(), acked.value()]),
            Self::KeepAlive | Self::DelayWarning | Self::Ack2(_) => {}
        }
    }

    /// The type, and bits 16 to 31 of the header.
    const fn head(&self) -> (u32, u16) {
        match self {
            Self::Handshake(_) => (kind::HANDSHAKE, 0),
            Self::KeepAlive => (kind::KEEP_ALIVE, 0),
            Self::Ack(ack) => (kind::ACK, ack.id),
            Self::Nak(losses) => (kind::NAK, losses.count()),
            Self::DelayWarning => (kind::DELAY_WARNING, 0),
            Self::Close { .. } => (kind::CLOSE, 0),
            Self::Ack2(id) => (kind::ACK2, *id),
        }
    }
}

fn decode_close<'a>(body: &[u8]) -> Result<Control<'a>, DecodeError> {
    let [connection, end, acked] = read_words("close", body, "12")?;
    let acked = SeqNo30::from_word("acknowledged sequence number", acked)?;
    let end = SeqNo30::from_word("end of the stream", end)?;
    Ok(Control::Close { connection: below_2_31("connection id", connection)?, end, acked })
}

/// `control`, if `body` is empty as required.
fn empty<'a>(control: Control<'a>, packet: &'static str, body: &[u8]) -> Result<Control<'a>, DecodeError> {
    match body.len() {
        0 => Ok(control),
        length => Err(DecodeError::BodyLength { packet, length, legal: "0" }),
    }
}
