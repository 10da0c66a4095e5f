//! Links and the static routes over them.

use core::net::SocketAddr;
use std::collections::BTreeMap;
use std::rc::Rc;

use farhaul_netem::{Counters, Element, Routes, Tally, WireLen};
use farhaul_proto::Batch;
use farhaul_units::Instant;

use crate::packet::content::{AgentId, Destination, Ends, FlowId};
use crate::packet::segment::Segment;
use crate::packet::{Payload, Pool, PooledPacket, Share};
use crate::trace::{OutgoingDatagram, Tap, TapAction, TraceHash};

/// A place where links begin and end.
pub type NodeId = usize;

/// A link's index, in the order of creation.
pub type LinkId = usize;

/// One direction of a path: any netem model.
pub(crate) type BoxedElement = Box<dyn Element<PooledPacket>>;

/// Sees every packet that leaves or reaches an agent.
pub type Capture = Box<dyn FnMut(Instant, Passing, &PooledPacket)>;

/// Where a [`Capture`] sees a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passing {
    /// The packet leaves this agent.
    Sent(AgentId),
    /// The packet reached this agent.
    Delivered(AgentId),
}

/// Traffic of one flow that has left a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowTally {
    /// Data sent for the first time.
    pub new: Tally,
    /// Retransmitted data.
    pub repeated: Tally,
    /// Acknowledgements, loss reports, handshakes.
    pub control: Tally,
    /// TCP segments of the channels of a transport, their acknowledgements included.
    pub channel: Tally,
}

impl FlowTally {
    fn add(&mut self, packet: &PooledPacket) {
        let tally = match packet.share() {
            Share::New => &mut self.new,
            Share::Repeated => &mut self.repeated,
            Share::Control => &mut self.control,
            Share::Channel => &mut self.channel,
        };
        tally.add(packet.wire_len());
    }
}

/// Traffic that has left a link, for each flow from the first to the last that was seen. The link of a host has one flow,
/// however many there are.
#[derive(Default)]
struct FlowTallies {
    first: FlowId,
    tallies: Vec<FlowTally>,
}

impl FlowTallies {
    fn add(&mut self, packet: &PooledPacket) {
        let flow = packet.flow();
        if let [only] = &mut self.tallies[..]
            && flow == self.first
        {
            // The place does not depend on the packet, so the processor loads it while it waits for the flow.
            return only.add(packet);
        }
        if self.tallies.is_empty() {
            self.first = flow;
        }
        if flow < self.first {
            self.tallies.splice(..0, core::iter::repeat_n(FlowTally::default(), self.first - flow));
            self.first = flow;
        }
        let index = flow - self.first;
        if index >= self.tallies.len() {
            self.tallies.resize(index + 1, FlowTally::default());
        }
        self.tallies[index].add(packet);
    }

    fn get(&self, flow: FlowId) -> FlowTally {
        let index = flow.checked_sub(self.first);
        index.and_then(|index| self.tallies.get(index)).copied().unwrap_or_default()
    }
}

struct SimLink {
    element: BoxedElement,
    to: NodeId,
    /// Whether the link is listed in `touched`.
    touched: bool,
    flows: FlowTallies,
}

/// The address and node of an agent, and its peers.
struct AgentPlace {
    address: SocketAddr,
    node: NodeId,
    flow: FlowId,
    /// The ends of its last packet. Usually the next packet has the same.
    last: Option<Rc<Ends>>,
    /// The ends of packets to other agents.
    peers: BTreeMap<SocketAddr, Rc<Ends>>,
}

/// Counters of the network, in addition to those of its links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkCounters {
    /// Packets to an unknown address or without a route.
    pub unroutable: u64,
    /// Datagrams dropped by a tap.
    pub tapped: u64,
    /// Damaged packets caught by the receiving host's checksum.
    pub checksum_failures: u64,
    /// Packets that left a link, counted per link: the unit of a simulator's speed.
    pub packet_hops: u64,
}

/// Nodes, links, routes, and the packets in flight.
pub(crate) struct Network {
    links: Vec<SimLink>,
    routes: Routes,
    places: Vec<AgentPlace>,
    agents: BTreeMap<SocketAddr, AgentId>,
    pub(crate) pool: Pool,
    /// Memory for the datagrams of an agent's transport. All share it, so it stays in the cache.
    pub(crate) batch: Batch,
    pub(crate) tap: Option<Tap>,
    pub(crate) capture: Option<Capture>,
    forged: Vec<(SocketAddr, SocketAddr, Vec<u8>)>,
    /// Links whose next event may have changed.
    touched: Vec<LinkId>,
    pub(crate) counters: NetworkCounters,
    pub(crate) trace: TraceHash,
}

/// The position of a packet that left a link.
pub(crate) enum LinkOutcome {
    /// At its destination.
    Agent(AgentId, PooledPacket),
    /// On another link, or dropped for want of a route.
    Forwarded,
}

impl Network {
    /// A network without links and agents yet. `routes` names the links by the order in which they will come.
    pub(crate) fn new(routes: Routes) -> Self {
        Self {
            links: Vec::new(),
            routes,
            places: Vec::new(),
            agents: BTreeMap::new(),
            pool: Pool::new(),
            batch: Batch::new(),
            tap: None,
            capture: None,
            forged: Vec::new(),
            touched: Vec::new(),
            counters: NetworkCounters::default(),
            trace: TraceHash::new(),
        }
    }

    /// Adds an agent at `node` with `address`.
    pub(crate) fn add_place(&mut self, address: SocketAddr, node: NodeId, flow: FlowId) -> AgentId {
        self.agents.insert(address, self.places.len());
        self.places.push(AgentPlace { address, node, flow, last: None, peers: BTreeMap::new() });
        self.places.len() - 1
    }

    pub(crate) fn add_link(&mut self, element: BoxedElement, to: NodeId) -> LinkId {
        self.links.push(SimLink { element, to, touched: false, flows: FlowTallies::default() });
        self.links.len() - 1
    }

    pub(crate) fn address(&self, agent: AgentId) -> SocketAddr {
        self.places[agent].address
    }

    /// Sends a datagram from an agent.
    pub(crate) fn send_datagram(&mut self, now: Instant, agent: AgentId, to: SocketAddr, bytes: &[u8], share: Share) {
        self.trace.record(now, agent as u64, bytes.len(), bytes);
        let ends = self.ends(agent, to);
        let packet = self.pool.datagram(ends, bytes, share);
        self.depart(now, agent, packet);
    }

    /// Sends a packet without content from an agent; `wire_len` is its length on a link.
    pub(crate) fn send_typed(
        &mut self,
        now: Instant,
        agent: AgentId,
        to: SocketAddr,
        (payload, wire_len): (Payload, u32),
        share: Share,
    ) {
        self.trace.record_payload(now, agent as u64, &payload, wire_len);
        let ends = self.ends(agent, to);
        let packet = self.pool.typed(ends, payload, wire_len, share);
        self.depart(now, agent, packet);
    }

    /// Sends a TCP segment that carries these bytes from an agent.
    pub(crate) fn send_segment(
        &mut self,
        now: Instant,
        agent: AgentId,
        to: SocketAddr,
        (segment, bytes): (Segment, &[u8]),
        share: Share,
    ) {
        let ends = self.ends(agent, to);
        let packet = self.pool.segment(ends, segment, bytes, share);
        self.trace.record_packet(now, agent as u64, &packet);
        self.depart(now, agent, packet);
    }

    fn depart(&mut self, now: Instant, agent: AgentId, mut packet: PooledPacket) {
        let node = self.places[agent].node;
        if let Some(capture) = &mut self.capture {
            capture(now, Passing::Sent(agent), &packet);
        }
        if self.tap.is_none() {
            return self.forward(now, node, packet);
        }
        if self.passes_tap(now, &mut packet) {
            packet.measure();
            self.forward(now, node, packet);
        }
        while let Some((from, to, bytes)) = self.forged.pop() {
            let ends = Ends { from, to, destination: self.destination(to), flow: 0 };
            let packet = self.pool.datagram(Rc::new(ends), &bytes, Share::Control);
            self.forward(now, node, packet);
        }
    }

    /// The ends of a packet from `agent` to `to`.
    fn ends(&mut self, agent: AgentId, to: SocketAddr) -> Rc<Ends> {
        if let Some(ends) = self.places[agent].last.as_ref().filter(|ends| ends.to == to) {
            return Rc::clone(ends);
        }
        let destination = self.destination(to);
        let AgentPlace { address, flow, last, peers, .. } = &mut self.places[agent];
        let make = || Rc::new(Ends { from: *address, to, destination, flow: *flow });
        let ends = match destination {
            Some(_) => Rc::clone(peers.entry(to).or_insert_with(make)),
            None => make(),
        };
        *last = Some(Rc::clone(&ends));
        ends
    }

    /// The agent at an address.
    fn destination(&self, address: SocketAddr) -> Option<Destination> {
        let agent = *self.agents.get(&address)?;
        Some(Destination { agent, node: self.places[agent].node })
    }

    /// Shows a datagram to the tap. Returns `false` if the tap drops it.
    fn passes_tap(&mut self, now: Instant, packet: &mut PooledPacket) -> bool {
        let (from, to) = (packet.from(), packet.to());
        let (Some(tap), Some(bytes)) = (&mut self.tap, packet.bytes_mut()) else { return true };
        let action = tap(&mut OutgoingDatagram { now, from, to, bytes, forged: &mut self.forged });
        self.forged.reverse();
        self.counters.tapped += u64::from(action == TapAction::Drop);
        action == TapAction::Pass
    }

    /// Puts a packet at `node` on the link towards its destination.
    fn forward(&mut self, now: Instant, node: NodeId, packet: PooledPacket) {
        let Some(link) = packet.destination().and_then(|destination| self.routes.next(node, destination.node)) else {
            self.counters.unroutable += 1;
            return;
        };
        self.links[link].element.push(now, packet);
        self.touch(link);
    }

    /// Takes the next packet that has left `link` by `now`.
    pub(crate) fn take(&mut self, now: Instant, link: LinkId) -> Option<LinkOutcome> {
        self.touch(link);
        let SimLink { element, to, flows, .. } = &mut self.links[link];
        let packet = element.pop(now)?;
        let node = *to;
        self.counters.packet_hops += 1;
        flows.add(&packet);
        match packet.destination() {
            Some(Destination { agent, node: its }) if its == node => {
                self.trace.record_packet(now, (self.places.len() + agent) as u64, &packet);
                if let Some(capture) = &mut self.capture {
                    capture(now, Passing::Delivered(agent), &packet);
                }
                Some(LinkOutcome::Agent(agent, packet))
            }
            _ => {
                self.forward(now, node, packet);
                Some(LinkOutcome::Forwarded)
            }
        }
    }

    fn touch(&mut self, link: LinkId) {
        if !core::mem::replace(&mut self.links[link].touched, true) {
            self.touched.push(link);
        }
    }

    /// A link that was pushed to or popped from, with its next event. Returns each link once.
    pub(crate) fn take_touched(&mut self) -> Option<(LinkId, Option<Instant>)> {
        let link = self.touched.pop()?;
        self.links[link].touched = false;
        Some((link, self.next_event(link)))
    }

    /// When the next packet may leave a link.
    pub(crate) fn next_event(&self, link: LinkId) -> Option<Instant> {
        self.links[link].element.next_event()
    }

    pub(crate) fn links(&self) -> usize {
        self.links.len()
    }

    /// Counters of a link at `now`.
    pub(crate) fn link_counters(&mut self, now: Instant, link: LinkId) -> Counters {
        self.links[link].element.advance(now);
        self.touch(link);
        self.links[link].element.counters()
    }

    /// Traffic of one flow that has left a link.
    pub(crate) fn flow_tally(&self, link: LinkId, flow: FlowId) -> FlowTally {
        self.links[link].flows.get(flow)
    }
}
