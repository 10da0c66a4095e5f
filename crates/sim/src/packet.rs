//! Encoded datagrams on their way, in buffers that are used again and again.

use std::cell::RefCell;
use std::fmt;
use std::net::SocketAddr;
use std::rc::Rc;

use farhaul_netem::{Packet, WireLen, flip_random_bit};
use farhaul_units::Rng;

/// Bytes of IPv4 and UDP header, which occupy the link but are not stored.
pub const HEADER_OVERHEAD: u32 = 28;

/// One datagram: what a socket would send or receive.
#[derive(Clone, Debug)]
struct Datagram {
    from: SocketAddr,
    to: SocketAddr,
    bytes: Vec<u8>,
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
    made: usize,
}

impl Pool {
    /// An empty pool.
    pub fn new() -> Self {
        Self::default()
    }

    /// A packet with a copy of `bytes`.
    pub fn packet(&self, from: SocketAddr, to: SocketAddr, bytes: &[u8]) -> PooledPacket {
        let mut free = self.free.borrow_mut();
        let mut datagram = free.datagrams.pop().unwrap_or_else(|| {
            free.made += 1;
            Box::new(Datagram { from, to, bytes: Vec::with_capacity(bytes.len()), damaged: false })
        });
        datagram.from = from;
        datagram.to = to;
        datagram.damaged = false;
        datagram.bytes.clear();
        datagram.bytes.extend_from_slice(bytes);
        PooledPacket { datagram: Some(datagram), pool: self.clone() }
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

/// A handle to a datagram of a [`Pool`], which goes back when the packet is delivered or lost.
pub struct PooledPacket {
    /// `None` only while it is dropped.
    datagram: Option<Box<Datagram>>,
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
        &self.datagram().bytes
    }

    /// What UDP carries, to be changed in place.
    pub fn bytes_mut(&mut self) -> &mut Vec<u8> {
        &mut self.datagram_mut().bytes
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
        u32::try_from(self.bytes().len()).unwrap_or(u32::MAX).saturating_add(HEADER_OVERHEAD)
    }
}

impl Packet for PooledPacket {
    fn duplicate(&self) -> Self {
        let mut copy = self.pool.packet(self.from(), self.to(), self.bytes());
        copy.datagram_mut().damaged = self.is_damaged();
        copy
    }

    fn corrupt(&mut self, rng: &mut Rng) {
        let datagram = self.datagram_mut();
        datagram.damaged = true;
        flip_random_bit(&mut datagram.bytes, rng);
    }
}

impl Drop for PooledPacket {
    fn drop(&mut self) {
        if let Some(datagram) = self.datagram.take() {
            self.pool.free.borrow_mut().datagrams.push(datagram);
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
