//! The 16 bytes in front of every envelope.

use core::fmt;

use crate::DecodeError;
use crate::field::Word;
use crate::udt4::SocketId;

/// Bytes of the header.
pub const HEADER_LEN: usize = 16;
/// Bytes of the tag behind the encrypted body. Every AEAD of TLS 1.3 that is in use has as many.
pub const TAG_LEN: usize = 16;

/// The first 16 bits: the control bit, and the control type of envelopes, "FH" in ASCII. libudt knows the types 0 to 8 and
/// 0x7FFF, and ignores all others.
const KIND: u16 = 0x8000 | 0x4648;

const WORD_0: Word = Word::new("type and epoch", 0);
const HIGH: Word = Word::new("packet number", 1);
const LOW: Word = Word::new("packet number", 2);
const DESTINATION: Word = Word::new("connection id", 3);

/// The name of a connection at the side that receives its datagrams. It stands where UDT4 has the socket id.
pub type ConnectionName = SocketId;

/// A generation of keys. Numbered as in DTLS 1.3: keys of the application count up from 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Epoch(pub u16);

impl Epoch {
    /// Keys that anybody can derive from the datagram. They detect damage, and hide nothing.
    pub const INITIAL: Self = Self(0);
    /// Keys of the handshake.
    pub const HANDSHAKE: Self = Self(2);
    /// The first keys of the application.
    pub const FIRST_APPLICATION: Self = Self(3);
    /// The last one. A connection ends before it.
    pub const LAST: Self = Self(u16::MAX);

    /// Whether its packets carry the application's data.
    pub const fn is_application(self) -> bool {
        self.0 >= Self::FIRST_APPLICATION.0
    }

    /// The next generation; `None` after the last.
    pub const fn next(self) -> Option<Self> {
        match self.0.checked_add(1) {
            Some(next) => Some(Self(next)),
            None => None,
        }
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The number of a packet within its direction and epoch. No number is used twice with a key.
pub type PacketNumber = u64;

/// A header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The keys of the body.
    pub epoch: Epoch,
    /// The number, from which the nonce follows.
    pub number: PacketNumber,
    /// The connection at the receiver; [`ConnectionName::NONE`] before a client knows it.
    pub to: ConnectionName,
}

impl Header {
    /// Its bytes.
    #[inline]
    pub fn bytes(&self) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        WORD_0.write(&mut bytes, u32::from(KIND) << 16 | u32::from(self.epoch.0));
        HIGH.write(&mut bytes, (self.number >> 32) as u32);
        LOW.write(&mut bytes, (self.number & 0xFFFF_FFFF) as u32);
        DESTINATION.write(&mut bytes, self.to.value());
        bytes
    }

    /// Reads it from the front of a datagram, which has room for a tag behind it. Returns it with everything behind it.
    ///
    /// # Errors
    /// The datagram is no envelope, or too short for one.
    #[inline]
    pub fn decode(datagram: &[u8]) -> Result<Self, DecodeError> {
        let too_short = DecodeError::TooShort { length: datagram.len(), header: HEADER_LEN + TAG_LEN };
        let head: &[u8; HEADER_LEN] = datagram.first_chunk().ok_or(too_short)?;
        if datagram.len() < HEADER_LEN + TAG_LEN {
            return Err(too_short);
        }
        let first = WORD_0.read(head);
        if first >> 16 != u32::from(KIND) {
            return Err(DecodeError::OutOfRange { field: "control type", value: first >> 16, legal: "0xc648" });
        }
        Ok(Self {
            epoch: Epoch((first & 0xFFFF) as u16),
            number: u64::from(HIGH.read(head)) << 32 | u64::from(LOW.read(head)),
            to: SocketId::new(DESTINATION.read_31(head)?),
        })
    }
}

/// Whether a datagram is an envelope, by its first 16 bits. Does not check its validity.
#[inline]
pub fn is_envelope(datagram: &[u8]) -> bool {
    datagram.first_chunk() == Some(&KIND.to_be_bytes())
}
