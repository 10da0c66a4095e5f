//! What happened on the wire, as a hash of everything in order and as a place to look and to interfere.

use core::net::SocketAddr;

use farhaul_netem::WireLen;
use farhaul_units::Instant;

use crate::packet::{Payload, PooledPacket};

/// Multiplier of the hash, odd: the golden ratio in 64 bits.
const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;

/// Bytes of each datagram that enter the hash: every header, and some of the payload. What the payload should be follows
/// from the seed and is checked by the receiver.
const HASHED_BYTES: usize = 32;

/// A hash of all datagrams sent and delivered, with their times, in order. Two runs are equal exactly if theirs are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceHash(u64);

impl TraceHash {
    /// Of an empty trace.
    pub fn new() -> Self {
        Self::default()
    }

    /// The value; made for comparing, not for storing across versions.
    pub fn value(self) -> u64 {
        self.0
    }

    /// One more thing happened: `place` tells apart who saw it.
    ///
    /// Of the datagram, which has `len` bytes, `head` are the first, all that enter the hash at least.
    pub(crate) fn record(&mut self, now: Instant, place: u64, len: usize, head: &[u8]) {
        self.mix(now.as_nanos());
        self.mix(place << 32 | len as u64);
        let (words, rest) = head[..head.len().min(HASHED_BYTES)].as_chunks();
        for word in words {
            self.mix(u64::from_be_bytes(*word));
        }
        if !rest.is_empty() {
            self.mix(rest.iter().fold(0, |word, &byte| word << 8 | u64::from(byte)));
        }
    }

    /// A packet without bytes was sent.
    pub(crate) fn record_payload(&mut self, now: Instant, place: u64, payload: &Payload, wire_len: u32) {
        self.mix(now.as_nanos());
        self.mix(place << 32 | u64::from(wire_len));
        match payload {
            Payload::Datagram | Payload::Filler => {}
            Payload::Tcp(segment) => {
                self.mix(segment.seq);
                self.mix(segment.ack);
            }
        }
    }

    /// A packet arrived at an agent.
    pub(crate) fn record_delivery(&mut self, now: Instant, place: u64, packet: &PooledPacket) {
        match packet.payload() {
            Payload::Datagram => {
                let (len, head) = packet.outline();
                self.record(now, place, len, head);
            }
            typed => self.record_payload(now, place, typed, packet.wire_len()),
        }
    }

    fn mix(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(MULTIPLIER);
        self.0 ^= self.0 >> 32;
    }
}

/// A datagram that a host is about to put on the wire.
pub struct Departing<'a> {
    /// The time.
    pub now: Instant,
    /// Who sends it.
    pub from: SocketAddr,
    /// Who is to receive it.
    pub to: SocketAddr,
    /// What UDP carries; may be changed.
    pub bytes: &'a mut Vec<u8>,
    /// Datagrams to be sent after this one as if from any address: `(from, to, bytes)`.
    pub forged: &'a mut Vec<(SocketAddr, SocketAddr, Vec<u8>)>,
}

/// What becomes of a datagram that a [`Tap`] saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on its way.
    Pass,
    /// It vanishes.
    Drop,
}

/// Sees every datagram that hosts send, before the path does; may record, change, drop and forge.
pub type Tap = Box<dyn FnMut(&mut Departing<'_>) -> Verdict>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_place_order_and_bytes_all_count() {
        let hash = |events: &[(u64, u64, &[u8])]| {
            let mut hash = TraceHash::new();
            for &(nanos, place, bytes) in events {
                hash.record(Instant::from_nanos(nanos), place, bytes.len(), bytes);
            }
            hash
        };
        let base = hash(&[(1, 0, b"abc"), (2, 1, b"d")]);
        assert_eq!(base, hash(&[(1, 0, b"abc"), (2, 1, b"d")]));
        assert_ne!(base, hash(&[(2, 1, b"d"), (1, 0, b"abc")]));
        assert_ne!(base, hash(&[(1, 0, b"abc"), (3, 1, b"d")]));
        assert_ne!(base, hash(&[(1, 1, b"abc"), (2, 1, b"d")]));
        assert_ne!(base, hash(&[(1, 0, b"abd"), (2, 1, b"d")]));
    }
}
