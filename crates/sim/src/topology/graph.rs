//! Any network: nodes, simplex and duplex links, static routes, agents.
//!
//! ```
//! use farhaul_netem::PathSpec;
//! use farhaul_sim::agent::source::{Sink, Source, Timing};
//! use farhaul_sim::topology::graph::Graph;
//! use farhaul_units::{Duration, Instant, Rate};
//!
//! // Two hosts, a router between them, and ten seconds of 36 Mbit/s from one to the other.
//! let (left, router, right) = (0, 1, 2);
//! let access = PathSpec { rate: Some(Rate::from_megabits_per_second(1_000)), ..PathSpec::default() };
//! let bottleneck = PathSpec { rate: Some(Rate::from_megabits_per_second(50)), ..access.clone() };
//! let mut graph = Graph::new(3);
//! graph.duplex(left, router, &access);
//! let [towards, _back] = graph.duplex(router, right, &bottleneck);
//! let sink = graph.address(right, 9);
//! let rate = Rate::from_megabits_per_second(36);
//! let (begin, end) = (Instant::ZERO, Instant::ZERO + Duration::from_secs(10));
//! let source = Source::new(sink, rate, Timing::Even { begin, end }, 1);
//! let flow = graph.next_flow();
//! graph.add(left, 9, flow, Box::new(source));
//! graph.add(right, 9, flow, Box::new(Sink::new()));
//! let mut world = graph.start(7);
//! world.run_for(Duration::from_secs(11));
//! assert_eq!(world.flow_tally(towards, flow).new.bytes, 45_000_000);
//! ```

use core::net::SocketAddr;

use farhaul_netem::{Element, PathSpec, Routes};
use farhaul_units::Rng;

use crate::agent::Agent;
use crate::network::{BoxedElement, LinkId, Network, NodeId};
use crate::packet::PooledPacket;
use crate::packet::content::FlowId;
use crate::world::World;

/// Nodes below this number have an address in 10.0.0.0/8.
const MAX_NODES: usize = (1 << 24) - 2;

/// A link: its ends and its model.
struct Edge {
    from: NodeId,
    to: NodeId,
    model: Model,
}

enum Model {
    /// Built when the network starts, with its own seed.
    Spec(Box<PathSpec>),
    /// Built by the caller.
    Made(BoxedElement),
}

/// Describes a network of nodes, links, routes and agents.
#[derive(Default)]
pub struct Graph {
    nodes: usize,
    edges: Vec<Edge>,
    /// Routes that differ from the shortest path: (node, destination, link).
    detours: Vec<(NodeId, NodeId, LinkId)>,
    /// Addresses of agents, with their nodes and flows.
    places: Vec<(SocketAddr, NodeId, FlowId)>,
    agents: Vec<Box<dyn Agent>>,
    flows: usize,
}

impl Graph {
    /// A network of `nodes` nodes, numbered from zero, without links.
    ///
    /// # Panics
    /// If 10.0.0.0/8 has too few addresses.
    pub fn new(nodes: usize) -> Self {
        assert!(nodes <= MAX_NODES, "at most {MAX_NODES} nodes");
        Self { nodes, ..Self::default() }
    }

    /// Adds a node.
    pub fn add_node(&mut self) -> NodeId {
        self.nodes += 1;
        self.nodes - 1
    }

    /// Adds a link in one direction. Its seed is replaced when the network starts, so that no two links have the same
    /// losses.
    pub fn simplex(&mut self, from: NodeId, to: NodeId, spec: &PathSpec) -> LinkId {
        self.edge(from, to, Model::Spec(Box::new(spec.clone())))
    }

    /// Adds two links, one in each direction.
    pub fn duplex(&mut self, from: NodeId, to: NodeId, spec: &PathSpec) -> [LinkId; 2] {
        [self.simplex(from, to, spec), self.simplex(to, from, spec)]
    }

    /// Adds a link with a custom model, in one direction.
    pub fn element(&mut self, from: NodeId, to: NodeId, element: impl Element<PooledPacket> + 'static) -> LinkId {
        self.edge(from, to, Model::Made(Box::new(element)))
    }

    fn edge(&mut self, from: NodeId, to: NodeId, model: Model) -> LinkId {
        assert!(from < self.nodes && to < self.nodes && from != to, "a link joins two nodes of the network");
        self.edges.push(Edge { from, to, model });
        self.edges.len() - 1
    }

    /// Sends packets for `destination` from `node` over `link`, instead of the shortest path.
    pub fn route(&mut self, node: NodeId, destination: NodeId, link: LinkId) {
        assert_eq!(self.edges[link].from, node, "a route takes a link that begins at its node");
        self.detours.push((node, destination, link));
    }

    /// The address of a port of a node. Node 0 is 10.0.0.1, node 1 is 10.0.0.2 and so on.
    pub fn address(&self, node: NodeId, port: u16) -> SocketAddr {
        let [_, high, middle, low] = u32::try_from(node + 1).unwrap_or(u32::MAX).to_be_bytes();
        SocketAddr::from(([10, high, middle, low], port))
    }

    /// The index of a new flow.
    pub fn next_flow(&mut self) -> FlowId {
        self.flows += 1;
        self.flows - 1
    }

    /// Adds an agent at a port of a node.
    pub fn add(&mut self, node: NodeId, port: u16, flow: FlowId, agent: Box<dyn Agent>) {
        self.place(self.address(node, port), node, flow);
        self.agents.push(agent);
    }

    /// Adds the address of an agent at `node`.
    pub(crate) fn place(&mut self, address: SocketAddr, node: NodeId, flow: FlowId) {
        self.places.push((address, node, flow));
    }

    /// The links of the route between two nodes; `None` if there is no route.
    pub fn links_between(&self, from: NodeId, to: NodeId) -> Option<Vec<LinkId>> {
        self.routes().links_between(from, to)
    }

    fn routes(&self) -> Routes {
        let links: Vec<(NodeId, NodeId)> = self.edges.iter().map(|edge| (edge.from, edge.to)).collect();
        let mut routes = Routes::shortest(self.nodes, &links);
        self.detours.iter().for_each(|&(node, destination, link)| routes.detour(node, destination, link));
        routes
    }

    /// Builds the network at instant zero. `seed` determines all random draws.
    pub fn start(mut self, seed: u64) -> World<dyn Agent> {
        let network = self.network(&mut Rng::new(seed));
        World::new(network, self.agents)
    }

    /// The network at instant zero, without its agents. `rng` determines the random draws of the links.
    pub(crate) fn network(&mut self, rng: &mut Rng) -> Network {
        let mut network = Network::new(self.routes());
        for edge in self.edges.drain(..) {
            let seed = rng.next_u64();
            let element = match edge.model {
                Model::Spec(spec) => PathSpec { seed, ..*spec }.build_element(),
                Model::Made(element) => element,
            };
            network.add_link(element, edge.to);
        }
        for (address, node, flow) in self.places.drain(..) {
            network.add_place(address, node, flow);
        }
        network
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 0 - 1 - 2 - 3, and a simplex short cut from 0 to 3.
    fn chain() -> Graph {
        let mut graph = Graph::new(4);
        let spec = PathSpec::default();
        for node in 0..3 {
            graph.duplex(node, node + 1, &spec);
        }
        graph.simplex(0, 3, &spec);
        graph
    }

    #[test]
    fn a_detour_overrides_the_shortest_path() {
        let mut graph = chain();
        graph.route(0, 3, 0);
        assert_eq!(graph.links_between(0, 3), Some(vec![0, 2, 4]));
    }

    #[test]
    fn there_is_no_route_without_links() {
        let mut graph = Graph::new(3);
        graph.simplex(0, 1, &PathSpec::default());
        assert_eq!(
            (graph.links_between(1, 0), graph.links_between(0, 2), graph.links_between(2, 2)),
            (None, None, Some(vec![]))
        );
        assert!(graph.links_between(0, 1).is_some());
    }

    #[test]
    fn every_node_has_its_own_address() {
        let graph = Graph::new(70_000);
        assert_eq!(graph.address(0, 9).to_string(), "10.0.0.1:9");
        assert_eq!(graph.address(69_999, 9).to_string(), "10.1.17.112:9");
    }
}
