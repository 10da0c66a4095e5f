//! Packets on their way: encoded datagrams, and typed stand-ins for them.

mod body;
mod pool;

use core::net::SocketAddr;
use std::fmt;
use std::rc::Rc;

use farhaul_netem::{Packet, WireLen, flip_random_bit};
use farhaul_units::Rng;

use crate::agent::tcp::Segment;
use crate::network::{AgentId, FlowId};
use body::Body;
pub use pool::Pool;

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

/// Where a packet comes from and goes to: the same for all that an agent sends to one address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    pub(crate) from: SocketAddr,
    pub(crate) to: SocketAddr,
    /// The agent at `to`, if there is one and it was looked up.
    pub(crate) destination: Option<AgentId>,
    pub(crate) flow: FlowId,
}

/// A packet of a [`Pool`], to which its memory goes back when it is delivered or lost.
///
/// It holds all that links and their queues ask for, and the datagram itself if that is short or folds (see
/// `packet/body.rs`): packets that lie in a queue one behind the other are read as fast as memory goes, while each pointer
/// followed into memory that was last used a round trip ago would cost more than all that a link does.
pub struct PooledPacket {
    content: Content,
    ends: Rc<Ends>,
    pool: Pool,
    wire_len: u32,
    share: Share,
    damaged: bool,
}

enum Content {
    Datagram(Body),
    Typed(Payload),
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

    /// What UDP carries.
    pub fn bytes(&self) -> &[u8] {
        match &self.content {
            Content::Datagram(body) => body.bytes(|| self.pool.buffer()),
            Content::Typed(_) => &[],
        }
    }

    /// What UDP carries, to be changed in place; the packet keeps its length on the link. `None` for what is no datagram.
    pub fn bytes_mut(&mut self) -> Option<&mut Vec<u8>> {
        match &mut self.content {
            Content::Datagram(body) => Some(body.bytes_mut(|| self.pool.buffer())),
            Content::Typed(_) => None,
        }
    }

    /// How many bytes UDP carries, and the first of them, 40 or all.
    pub(crate) fn outline(&self) -> (usize, &[u8]) {
        match &self.content {
            Content::Datagram(body) => (body.len(), body.head()),
            Content::Typed(_) => (0, &[]),
        }
    }

    /// What it carries.
    pub fn payload(&self) -> &Payload {
        match &self.content {
            Content::Datagram(_) => &Payload::Datagram,
            Content::Typed(payload) => payload,
        }
    }

    /// Whose it is.
    pub fn flow(&self) -> FlowId {
        self.ends.flow
    }

    /// Whether it is new data, repeated data or control.
    pub fn share(&self) -> Share {
        self.share
    }

    pub(crate) fn destination(&self) -> Option<AgentId> {
        self.ends.destination
    }

    /// Its length follows its bytes again, after somebody changed them.
    pub(crate) fn measure(&mut self) {
        if let Content::Datagram(body) = &self.content {
            self.wire_len = datagram_len(body.len());
        }
    }

    /// Whether a model of the path damaged it, which UDP's checksum shows.
    pub fn is_damaged(&self) -> bool {
        self.damaged
    }
}

/// What a datagram of so many bytes takes of a link.
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
