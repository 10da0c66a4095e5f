//! Links and the static routes over them.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use farhaul_netem::{Counters, Element};
use farhaul_units::Instant;

use crate::packet::{Pool, PooledPacket};
use crate::trace::{Departing, Tap, TraceHash, Verdict};

/// A place where links begin and end. Nodes below the number of hosts are hosts; the rest are routers.
pub type NodeId = usize;

/// A link's index, in the order in which links were added.
pub type LinkId = usize;

/// A direction of the path: any netem model of it.
pub(crate) type BoxedElement = Box<dyn Element<PooledPacket>>;

struct SimLink {
    element: BoxedElement,
    to: NodeId,
}

/// What the network did beside what its links count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkCounters {
    /// Datagrams to an address that no host has.
    pub unroutable: u64,
    /// Datagrams that a tap dropped.
    pub tapped: u64,
    /// Damaged datagrams that the receiving host's UDP checksum caught.
    pub checksum_failures: u64,
}

/// Nodes, links, routes, and the packets on them.
pub(crate) struct Network {
    links: Vec<SimLink>,
    /// `routes[node][host]`: the link that leads from the node towards the host.
    routes: Vec<Vec<Option<LinkId>>>,
    /// Whose address it is: `addresses[host]`.
    addresses: Vec<SocketAddr>,
    hosts: BTreeMap<SocketAddr, NodeId>,
    pool: Pool,
    tap: Option<Tap>,
    forged: Vec<(SocketAddr, SocketAddr, Vec<u8>)>,
    /// Links whose next event may have changed.
    touched: Vec<LinkId>,
    pub(crate) counters: NetworkCounters,
    pub(crate) trace: TraceHash,
}

/// Where a packet that left a link is now.
pub(crate) enum Arrival {
    /// At the host that it is for.
    Host(NodeId, PooledPacket),
    /// On another link.
    Forwarded,
}

impl Network {
    pub(crate) fn new(nodes: usize, addresses: Vec<SocketAddr>) -> Self {
        Self {
            links: Vec::new(),
            routes: vec![vec![None; addresses.len()]; nodes],
            hosts: addresses.iter().copied().zip(0..).collect(),
            addresses,
            pool: Pool::new(),
            tap: None,
            forged: Vec::new(),
            touched: Vec::new(),
            counters: NetworkCounters::default(),
            trace: TraceHash::new(),
        }
    }

    pub(crate) fn address(&self, host: NodeId) -> SocketAddr {
        self.addresses[host]
    }

    pub(crate) fn add_link(&mut self, element: BoxedElement, to: NodeId) -> LinkId {
        self.links.push(SimLink { element, to });
        self.links.len() - 1
    }

    pub(crate) fn add_route(&mut self, node: NodeId, host: NodeId, link: LinkId) {
        self.routes[node][host] = Some(link);
    }

    pub(crate) fn set_tap(&mut self, tap: Option<Tap>) {
        self.tap = tap;
    }

    pub(crate) fn pool(&self) -> &Pool {
        &self.pool
    }

    /// A host sends a datagram.
    pub(crate) fn send(&mut self, now: Instant, node: NodeId, to: SocketAddr, bytes: &[u8]) {
        self.trace.record(now, node as u64, bytes);
        let mut packet = self.pool.packet(self.addresses[node], to, bytes);
        if self.passes_tap(now, &mut packet) {
            self.forward(now, node, packet);
        }
        while let Some((from, to, bytes)) = self.forged.pop() {
            let packet = self.pool.packet(from, to, &bytes);
            self.forward(now, node, packet);
        }
    }

    fn passes_tap(&mut self, now: Instant, packet: &mut PooledPacket) -> bool {
        let Some(tap) = &mut self.tap else { return true };
        let (from, to) = (packet.from(), packet.to());
        let verdict = tap(&mut Departing { now, from, to, bytes: packet.bytes_mut(), forged: &mut self.forged });
        self.forged.reverse();
        self.counters.tapped += u64::from(verdict == Verdict::Drop);
        verdict == Verdict::Pass
    }

    /// Puts a packet that is at `node` on the link towards its destination.
    fn forward(&mut self, now: Instant, node: NodeId, packet: PooledPacket) {
        let host = self.hosts.get(&packet.to());
        let Some(link) = host.and_then(|&host| self.routes[node][host]) else {
            self.counters.unroutable += 1;
            return;
        };
        self.links[link].element.push(now, packet);
        self.touch(link);
    }

    /// Takes the next packet that has left `link` by `now`.
    pub(crate) fn take(&mut self, now: Instant, link: LinkId) -> Option<Arrival> {
        self.touch(link);
        let packet = self.links[link].element.pop(now)?;
        let node = self.links[link].to;
        if node >= self.addresses.len() || self.addresses[node] != packet.to() {
            self.forward(now, node, packet);
            return Some(Arrival::Forwarded);
        }
        self.trace.record(now, (self.addresses.len() + node) as u64, packet.bytes());
        Some(Arrival::Host(node, packet))
    }

    fn touch(&mut self, link: LinkId) {
        if !self.touched.contains(&link) {
            self.touched.push(link);
        }
    }

    /// A link that was pushed to or popped from, and its next event; each once.
    pub(crate) fn take_touched(&mut self) -> Option<(LinkId, Option<Instant>)> {
        let link = self.touched.pop()?;
        Some((link, self.links[link].element.next_event()))
    }

    pub(crate) fn links(&self) -> usize {
        self.links.len()
    }

    /// What a link has done up to `now`.
    pub(crate) fn link_counters(&mut self, now: Instant, link: LinkId) -> Counters {
        self.links[link].element.advance(now);
        self.touch(link);
        self.links[link].element.counters()
    }
}
