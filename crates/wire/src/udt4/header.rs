//! The common parts of all packets: header words, socket ids, time stamps, and two fast checks for a demultiplexer.

use core::fmt;
use core::time::Duration;

use crate::DecodeError;
use crate::field::below_2_31;

/// Bytes before the body of every packet.
pub const HEADER_LEN: usize = 16;

/// The bit of the first word that distinguishes control from data.
pub(crate) const CONTROL_BIT: u32 = 1 << 31;

/// The words of a header: the sequence number of a data packet or the type of a control packet; the message field or
/// additional information; the time stamp; the destination.
pub(crate) type Head = [u32; HEADER_LEN / 4];
/// The name of the second word of a control packet in errors.
pub(crate) const ADDITIONAL: &str = "additional information";

/// The id of a socket behind a UDP port, 1..=2^31 - 1. Zero addresses the listener of the port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SocketId(u32);

impl SocketId {
    /// No socket: the destination of a handshake to a listener, or to a rendezvous peer whose id is unknown.
    pub const NONE: Self = Self(0);

    /// The low 31 bits of `value`. libudt drops packets to an id with the top bit set.
    pub const fn new(value: u32) -> Self {
        Self(value & !CONTROL_BIT)
    }

    /// The id as encoded on the wire.
    pub const fn value(self) -> u32 {
        self.0
    }

    /// Whether this is [`SocketId::NONE`].
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Display for SocketId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Microseconds since the sending socket was opened. Wraps every 71.6 minutes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Timestamp(u32);

impl Timestamp {
    /// The moment of opening, and the value in all control packets of libudt.
    pub const ZERO: Self = Self(0);

    /// `micros` microseconds after the opening.
    pub const fn new(micros: u32) -> Self {
        Self(micros)
    }

    /// The time stamp `elapsed` after the opening, modulo 2^32 µs.
    pub const fn from_elapsed(elapsed: Duration) -> Self {
        Self((elapsed.as_micros() & 0xFFFF_FFFF) as u32)
    }

    /// Microseconds since the opening, modulo 2^32.
    pub const fn value(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} us", self.0)
    }
}

/// Whether `datagram` has the control bit. Does not check its validity. `false` if it is empty.
#[inline]
pub fn is_control(datagram: &[u8]) -> bool {
    datagram.first().is_some_and(|byte| byte >> 7 == 1)
}

/// The destination socket of `datagram`; `None` if it is too short or has an invalid id.
#[inline]
pub fn destination(datagram: &[u8]) -> Option<SocketId> {
    let head: &[u8; HEADER_LEN] = datagram.first_chunk()?;
    read_destination(u32::from_be_bytes(*head.last_chunk()?)).ok()
}

/// The words of the header, and the rest.
#[inline]
pub(crate) fn split(datagram: &[u8]) -> Result<(Head, &[u8]), DecodeError> {
    let too_short = DecodeError::TooShort { length: datagram.len(), header: HEADER_LEN };
    let (head, rest) = datagram.split_first_chunk().ok_or(too_short)?;
    Ok((words_of(head), rest))
}

#[inline]
pub(crate) fn words_of(head: &[u8; HEADER_LEN]) -> Head {
    let (words, _) = head.as_chunks();
    // Written out, because `map` of an array becomes a call with a loop.
    let word = |place: usize| u32::from_be_bytes(words[place]);
    [word(0), word(1), word(2), word(3)]
}

#[inline]
pub(crate) fn read_destination(word: u32) -> Result<SocketId, DecodeError> {
    below_2_31("destination socket id", word).map(SocketId)
}
