//! Encoded datagrams on their way, in buffers that are used again and again.

mod body;

use std::cell::RefCell;
use std::fmt;
use std::net::SocketAddr;
use std::rc::Rc;

use farhaul_netem::{Packet, WireLen, flip_random_bit};
use farhaul_units::Rng;

use crate::agent::tcp::Segment;
use crate::network::{AgentId, FlowId};
use body::Body;

/// Bytes of IPv4 and UDP header, which occupy the link but are not stored.
pub const HEADER_OVERHEAD: u32 = 28;

/// What a packet carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Payload {
    /// A UDP datagram: the packet's [`bytes`](PooledPacket::bytes).
    #[default]
    Datagram,
    /// Nothing that anybody looks at: cross traffic.
    Filler,
    /// A TCP segment.
    Tcp(Segment),
}

/// Which share of a flow's traffic a packet belongs to; links count them apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Share {
    /// Data on its first way.
    New,
    /// Data that was sent before.
    Repeated,
    /// Everything else: acknowledgements, loss reports, handshakes.
    #[default]
    Control,
}

/// One packet: what a socket would send or receive, or a typed stand-in for it.
#[derive(Debug)]
struct Datagram {
    from: SocketAddr,
    to: SocketAddr,
    /// The agent at `to`; `None` until that was looked up.
    destination: Option<AgentId>,
    flow: FlowId,
    share: Share,
    payload: Payload,
    body: Body,
    damaged: bool,
}

/// Where datagrams come from and return to, so that a packet costs no allocation once enough of them exist.
#[derive(Clone, Debug, Default)]
pub struct Pool {
    free: Rc<RefCell<FreeList>>,
}

#[expect(
    clippy::vec_box,
    reason = "a handle is one pointer wide, because models move it often; the box is the datagram"
)]
#[derive(Debug, Default)]
struct FreeList {
    datagrams: Vec<Box<Datagram>>,
    /// Room for bytes, given out again last in, first out, while it is still in a cache.
    buffers: Vec<Vec<u8>>,
    made: usize,
}

impl Pool {
    /// An empty pool.
    pub fn new() -> Self {
        Self::default()
    }

    /// A datagram with a copy of `bytes`, of no flow.
    pub fn packet(&self, from: SocketAddr, to: SocketAddr, bytes: &[u8]) -> PooledPacket {
        let mut packet = self.blank(from, to);
        let datagram = packet.datagram_mut();
        datagram.payload = Payload::Datagram;
        datagram.body.put(bytes, || self.buffer());
        packet.wire_len = datagram_len(bytes.len());
        packet
    }

    /// A packet without bytes that takes `wire_len` bytes of a link.
    pub fn typed(&self, from: SocketAddr, to: SocketAddr, payload: Payload, wire_len: u32) -> PooledPacket {
        let mut packet = self.blank(from, to);
        let datagram = packet.datagram_mut();
        datagram.payload = payload;
        packet.wire_len = wire_len;
        packet
    }

    fn blank(&self, from: SocketAddr, to: SocketAddr) -> PooledPacket {
        let mut free = self.free.borrow_mut();
        let mut datagram = free.datagrams.pop().unwrap_or_else(|| {
            free.made += 1;
            Box::new(Datagram::unused(from, to))
        });
        datagram.from = from;
        datagram.to = to;
        datagram.destination = None;
        datagram.flow = 0;
        datagram.share = Share::Control;
        datagram.damaged = false;
        PooledPacket { datagram: Some(datagram), wire_len: 0, pool: self.clone() }
    }

    fn buffer(&self) -> Vec<u8> {
        self.free.borrow_mut().buffers.pop().unwrap_or_default()
    }

    /// How many datagrams were ever made: the most that were on their way at once.
    pub fn made(&self) -> usize {
        self.free.borrow().made
    }

    /// How many datagrams are on their way now.
    pub fn in_use(&self) -> usize {
        let free = self.free.borrow();
        free.made - free.datagrams.len()
    }
}

impl Datagram {
    fn unused(from: SocketAddr, to: SocketAddr) -> Self {
        Self {
            from,
            to,
            destination: None,
            flow: 0,
            share: Share::Control,
            payload: Payload::Datagram,
            body: Body::new(),
            damaged: false,
        }
    }
}

/// What a datagram of these bytes takes of a link.
fn datagram_len(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX).saturating_add(HEADER_OVERHEAD)
}

/// A handle to a datagram of a [`Pool`], which goes back when the packet is delivered or lost.
pub struct PooledPacket {
    /// `None` only while it is dropped.
    datagram: Option<Box<Datagram>>,
    /// Bytes on a link. It lies here because every model asks for it, long after the datagram has left the caches.
    wire_len: u32,
    pool: Pool,
}

impl PooledPacket {
    /// The sender's address.
    pub fn from(&self) -> SocketAddr {
        self.datagram().from
    }

    /// The receiver's address.
    pub fn to(&self) -> SocketAddr {
        self.datagram().to
    }

    /// What UDP carries.
    pub fn bytes(&self) -> &[u8] {
        self.datagram().body.bytes(|| self.pool.buffer())
    }

    /// What UDP carries, to be changed in place; the packet keeps its length on the link.
    pub fn bytes_mut(&mut self) -> &mut Vec<u8> {
        let datagram = self.datagram.as_mut().expect("a packet holds its datagram until it is dropped");
        datagram.body.bytes_mut(|| self.pool.buffer())
    }

    /// The first bytes of what UDP carries, 40 or all.
    pub(crate) fn head(&self) -> &[u8] {
        self.datagram().body.head()
    }

    /// How many bytes UDP carries.
    pub(crate) fn len(&self) -> usize {
        self.datagram().body.len()
    }

    /// What it carries.
    pub fn payload(&self) -> &Payload {
        &self.datagram().payload
    }

    /// Whose it is.
    pub fn flow(&self) -> FlowId {
        self.datagram().flow
    }

    /// Whether it is new data, repeated data or control.
    pub fn share(&self) -> Share {
        self.datagram().share
    }

    /// Says whose it is.
    pub(crate) fn label(&mut self, flow: FlowId, share: Share) {
        let datagram = self.datagram_mut();
        datagram.flow = flow;
        datagram.share = share;
    }

    pub(crate) fn destination(&self) -> Option<AgentId> {
        self.datagram().destination
    }

    pub(crate) fn set_destination(&mut self, agent: Option<AgentId>) {
        self.datagram_mut().destination = agent;
    }

    /// Its length follows its bytes again, after somebody changed them.
    pub(crate) fn measure(&mut self) {
        self.wire_len = datagram_len(self.len());
    }

    /// Whether a model of the path damaged it, which UDP's checksum shows.
    pub fn is_damaged(&self) -> bool {
        self.datagram().damaged
    }

    fn datagram_mut(&mut self) -> &mut Datagram {
        self.datagram.as_mut().expect("a packet holds its datagram until it is dropped")
    }

    fn datagram(&self) -> &Datagram {
        self.datagram.as_ref().expect("a packet holds its datagram until it is dropped")
    }
}

impl WireLen for PooledPacket {
    fn wire_len(&self) -> u32 {
        self.wire_len
    }
}

impl Packet for PooledPacket {
    fn duplicate(&self) -> Self {
        let mut copy = self.pool.blank(self.from(), self.to());
        let Datagram { destination, flow, share, payload, ref body, damaged, .. } = *self.datagram();
        let datagram = copy.datagram_mut();
        (datagram.destination, datagram.flow, datagram.share) = (destination, flow, share);
        (datagram.payload, datagram.damaged) = (payload, damaged);
        datagram.body.become_like(body, || self.pool.buffer());
        copy.wire_len = self.wire_len;
        copy
    }

    fn corrupt(&mut self, rng: &mut Rng) {
        self.datagram_mut().damaged = true;
        flip_random_bit(self.bytes_mut(), rng);
    }
}

impl Drop for PooledPacket {
    fn drop(&mut self) {
        if let Some(mut datagram) = self.datagram.take() {
            let mut free = self.pool.free.borrow_mut();
            free.buffers.extend(datagram.body.take_buffer());
            free.datagrams.push(datagram);
        }
    }
}

impl fmt::Debug for PooledPacket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} -> {}, {} bytes", self.from(), self.to(), self.bytes().len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, 1], port))
    }

    #[test]
    fn a_dropped_packet_lends_its_buffer_to_the_next() {
        let pool = Pool::new();
        for round in 0..100u8 {
            let packet = pool.packet(address(1), address(2), &[round; 1_400]);
            assert_eq!((packet.bytes(), packet.wire_len()), (&[round; 1_400][..], 1_428));
            assert_eq!(pool.in_use(), 1);
        }
        assert_eq!((pool.made(), pool.in_use()), (1, 0));
    }

    #[test]
    fn damage_to_a_copy_leaves_the_original_alone() {
        let pool = Pool::new();
        let packet = pool.packet(address(1), address(2), b"payload");
        let mut copy = packet.duplicate();
        copy.corrupt(&mut Rng::new(1));
        assert_eq!(packet.bytes(), b"payload");
        assert_ne!(copy.bytes(), b"payload");
        assert_eq!((copy.from(), copy.to()), (address(1), address(2)));
    }
}
