//! The nine bytes in front of every protected packet.

use core::fmt;

use crate::DecodeError;
use crate::udt4::SocketId;

/// Bytes of the header.
pub const HEADER_LEN: usize = 9;
/// Bytes of the tag behind the encrypted body. Every AEAD of TLS 1.3 that is in use has as many.
pub const TAG_LEN: usize = 16;

/// The first byte: the control bit, and the first byte of the control types 0x4500 to 0x45FF, "E" in ASCII. libudt knows the
/// types 0 to 8 and 0x7FFF, and ignores all others. Farhaul has one more, 0x4650.
pub(super) const KIND: u8 = 0x80 | 0x45;

/// The name of a connection at the side that receives its datagrams.
pub type ConnectionName = SocketId;

/// A generation of keys. Those of the handshake are numbered as in DTLS 1.3. Those of the application count from 3 to 255 and
/// then from 3 again: at most three of them are in use at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Epoch(pub u8);

impl Epoch {
    /// Keys that anybody can derive from the datagram. They detect damage, and hide nothing.
    pub const INITIAL: Self = Self(0);
    /// Keys of the handshake.
    pub const HANDSHAKE: Self = Self(2);
    /// The first keys of the application.
    pub const FIRST_APPLICATION: Self = Self(3);

    /// Whether its packets carry the application's data.
    pub const fn is_application(self) -> bool {
        self.0 >= Self::FIRST_APPLICATION.0
    }

    /// The next generation.
    #[must_use]
    pub const fn next(self) -> Self {
        match self.0.checked_add(1) {
            Some(next) => Self(next),
            None => Self::FIRST_APPLICATION,
        }
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The number of a packet within its direction and epoch: less than [`NUMBERS`]. No number is used twice with a key.
pub type PacketNumber = u64;

/// Packet numbers of an epoch. AES-GCM permits half as many packets with one key (RFC 9001, section 6.6), so the whole number
/// travels, and no receiver has to guess its upper bits.
pub const NUMBERS: u64 = 1 << 24;

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
    pub const fn bytes(&self) -> [u8; HEADER_LEN] {
        let [.., high, middle, low] = self.number.to_be_bytes();
        let [a, b, c, d] = self.to.value().to_be_bytes();
        [KIND, self.epoch.0, high, middle, low, a, b, c, d]
    }

    /// Reads it from the front of a datagram, which has room for a tag behind it.
    ///
    /// # Errors
    /// The datagram is no protected packet, or too short for one.
    #[inline]
    pub fn decode(datagram: &[u8]) -> Result<Self, DecodeError> {
        let too_short = DecodeError::TooShort { length: datagram.len(), header: HEADER_LEN + TAG_LEN };
        let &[kind, epoch, high, middle, low, a, b, c, d] = datagram.first_chunk().ok_or(too_short)?;
        if datagram.len() < HEADER_LEN + TAG_LEN {
            return Err(too_short);
        }
        if kind != KIND {
            return Err(DecodeError::OutOfRange { field: "first byte", value: kind.into(), legal: "0xc5" });
        }
        let to = u32::from_be_bytes([a, b, c, d]);
        if to >> 31 != 0 {
            return Err(DecodeError::OutOfRange { field: "connection id", value: to, legal: "below 2^31" });
        }
        let number = u64::from(u32::from_be_bytes([0, high, middle, low]));
        Ok(Self { epoch: Epoch(epoch), number, to: SocketId::new(to) })
    }
}

/// Whether a datagram is a protected packet, by its first byte. Does not check its validity.
#[inline]
pub fn is_protected(datagram: &[u8]) -> bool {
    datagram.first() == Some(&KIND)
}

/// The connection that a protected packet names; `None` if it is too short. Does not check its validity.
#[inline]
pub fn destination(datagram: &[u8]) -> Option<ConnectionName> {
    let &[.., a, b, c, d]: &[u8; HEADER_LEN] = datagram.first_chunk()?;
    Some(SocketId::new(u32::from_be_bytes([a, b, c, d])))
}
