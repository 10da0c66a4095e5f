//! Observation of the wire: a hash of all packets in order, and taps that inspect and interfere.

use core::net::SocketAddr;

use farhaul_netem::WireLen;
use farhaul_units::Instant;

use crate::packet::{Payload, PooledPacket};

/// Multiplier of the hash, odd: the golden ratio in 64 bits.
const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;

/// Bytes of each datagram in the hash: every header and some payload. The payload follows from the seed, and the
/// receiver checks it.
const HASHED_BYTES: usize = 32;

/// A hash of all packets sent and delivered, with their times, in order. Equal runs have equal hashes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceHash(u64);

impl TraceHash {
    /// The hash of an empty trace.
    pub fn new() -> Self {
        Self::default()
    }

    /// The value, for comparisons within one version.
    pub fn value(self) -> u64 {
        self.0
    }

    /// Adds an event. `place` identifies the observer.
    ///
    /// `len` is the length of the datagram, and `head` its first bytes: at least those that enter the hash.
    pub(crate) fn record(&mut self, now: Instant, place: u64, len: usize, head: &[u8]) {
        self.mix(now.as_nanos());
        self.mix(place << 32 | len as u64);
        self.mix_bytes(head);
    }

    fn mix_bytes(&mut self, head: &[u8]) {
        let (words, rest) = head[..head.len().min(HASHED_BYTES)].as_chunks();
        for word in words {
            self.mix(u64::from_be_bytes(*word));
        }
        if !rest.is_empty() {
            self.mix(rest.iter().fold(0, |word, &byte| word << 8 | u64::from(byte)));
        }
    }

    /// Adds the sending of a packet without bytes.
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

    /// Adds a packet that leaves or reaches an agent.
    pub(crate) fn record_packet(&mut self, now: Instant, place: u64, packet: &PooledPacket) {
        let (len, head) = packet.outline();
        match packet.payload() {
            Payload::Datagram => self.record(now, place, len, head),
            typed => {
                self.record_payload(now, place, typed, packet.wire_len());
                self.mix_bytes(head);
            }
        }
    }

    fn mix(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(MULTIPLIER);
        self.0 ^= self.0 >> 32;
    }
}

/// A datagram that a host is about to send.
pub struct OutgoingDatagram<'a> {
    /// The time.
    pub now: Instant,
    /// The sender's address.
    pub from: SocketAddr,
    /// The receiver's address.
    pub to: SocketAddr,
    /// The UDP payload, which a tap may change.
    pub bytes: &'a mut Vec<u8>,
    /// Datagrams to send behind this one, from any address: `(from, to, bytes)`.
    pub forged: &'a mut Vec<(SocketAddr, SocketAddr, Vec<u8>)>,
}

/// A [`Tap`]'s decision on a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TapAction {
    /// Sends the datagram.
    Pass,
    /// Drops the datagram.
    Drop,
}

/// Sees every datagram that hosts send before it enters the path. May record, change, drop and forge.
pub type Tap = Box<dyn FnMut(&mut OutgoingDatagram<'_>) -> TapAction>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_depends_on_time_place_order_and_bytes() {
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
