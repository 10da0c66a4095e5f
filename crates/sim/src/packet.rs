//! Packets in flight: encoded datagrams, typed substitutes, and TCP segments with bytes.

mod body;
pub(crate) mod content;
mod pool;
pub(crate) mod segment;

use core::net::SocketAddr;
use std::fmt;
use std::rc::Rc;

use farhaul_netem::{Packet, WireLen, flip_random_bit};
use farhaul_units::{Instant, Rng};

use body::Body;
use content::{Content, Destination, Ends, FlowId};
pub use content::{Payload, Share};
pub use pool::Pool;
use segment::Segment;

/// Bytes of IPv4 and UDP header, which occupy the link but are not stored.
pub const HEADER_OVERHEAD: u32 = 28;

/// A packet of a [`Pool`], which takes its memory back on delivery or loss.
///
/// It holds all fields that links and their queues read, and the datagram itself if that is short or compressed (see
/// `packet/body.rs`). Neighbours in a queue are then read at the speed of sequential memory access. A pointer into
/// memory last used one RTT ago would cost more than all other work of a link.
pub struct PooledPacket {
    content: Content,
    ends: Rc<Ends>,
    pool: Pool,
    wire_len: u32,
    share: Share,
    damaged: bool,
    /// When it reached the receiving host; zero if that host's costs are not modelled.
    stamp: Instant,
}

impl PooledPacket {
    /// The sender's address.
    pub fn from(&self) -> SocketAddr {
        self.ends.from
    }

    /// The receiver's address.
    pub fn to(&self) -> SocketAddr {
        self.ends.to
    }

    /// The UDP payload, or the bytes that a TCP segment carries.
    pub fn bytes(&self) -> &[u8] {
        self.body().map_or(&[], |body| body.bytes(|| self.pool.buffer()))
    }

    /// The UDP payload, mutable. The packet keeps its length on the link. `None` if the packet is not a datagram.
    pub fn bytes_mut(&mut self) -> Option<&mut Vec<u8>> {
        match &mut self.content {
            Content::Datagram(body) => Some(body.bytes_mut(|| self.pool.buffer())),
            Content::Typed(_) | Content::Carrying(_) => None,
        }
    }

    /// Number of its bytes, and the first of them: at least 40, or all.
    pub(crate) fn outline(&self) -> (usize, &[u8]) {
        self.body().map_or((0, &[]), |body| (body.len(), body.head()))
    }

    fn body(&self) -> Option<&Body> {
        match &self.content {
            Content::Datagram(body) => Some(body),
            Content::Typed(_) => None,
            Content::Carrying(carrying) => Some(&carrying.body),
        }
    }

    /// The content.
    pub fn payload(&self) -> &Payload {
        match &self.content {
            Content::Datagram(_) => &Payload::Datagram,
            Content::Typed(payload) => payload,
            Content::Carrying(carrying) => &carrying.payload,
        }
    }

    /// The flow to which it belongs.
    pub fn flow(&self) -> FlowId {
        self.ends.flow
    }

    /// Whether it is new data, retransmitted data, control or part of a channel.
    pub fn share(&self) -> Share {
        self.share
    }

    /// Returns the box to the pool, and the memory of the bytes.
    fn take_carrying(&mut self) -> Option<Vec<u8>> {
        let content = core::mem::replace(&mut self.content, Content::Typed(Payload::Filler));
        let Content::Carrying(mut carrying) = content else { return None };
        let buffer = carrying.body.take_buffer();
        self.pool.take_box(carrying);
        buffer
    }

    /// Moves the packet out and leaves one without content.
    pub(crate) fn take(&mut self) -> Self {
        let left = self.pool.made_of(Content::Typed(Payload::Filler), Rc::clone(&self.ends), self.share, 0);
        core::mem::replace(self, left)
    }

    pub(crate) fn destination(&self) -> Option<Destination> {
        self.ends.destination
    }

    /// Recomputes the length on the link after a change of the payload.
    pub(crate) fn measure(&mut self) {
        if let Content::Datagram(body) = &self.content {
            self.wire_len = datagram_len(body.len());
        }
    }

    /// Notes when it reached the receiving host, as a kernel stamps datagrams before a program reads them.
    pub(crate) const fn stamp(&mut self, now: Instant) {
        self.stamp = now;
    }

    /// When it reached the receiving host, whose program has it now.
    pub(crate) const fn arrived(&self, now: Instant) -> Instant {
        if self.stamp.as_nanos() == 0 { now } else { self.stamp }
    }

    /// Whether a model of the path damaged it, which the checksums of UDP and TCP detect.
    pub fn is_damaged(&self) -> bool {
        self.damaged
    }
}

impl Pool {
    /// A datagram with a copy of `bytes` that belongs to no flow.
    pub fn packet(&self, from: SocketAddr, to: SocketAddr, bytes: &[u8]) -> PooledPacket {
        self.datagram(Rc::new(Ends { from, to, destination: None, flow: 0 }), bytes, Share::Control)
    }

    /// A datagram with a copy of `bytes`.
    pub(crate) fn datagram(&self, ends: Rc<Ends>, bytes: &[u8], share: Share) -> PooledPacket {
        let body = Body::of(bytes, || self.buffer());
        self.made_of(Content::Datagram(body), ends, share, datagram_len(bytes.len()))
    }

    /// A packet without content that occupies `wire_len` bytes of a link.
    pub(crate) fn typed(&self, ends: Rc<Ends>, payload: Payload, wire_len: u32, share: Share) -> PooledPacket {
        self.made_of(Content::Typed(payload), ends, share, wire_len)
    }

    /// A TCP segment with a copy of `bytes`.
    pub(crate) fn segment(&self, ends: Rc<Ends>, segment: Segment, bytes: &[u8], share: Share) -> PooledPacket {
        let body = Body::of(bytes, || self.buffer());
        let content = Content::Carrying(self.carrying(Payload::Tcp(segment), body));
        self.made_of(content, ends, share, segment.wire_len())
    }

    fn made_of(&self, content: Content, ends: Rc<Ends>, share: Share, wire_len: u32) -> PooledPacket {
        self.count();
        PooledPacket { content, ends, pool: self.clone(), wire_len, share, damaged: false, stamp: Instant::ZERO }
    }
}

/// Bytes on a link of a datagram with `bytes` bytes of payload.
fn datagram_len(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX).saturating_add(HEADER_OVERHEAD)
}

impl WireLen for PooledPacket {
    fn wire_len(&self) -> u32 {
        self.wire_len
    }
}

impl Packet for PooledPacket {
    fn duplicate(&self) -> Self {
        let content = match &self.content {
            Content::Datagram(body) => Content::Datagram(body.copy(|| self.pool.buffer())),
            Content::Typed(payload) => Content::Typed(*payload),
            Content::Carrying(carrying) => {
                let body = carrying.body.copy(|| self.pool.buffer());
                Content::Carrying(self.pool.carrying(carrying.payload, body))
            }
        };
        let mut copy = self.pool.made_of(content, Rc::clone(&self.ends), self.share, self.wire_len);
        copy.damaged = self.damaged;
        copy
    }

    fn corrupt(&mut self, rng: &mut Rng) {
        self.damaged = true;
        flip_random_bit(self.bytes_mut().map_or(&mut [], |bytes| &mut bytes[..]), rng);
    }
}

impl Drop for PooledPacket {
    fn drop(&mut self) {
        let buffer = match &mut self.content {
            Content::Datagram(body) => body.take_buffer(),
            Content::Typed(_) => None,
            Content::Carrying(_) => self.take_carrying(),
        };
        self.pool.take_back(buffer);
    }
}

impl fmt::Debug for PooledPacket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} -> {}, {} bytes", self.from(), self.to(), self.outline().0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, 1], port))
    }

    #[test]
    fn damage_to_a_copy_leaves_the_original_alone() {
        let pool = Pool::new();
        for datagram in [&b"payload"[..], &[9; 1_400], &[&[9; 1_399][..], &[8]].concat()] {
            let packet = pool.packet(address(1), address(2), datagram);
            let mut copy = packet.duplicate();
            copy.corrupt(&mut Rng::new(1));
            assert_eq!((packet.bytes(), packet.is_damaged()), (datagram, false));
            assert_ne!(copy.bytes(), datagram);
            assert_eq!((copy.from(), copy.to(), copy.is_damaged()), (address(1), address(2), true));
            assert_eq!((copy.bytes().len(), copy.wire_len()), (datagram.len(), packet.wire_len()));
        }
    }

    #[test]
    fn a_changed_datagram_is_as_long_as_its_bytes_once_it_is_measured() {
        let mut packet = Pool::new().packet(address(1), address(2), &[0; 1_400]);
        packet.bytes_mut().expect("it is a datagram").truncate(9);
        assert_eq!(packet.wire_len(), 1_428);
        packet.measure();
        assert_eq!((packet.wire_len(), packet.bytes()), (37, &[0; 9][..]));
    }
}
