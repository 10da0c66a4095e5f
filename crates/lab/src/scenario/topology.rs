//! Nodes, links and the places of flows: from `[link]` and `[access]`, or from `[[links]]`.

mod dumbbell;
mod named;

use farhaul_netem::PathSpec;
use farhaul_sim::topology::graph::Graph;
use farhaul_units::Duration;

use super::flow::FlowSpec;
use super::reader::Section;
use crate::error::ScenarioError;

/// A network, ready to be built.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Topology {
    /// The number of nodes.
    pub(crate) nodes: usize,
    /// The links, in the order of the simulator's numbers.
    pub(crate) links: Vec<Link>,
    /// Routes that differ from the shortest path: at a node, towards another, by a link.
    pub(crate) routes: Vec<(usize, usize, usize)>,
    /// The link with the measurements of utilisation and queue.
    pub(crate) bottleneck: usize,
    /// The nodes where each flow begins and ends.
    pub(crate) places: Vec<(usize, usize)>,
}

/// One direction of a link.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Link {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) path: PathSpec,
}

impl Topology {
    /// Parses the network from a scenario.
    pub(crate) fn read(root: &mut Section<'_>, flows: &[FlowSpec]) -> Result<Self, ScenarioError> {
        match (root.get("link"), root.get("links")) {
            (Some(_), Some(links)) => Err(root.source().error(links, "a scenario has either [link] or [[links]]")),
            (None, None) => Err(root.error("a scenario needs a [link] with `rate` and `rtt`, or [[links]] with nodes")),
            (Some(_), None) => dumbbell::read(root, flows),
            (None, Some(_)) => named::read(root, flows),
        }
    }

    pub(super) fn bottleneck_path(&self) -> &PathSpec {
        &self.links[self.bottleneck].path
    }

    /// The network without agents.
    pub(crate) fn graph(&self) -> Graph {
        let mut graph = Graph::new(self.nodes);
        for link in &self.links {
            graph.simplex(link.from, link.to, &link.path);
        }
        for &(node, destination, link) in &self.routes {
            graph.route(node, destination, link);
        }
        graph
    }

    /// The propagation delay from one node to another and back.
    pub(crate) fn round_trip(&self, graph: &Graph, (from, to): (usize, usize)) -> Option<Duration> {
        let one_way = |links: Vec<usize>| links.into_iter().map(|link| self.links[link].path.delay).sum::<Duration>();
        Some(one_way(graph.links_between(from, to)?) + one_way(graph.links_between(to, from)?))
    }
}

/// Whether `[[links]]` name the nodes. Flows then need the names.
pub(crate) fn has_named_nodes(root: &mut Section<'_>) -> bool {
    root.get("links").is_some()
}
