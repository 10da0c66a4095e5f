//! The handshake body: twelve words that open a connection. A thirteenth, in the header, is for Farhaul alone.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use farhaul_units::SeqNo;
use num_enum::{FromPrimitive, IntoPrimitive};

use super::header::SocketId;
use crate::DecodeError;
use crate::field::{below_2_31, put_words, read_seq, read_words};

/// The high half of the second header word of a side that may probe for larger packets: "FP" in ASCII. libudt does not read that word.
/// It writes zero there, except that its listener answers a first or repeated call in the packet that it got.
const OFFERED: u32 = 0x4650;
/// The same in the answer to such an offer. It differs, so that no echo of libudt is taken for it.
const ANSWERED: u32 = 0x4651;
/// This bit beside them: the side wants receipts.
const WANTS_RECEIPTS: u32 = 0x0002_0000;

/// Whether a side is of Farhaul, and the largest packet that it sends and takes if it may probe for larger ones, in bytes like
/// [`mss`](Handshake::mss). Zero if its size is fixed. It travels in the header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Largest {
    /// The side is not known to be of Farhaul.
    #[default]
    Unsaid,
    /// An offer of the side that calls, or of either side of a rendezvous.
    Offered(u16),
    /// The answer to an offer.
    Answered(u16),
}

impl Largest {
    /// Whether the side is of Farhaul.
    pub const fn is_ours(self) -> bool {
        !matches!(self, Self::Unsaid)
    }

    /// Whether the side is of Farhaul, and answers an offer.
    pub const fn is_answer(self) -> bool {
        matches!(self, Self::Answered(_))
    }

    /// The size, offered or answered.
    pub const fn said(self) -> Option<u16> {
        match self {
            Self::Unsaid | Self::Offered(0) | Self::Answered(0) => None,
            Self::Offered(bytes) | Self::Answered(bytes) => Some(bytes),
        }
    }

    /// The size in an answer.
    pub const fn answered(self) -> Option<u16> {
        if self.is_answer() { self.said() } else { None }
    }

    const fn from_word(word: u32) -> Self {
        let [_, _, high, low] = word.to_be_bytes();
        let bytes = u16::from_be_bytes([high, low]);
        match (word & !WANTS_RECEIPTS) >> 16 {
            OFFERED => Self::Offered(bytes),
            ANSWERED => Self::Answered(bytes),
            _ => Self::Unsaid,
        }
    }

    const fn to_word(self) -> u32 {
        match self {
            Self::Unsaid => 0,
            Self::Offered(bytes) => OFFERED << 16 | bytes as u32,
            Self::Answered(bytes) => ANSWERED << 16 | bytes as u32,
        }
    }
}

/// Whether a connection carries a byte stream or messages.
///
/// libudt counts from 1. The Internet draft counts from 0, which is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, FromPrimitive, IntoPrimitive)]
#[repr(u32)]
pub enum SocketType {
    /// A stream of bytes.
    Stream = 1,
    /// Messages.
    Dgram = 2,
    /// Any other value; never 1 or 2 when decoded.
    #[num_enum(catch_all)]
    Other(u32),
}

/// The request or response of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, FromPrimitive, IntoPrimitive)]
#[repr(i32)]
pub enum Request {
    /// A client's first request, and the response with a cookie.
    Induction = 1,
    /// A client's second request, with the cookie, and the response that connects.
    Conclusion = -1,
    /// The first request of either side of a rendezvous.
    Rendezvous = 0,
    /// The response of a connected rendezvous side to a repeated request.
    RendezvousFinal = -2,
    /// The listener refuses: wrong version or type, or no room.
    Refused = 1002,
    /// Any other value; never one of the above when decoded.
    #[num_enum(catch_all)]
    Other(i32),
}

/// The body of a handshake. Every field is an unchecked claim of the peer: clamp it before use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handshake {
    /// Version of the protocol: [`Handshake::VERSION`], or zero in libudt's responses on an open connection.
    pub version: u32,
    /// Stream or messages; zero in libudt's responses on an open connection.
    pub socket_type: SocketType,
    /// Sequence number of the first data packet.
    pub isn: SeqNo,
    /// The largest packet in bytes: 28 for IP and UDP, 16 for the header, and the payload.
    pub mss: u32,
    /// Most unacknowledged packets that the sender of this handshake accepts.
    pub flow_window: u32,
    /// The step of the handshake.
    pub request: Request,
    /// The socket that sent this packet. In a first response: the client's, echoed.
    pub socket_id: SocketId,
    /// Zero in the first request. Then the listener's cookie for the client's address.
    pub cookie: u32,
    /// The receiver's address as seen by the sender. For information only.
    ///
    /// The wire does not distinguish the families. An address whose last 96 bits are zero reads as IPv4, so `::`
    /// becomes `0.0.0.0`. The bytes are the same.
    pub peer_ip: IpAddr,
    /// Whether this side may probe for larger packets.
    pub largest: Largest,
    /// Whether this side wants a [`Receipt`](super::Receipt) now and then. Only a side that is known to be of Farhaul says so.
    pub wants_receipts: bool,
}

impl Handshake {
    /// The version of this crate.
    pub const VERSION: u32 = 4;
    /// Bytes of the body.
    pub const LEN: usize = 48;

    /// Reads a handshake.
    pub(super) fn decode(additional: u32, body: &[u8]) -> Result<Self, DecodeError> {
        let largest = Largest::from_word(additional);
        let wants_receipts = largest.is_ours() && additional & WANTS_RECEIPTS != 0;
        Ok(Self { largest, wants_receipts, ..Self::decode_body(body)? })
    }

    /// The second header word.
    pub(super) const fn additional_information(&self) -> u32 {
        let wants = self.largest.is_ours() && self.wants_receipts;
        self.largest.to_word() | if wants { WANTS_RECEIPTS } else { 0 }
    }

    /// Reads the body of a handshake.
    ///
    /// # Errors
    /// A body that does not have exactly 48 bytes, or an initial sequence number or socket id with the top bit set.
    pub fn decode_body(body: &[u8]) -> Result<Self, DecodeError> {
        let [version, socket_type, isn, mss, flow_window, request, socket_id, cookie, ip @ ..] =
            read_words::<12>("handshake", body, "48")?;
        Ok(Self {
            version,
            socket_type: socket_type.into(),
            isn: read_seq("initial sequence number", isn)?,
            mss,
            flow_window,
            request: request.cast_signed().into(),
            socket_id: below_2_31("handshake socket id", socket_id).map(SocketId::new)?,
            cookie,
            peer_ip: read_ip(ip),
            largest: Largest::Unsaid,
            wants_receipts: false,
        })
    }

    /// Appends the body to `out`.
    pub fn encode_body(&self, out: &mut Vec<u8>) {
        let (socket_type, request) = (self.socket_type.into(), i32::from(self.request).cast_unsigned());
        put_words(out, [self.version, socket_type, self.isn.value(), self.mss, self.flow_window, request]);
        put_words(out, [self.socket_id.value(), self.cookie]);
        put_words(out, ip_words(self.peer_ip));
    }
}

/// An address of four words, each of which libudt swaps like a number.
fn read_ip(words: [u32; 4]) -> IpAddr {
    match words.map(u32::swap_bytes) {
        [bits, 0, 0, 0] => Ipv4Addr::from_bits(bits).into(),
        words => Ipv6Addr::from_bits(words.into_iter().fold(0, |bits, word| bits << 32 | u128::from(word))).into(),
    }
}

fn ip_words(ip: IpAddr) -> [u32; 4] {
    let words = match ip {
        IpAddr::V4(ip) => [ip.to_bits(), 0, 0, 0],
        IpAddr::V6(ip) => [96, 64, 32, 0].map(|shift| (ip.to_bits() >> shift & 0xFFFF_FFFF) as u32),
    };
    words.map(u32::swap_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_of(ip: &str) -> [u8; 16] {
        let words = ip_words(ip.parse().unwrap());
        assert_eq!(read_ip(words).to_string(), ip);
        let mut bytes = Vec::new();
        put_words(&mut bytes, words);
        bytes.try_into().unwrap()
    }

    #[test]
    fn each_word_of_an_address_is_reversed() {
        assert_eq!(bytes_of("127.0.0.1"), [1, 0, 0, 127, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes_of("::1"), [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]);
        assert_eq!(bytes_of("2001:db8::2")[..4], [0xB8, 0x0D, 0x01, 0x20]);
    }

    #[test]
    fn an_offer_is_no_answer_and_other_words_are_neither() {
        for largest in [Largest::Unsaid, Largest::Offered(9_000), Largest::Answered(1_500), Largest::Offered(0)] {
            assert_eq!(Largest::from_word(largest.to_word()), largest);
        }
        assert_eq!((Largest::Answered(0).said(), Largest::Answered(0).is_answer()), (None, true));
        assert_eq!((Largest::Offered(9_000).answered(), Largest::Answered(9_000).answered()), (None, Some(9_000)));
        assert_eq!(Largest::from_word(0x1234_2328), Largest::Unsaid);
    }

    #[test]
    fn the_unspecified_address_reads_as_ipv4() {
        assert_eq!(read_ip([0; 4]), IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    }
}
