//! What a packet is, and whose.

use core::net::SocketAddr;

use super::body::Body;
use super::segment::Segment;
use crate::network::NodeId;

/// An agent's index, in the order of creation.
pub type AgentId = usize;

/// A flow's index, the same for the agents at both ends.
pub type FlowId = usize;

/// The content of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Payload {
    /// A UDP datagram: the packet's [`bytes`](crate::PooledPacket::bytes).
    #[default]
    Datagram,
    /// Cross traffic without content.
    Filler,
    /// A TCP segment. The segments of a channel carry [`bytes`](crate::PooledPacket::bytes), those of other agents none.
    Tcp(Segment),
}

/// Class of a packet within a flow. Links count the classes separately.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Share {
    /// Data sent for the first time.
    New,
    /// Retransmitted data.
    Repeated,
    /// All other packets: acknowledgements, loss reports, handshakes.
    #[default]
    Control,
    /// TCP segments of a transport's channel.
    Channel,
}

/// Source and destination, shared by all packets of an agent to one address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    pub(crate) from: SocketAddr,
    pub(crate) to: SocketAddr,
    /// The agent at `to`, if it exists and was looked up.
    pub(crate) destination: Option<Destination>,
    pub(crate) flow: FlowId,
}

/// An agent and the node where it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Destination {
    pub(crate) agent: AgentId,
    pub(crate) node: NodeId,
}

pub(super) enum Content {
    Datagram(Body),
    Typed(Payload),
    /// Behind a pointer, because few packets are of this kind and it would make the others longer.
    Carrying(Box<Carrying>),
}

/// A TCP segment with its bytes.
pub(super) struct Carrying {
    /// [`Payload::Tcp`].
    pub(super) payload: Payload,
    pub(super) body: Body,
}
