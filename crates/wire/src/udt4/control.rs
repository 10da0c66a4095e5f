//! Control packets: the type in the first word, and the meaning of the other words and the body for each type.

use farhaul_units::AckNo;

use super::ack::Ack;
use super::drop_request::DropRequest;
use super::handshake::Handshake;
use super::header::{ADDITIONAL, CONTROL_BIT, SocketId, Timestamp, is_control, read_destination, split};
use super::loss_list::LossList;
use super::path::Path;
use super::receipt::Receipt;
use crate::DecodeError;
use crate::field::{put_words, read_ack_number};

/// The types in bits 16 to 30 of the first word.
mod kind {
    pub(super) const HANDSHAKE: u16 = 0;
    pub(super) const KEEP_ALIVE: u16 = 1;
    pub(super) const ACK: u16 = 2;
    pub(super) const NAK: u16 = 3;
    pub(super) const CONGESTION_WARNING: u16 = 4;
    pub(super) const SHUTDOWN: u16 = 5;
    pub(super) const ACK2: u16 = 6;
    pub(super) const DROP_REQUEST: u16 = 7;
    pub(super) const ERROR_SIGNAL: u16 = 8;
    /// "FP" in ASCII. libudt knows the types 0 to 8 and 0x7FFF, and ignores all others.
    pub(super) const PATH: u16 = 0x4650;
    /// "FR" in ASCII.
    pub(super) const RECEIPT: u16 = 0x4652;
    pub(super) const CUSTOM: u16 = 0x7FFF;
}

/// Code of the error signal that stands for an aborted stream: libudt's ECONNLOST, "the connection was broken".
///
/// Farhaul sends it where a shutdown would look like the end of the stream. libudt itself sends no code but 4000. Any code
/// makes its next send call fail and changes nothing else, so a libudt peer notices the abort by the silence that follows.
pub const CONNECTION_BROKEN: u32 = 2001;

/// What libudt sends where a body would be empty, because its send call wants two buffers.
const PAD: [u8; 4] = [0; 4];

/// Whether `datagram` claims to be a handshake. It may be invalid all the same.
pub fn is_handshake(datagram: &[u8]) -> bool {
    is_of(kind::HANDSHAKE, datagram)
}

/// Whether `datagram` claims to be a receipt. It may be invalid all the same.
pub fn is_receipt(datagram: &[u8]) -> bool {
    is_of(kind::RECEIPT, datagram)
}

fn is_of(kind: u16, datagram: &[u8]) -> bool {
    let claimed = |&word: &[u8; 4]| u32::from_be_bytes(word) >> 16;
    is_control(datagram) && datagram.first_chunk().map(claimed) == Some(CONTROL_BIT >> 16 | u32::from(kind))
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
    /// Asks the sender to slow down (type 4). libudt 4.11 obeys it but never sends it.
    CongestionWarning,
    /// Closes the connection in both directions (type 5).
    Shutdown,
    /// Confirms an acknowledgement (type 6).
    Ack2(AckNo),
    /// A message will not be sent any more (type 7).
    DropRequest(DropRequest),
    /// Something failed at the peer (type 8). libudt's only code is 4000, a file that could not be written; Farhaul also sends
    /// [`CONNECTION_BROKEN`].
    ErrorSignal(u32),
    /// Finds the packet size of the path (type 0x4650). Only Farhaul knows it.
    Path(Path<'a>),
    /// Counts received packets (type 0x4652). Only Farhaul knows it.
    Receipt(Receipt),
    /// A packet defined by the user (type 0x7FFF).
    Custom {
        /// The user's type.
        kind: u16,
        /// The body as encoded on the wire. libudt swaps its 32-bit words to big-endian.
        body: &'a [u8],
    },
    /// A type that UDT4 does not define. Ignored, but a sign that the peer is alive.
    Unknown {
        /// The type, 15 bits.
        kind: u16,
    },
}

impl<'a> Control<'a> {
    /// Reads a control packet: time stamp, destination and content.
    ///
    /// # Errors
    /// The datagram is too short or a data packet, or its body is invalid for its type.
    pub fn decode(datagram: &'a [u8]) -> Result<(Timestamp, SocketId, Self), DecodeError> {
        let ([kind, additional, timestamp, destination], body) = split(datagram)?;
        if !is_control(datagram) {
            return Err(DecodeError::NotControl);
        }
        let [high, low, user_high, user_low] = kind.to_be_bytes();
        let user_kind = u16::from_be_bytes([user_high, user_low]);
        let control = match u16::from_be_bytes([high & 0x7F, low]) {
            kind::HANDSHAKE => Self::Handshake(Handshake::decode(additional, body)?),
            kind::KEEP_ALIVE => empty(Self::KeepAlive, "keep-alive", body)?,
            kind::ACK => Self::Ack(Ack::decode(additional, body)?),
            kind::NAK => Self::Nak(LossList::from_body(body)?),
            kind::CONGESTION_WARNING => empty(Self::CongestionWarning, "congestion warning", body)?,
            kind::SHUTDOWN => empty(Self::Shutdown, "shutdown", body)?,
            kind::ACK2 => empty(Self::Ack2(read_ack_number(ADDITIONAL, additional)?), "ACK2", body)?,
            kind::DROP_REQUEST => Self::DropRequest(DropRequest::decode(additional, body)?),
            kind::ERROR_SIGNAL => empty(Self::ErrorSignal(additional), "error signal", body)?,
            kind::PATH => Self::Path(Path::decode(user_kind, additional, body)?),
            kind::RECEIPT => Self::Receipt(Receipt::decode(user_kind, additional, body)?),
            kind::CUSTOM => Self::Custom { kind: user_kind, body },
            kind => Self::Unknown { kind },
        };
        Ok((Timestamp::new(timestamp), read_destination(destination)?, control))
    }

    /// Appends the packet to `out` as one datagram. An empty body becomes libudt's four pad bytes.
    pub fn encode(&self, timestamp: Timestamp, destination: SocketId, out: &mut Vec<u8>) {
        let (kind, user_kind, additional) = self.head();
        let first = CONTROL_BIT | u32::from(kind) << 16 | u32::from(user_kind);
        put_words(out, [first, additional, timestamp.value(), destination.value()]);
        match self {
            Self::Handshake(handshake) => handshake.encode_body(out),
            Self::Ack(ack) => ack.encode_body(out),
            Self::Nak(losses) => out.extend_from_slice(losses.as_body()),
            Self::DropRequest(request) => request.encode_body(out),
            Self::Path(path) => path.encode_body(out),
            Self::Receipt(receipt) => receipt.encode_body(out),
            Self::Custom { body, .. } => out.extend_from_slice(body),
            Self::KeepAlive
            | Self::CongestionWarning
            | Self::Shutdown
            | Self::Ack2(_)
            | Self::ErrorSignal(_)
            | Self::Unknown { .. } => out.extend_from_slice(&PAD),
        }
    }

    /// The type for bits 16 to 30 of the first word, the user's type for the last 16, and the second word, which holds
    /// numbers outside the body.
    const fn head(&self) -> (u16, u16, u32) {
        match self {
            Self::Handshake(handshake) => (kind::HANDSHAKE, 0, handshake.additional_information()),
            Self::KeepAlive => (kind::KEEP_ALIVE, 0, 0),
            Self::Ack(Ack::Light { .. }) => (kind::ACK, 0, 0),
            Self::Ack(Ack::Medium { number, .. } | Ack::Full { number, .. }) => (kind::ACK, 0, number.value()),
            Self::Nak(_) => (kind::NAK, 0, 0),
            Self::CongestionWarning => (kind::CONGESTION_WARNING, 0, 0),
            Self::Shutdown => (kind::SHUTDOWN, 0, 0),
            Self::Ack2(number) => (kind::ACK2, 0, number.value()),
            Self::DropRequest(request) => (kind::DROP_REQUEST, 0, request.message.value()),
            Self::ErrorSignal(code) => (kind::ERROR_SIGNAL, 0, *code),
            Self::Path(path) => {
                let (kind, additional) = path.head();
                (kind::PATH, kind, additional)
            }
            Self::Receipt(receipt) => (kind::RECEIPT, receipt.kind(), receipt.seq.value()),
            Self::Custom { kind, .. } => (kind::CUSTOM, *kind, 0),
            Self::Unknown { kind } => (*kind & 0x7FFF, 0, 0),
        }
    }
}

/// `control`, if `body` is empty or a pad of any content.
fn empty<'a>(control: Control<'a>, packet: &'static str, body: &[u8]) -> Result<Control<'a>, DecodeError> {
    match body.len() {
        0 | 4 => Ok(control),
        length => Err(DecodeError::BodyLength { packet, length, legal: "0 or 4" }),
    }
}
