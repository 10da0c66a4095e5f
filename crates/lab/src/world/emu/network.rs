//! Converts a scenario's topology to the emulator's network.

use std::collections::BTreeSet;

use farhaul_emu::{HostId, LinkId, NetworkSpec};
use farhaul_netem::PathSpec;
use farhaul_units::Duration;

use crate::scenario::setup::Setup;

/// Shorter delays of links are left out, because the emulator itself takes about as long to forward a packet. While
/// packets flow, it polls its hosts every 75 to 100 µs. Runs report the RTT that results.
pub(super) const SHORTEST_DELAY: Duration = Duration::from_micros(100);

/// The network of a setup, and the places of its flows.
#[derive(Debug)]
pub(super) struct Network {
    pub(super) spec: NetworkSpec,
    pub(super) bottleneck: LinkId,
    /// The hosts where each flow begins and ends.
    pub(super) places: Vec<[HostId; 2]>,
    /// All hosts.
    pub(super) hosts: BTreeSet<HostId>,
    /// Whether each flow's data pass the bottleneck.
    pub(super) passes_bottleneck: Vec<bool>,
}

impl Network {
    /// Nodes where flows begin or end are hosts, and all others are routers. `seed` decides which packets links lose.
    pub(super) fn of(setup: &Setup, seed: u64) -> Self {
        let topology = &setup.topology;
        let mtu = setup.largest_packet().unwrap_or(farhaul_emu::DEFAULT_MTU);
        let mut spec = NetworkSpec::new(seed);
        let ends: BTreeSet<usize> = topology.places.iter().flat_map(|&(from, to)| [from, to]).collect();
        let mut hosts = vec![None; topology.nodes];
        let nodes: Vec<_> = (0..topology.nodes)
            .map(|node| {
                if !ends.contains(&node) {
                    return spec.router();
                }
                let host = spec.host_of(mtu);
                hosts[node] = Some(host);
                spec.node(host)
            })
            .collect();
        let links: Vec<LinkId> = topology
            .links
            .iter()
            .map(|link| spec.simplex(nodes[link.from], nodes[link.to], &real(&link.path)))
            .collect();
        for &(node, destination, link) in &topology.routes {
            spec.route(nodes[node], nodes[destination], links[link]);
        }
        let graph = topology.graph();
        let passes = |&(from, to): &(usize, usize)| {
            graph.links_between(from, to).is_some_and(|links| links.contains(&topology.bottleneck))
        };
        let place = |&(from, to): &(usize, usize)| Some([hosts[from]?, hosts[to]?]);
        Self {
            bottleneck: links[topology.bottleneck],
            places: topology.places.iter().filter_map(place).collect(),
            hosts: hosts.iter().copied().flatten().collect(),
            passes_bottleneck: topology.places.iter().map(passes).collect(),
            spec,
        }
    }
}

/// The link in real time.
fn real(path: &PathSpec) -> PathSpec {
    let delay = if path.delay < SHORTEST_DELAY { Duration::ZERO } else { path.delay };
    PathSpec { delay, ..path.clone() }
}
