//! Packets of path MTU discovery between two Farhaul ends (RFC 8899). libudt ignores their type, and they are sent only to peers
//! that have told a largest packet in their handshake.
//!
//! | kind | word 1 | body |
//! | --- | --- | --- |
//! | 1 probe | a random number | padding |
//! | 2 reply | the same number | bytes of the probe's datagram that arrived (32 bits) |
//! | 3 fragment | sequence number of the data packet | its word 1 (32 bits), its payload length (16), index and count of fragments (8 each), bytes |
//!
//! A data packet that was numbered before the path became narrow travels in fragments. All but the last have the same length.

use farhaul_units::SeqNo;

use super::data::MessageField;
use super::header::{ADDITIONAL, HEADER_LEN};
use crate::DecodeError;
use crate::field::{read_seq, read_words};

/// Bytes in front of a fragment's part of the payload.
pub const FRAGMENT_HEAD: usize = HEADER_LEN + 8;
/// Most fragments of a packet: those of one train.
pub const MAX_FRAGMENTS: usize = 64;

mod kind {
    pub(super) const PROBE: u16 = 1;
    pub(super) const REPLY: u16 = 2;
    pub(super) const FRAGMENT: u16 = 3;
}

/// A packet of path MTU discovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path<'a> {
    /// Asks whether a datagram of this length arrives.
    Probe {
        /// Names the probe, and proves that its reply is none of a guesser.
        number: u32,
        /// Zeros behind the header.
        padding: usize,
    },
    /// A probe arrived.
    Reply {
        /// The number of the probe.
        number: u32,
        /// Bytes of its datagram.
        arrived: u32,
    },
    /// A part of a data packet.
    Fragment(Fragment<'a>),
    /// A kind of later versions.
    Other {
        /// The kind.
        kind: u16,
    },
}

/// A part of a data packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment<'a> {
    /// The number of the packet.
    pub seq: SeqNo,
    /// Its message field.
    pub field: MessageField,
    /// Bytes of its payload.
    pub total: u16,
    /// Which fragment this is, from zero.
    pub index: u8,
    /// How many there are, at most [`MAX_FRAGMENTS`].
    pub count: u8,
    /// This part of the payload; never empty.
    pub bytes: &'a [u8],
}

impl<'a> Path<'a> {
    pub(super) fn decode(kind: u16, additional: u32, body: &'a [u8]) -> Result<Self, DecodeError> {
        Ok(match kind {
            kind::PROBE => Self::Probe { number: additional, padding: body.len() },
            kind::REPLY => {
                let [arrived] = read_words("reply", body, "4")?;
                Self::Reply { number: additional, arrived }
            }
            kind::FRAGMENT => Self::Fragment(Fragment::decode(additional, body)?),
            kind => Self::Other { kind },
        })
    }

    /// The kind for the last 16 bits of the first word, and the second word.
    pub(super) const fn head(&self) -> (u16, u32) {
        match self {
            Self::Probe { number, .. } => (kind::PROBE, *number),
            Self::Reply { number, .. } => (kind::REPLY, *number),
            Self::Fragment(fragment) => (kind::FRAGMENT, fragment.seq.value()),
            Self::Other { kind } => (*kind, 0),
        }
    }

    pub(super) fn encode_body(&self, out: &mut Vec<u8>) {
        match self {
            Self::Probe { padding, .. } => out.resize(out.len() + padding, 0),
            Self::Reply { arrived, .. } => out.extend_from_slice(&arrived.to_be_bytes()),
            Self::Fragment(fragment) => {
                out.extend_from_slice(&fragment.field.to_word().to_be_bytes());
                out.extend_from_slice(&fragment.total.to_be_bytes());
                out.extend_from_slice(&[fragment.index, fragment.count]);
                out.extend_from_slice(fragment.bytes);
            }
            Self::Other { .. } => {}
        }
    }
}

impl<'a> Fragment<'a> {
    fn decode(additional: u32, body: &'a [u8]) -> Result<Self, DecodeError> {
        let wrong = || DecodeError::BodyLength { packet: "piece", length: body.len(), legal: "9 or more" };
        let (&[a, b, c, d, high, low, index, count], bytes) = body.split_first_chunk().ok_or_else(wrong)?;
        let total = u16::from_be_bytes([high, low]);
        if bytes.is_empty() || bytes.len() > total.into() || index >= count || usize::from(count) > MAX_FRAGMENTS {
            return Err(wrong());
        }
        let field = MessageField::from_word(u32::from_be_bytes([a, b, c, d]));
        Ok(Self { seq: read_seq(ADDITIONAL, additional)?, field, total, index, count, bytes })
    }

    /// Where its bytes belong in the payload. `None` if they cannot belong there.
    pub fn offset(&self) -> Option<usize> {
        let (total, length) = (usize::from(self.total), self.bytes.len());
        let offset =
            if self.index + 1 == self.count { total.checked_sub(length)? } else { usize::from(self.index) * length };
        (offset + length <= total).then_some(offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::udt4::{Control, Position, SocketId, Timestamp};
    use farhaul_units::MsgNo;

    fn encoded(path: Path<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        Control::Path(path).encode(Timestamp::new(9), SocketId::new(7), &mut out);
        out
    }

    fn fragment(index: u8, count: u8, total: u16, bytes: &[u8]) -> Fragment<'_> {
        let field = MessageField { position: Position::Only, in_order: false, message: MsgNo::FIRST };
        Fragment { seq: SeqNo::new(77), field, total, index, count, bytes }
    }

    #[test]
    fn every_kind_survives_the_wire() {
        let kinds = [
            Path::Probe { number: 0xDEAD_BEEF, padding: 1_456 },
            Path::Reply { number: 5, arrived: 8_972 },
            Path::Fragment(fragment(1, 3, 25, &[1; 10])),
            Path::Other { kind: 9 },
        ];
        for path in kinds {
            let bytes = encoded(path);
            let decoded = Control::decode(&bytes).unwrap();
            assert_eq!(decoded, (Timestamp::new(9), SocketId::new(7), Control::Path(path)));
        }
        assert_eq!(encoded(kinds[0]).len(), 16 + 1_456);
        assert_eq!(encoded(kinds[2]).len(), FRAGMENT_HEAD + 10);
        assert_eq!(encoded(kinds[1])[..8], [0xC6, 0x50, 0, 2, 0, 0, 0, 5]);
    }

    #[test]
    fn a_fragment_knows_its_place() {
        assert_eq!(fragment(0, 3, 25, &[1; 10]).offset(), Some(0));
        assert_eq!(fragment(1, 3, 25, &[1; 10]).offset(), Some(10));
        assert_eq!(fragment(2, 3, 25, &[1; 5]).offset(), Some(20));
        assert_eq!(fragment(2, 4, 25, &[1; 10]).offset(), None);
    }

    #[test]
    fn impossible_fragments_are_refused() {
        for fragment in [
            fragment(3, 3, 25, &[1; 10]),
            fragment(0, 65, 25, &[1; 10]),
            fragment(0, 3, 9, &[1; 10]),
            fragment(0, 3, 9, &[]),
        ] {
            assert!(Control::decode(&encoded(Path::Fragment(fragment))).is_err(), "{fragment:?}");
        }
    }
}
