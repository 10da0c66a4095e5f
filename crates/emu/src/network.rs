//! The description of a network to emulate: hosts, routers, links with their paths, routes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use farhaul_netem::{PathSpec, Routes};
use farhaul_units::Rng;

/// Most hosts. Each is a namespace and a device.
pub const MAX_HOSTS: usize = 1_000;

/// Default size of the largest packet, in bytes: that of Ethernet.
pub const DEFAULT_MTU: u32 = 1_500;

/// A host or a router.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub(crate) usize);

/// A link in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub(crate) usize);

/// A host: a separate network on this machine with one interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(pub(crate) u32);

/// A network to emulate.
///
/// ```
/// use farhaul_emu::NetworkSpec;
/// use farhaul_netem::PathSpec;
/// use farhaul_units::{Duration, Rate};
///
/// // Two senders share a bottleneck of 100 Mbit/s; one of them is 20 ms farther away.
/// let mut network = NetworkSpec::new(1);
/// let (near, far) = (network.router(), network.router());
/// let bottleneck = PathSpec { rate: Some(Rate::from_megabits_per_second(100)), ..PathSpec::default() };
/// network.duplex(near, far, &bottleneck);
/// let access = |delay| PathSpec { delay: Duration::from_millis(delay), ..PathSpec::default() };
/// let [first, second, receiver] = [(near, 0), (near, 20), (far, 0)].map(|(router, delay)| {
///     let host = network.host();
///     network.duplex(network.node(host), router, &access(delay));
///     host
/// });
/// assert_ne!(network.ipv4(first), network.ipv4(second));
/// assert_eq!(network.ipv4(receiver).to_string(), "10.77.0.3");
/// ```
#[derive(Clone, Debug)]
pub struct NetworkSpec {
    /// The host at each node.
    nodes: Vec<Option<HostId>>,
    hosts: Vec<HostSpec>,
    pub(crate) links: Vec<LinkSpec>,
    /// Routes that differ from the shortest path: (node, destination, link).
    detours: Vec<(NodeId, NodeId, LinkId)>,
    seeds: Rng,
}

/// Properties of a host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostSpec {
    pub(crate) node: NodeId,
    pub(crate) mtu: u32,
}

/// A link and its path model.
#[derive(Clone, Debug)]
pub(crate) struct LinkSpec {
    pub(crate) from: NodeId,
    pub(crate) to: NodeId,
    pub(crate) path: PathSpec,
}

impl NetworkSpec {
    /// An empty network. `seed` determines the random draws of its links.
    pub fn new(seed: u64) -> Self {
        Self { nodes: Vec::new(), hosts: Vec::new(), links: Vec::new(), detours: Vec::new(), seeds: Rng::new(seed) }
    }

    /// Two hosts and one path between them, `up` from the first to the second and `down` back. The paths keep their
    /// seeds.
    pub fn pair(up: &PathSpec, down: &PathSpec, mtu: u32) -> (Self, [HostId; 2]) {
        let mut network = Self::new(0);
        let hosts = [network.host_of(mtu), network.host_of(mtu)];
        let [near, far] = hosts.map(|host| network.node(host));
        network.links.push(LinkSpec { from: near, to: far, path: up.clone() });
        network.links.push(LinkSpec { from: far, to: near, path: down.clone() });
        (network, hosts)
    }

    /// Adds a host.
    pub fn host(&mut self) -> HostId {
        self.host_of(DEFAULT_MTU)
    }

    /// Adds a host whose packets have at most `mtu` bytes.
    pub fn host_of(&mut self, mtu: u32) -> HostId {
        let host = HostId(self.hosts.len() as u32);
        self.hosts.push(HostSpec { node: NodeId(self.nodes.len()), mtu });
        self.nodes.push(Some(host));
        host
    }

    /// Adds a router.
    pub fn router(&mut self) -> NodeId {
        self.nodes.push(None);
        NodeId(self.nodes.len() - 1)
    }

    /// The node of a host.
    pub fn node(&self, host: HostId) -> NodeId {
        self.hosts[host.0 as usize].node
    }

    /// Adds a link in one direction. Its seed is replaced, so that no two links have the same losses.
    pub fn simplex(&mut self, from: NodeId, to: NodeId, path: &PathSpec) -> LinkId {
        let path = PathSpec { seed: self.seeds.next_u64(), ..path.clone() };
        self.links.push(LinkSpec { from, to, path });
        LinkId(self.links.len() - 1)
    }

    /// Adds two links, one in each direction.
    pub fn duplex(&mut self, from: NodeId, to: NodeId, path: &PathSpec) -> [LinkId; 2] {
        [self.simplex(from, to, path), self.simplex(to, from, path)]
    }

    /// Sends packets for `destination` from `node` over `link`, instead of the shortest path.
    pub fn route(&mut self, node: NodeId, destination: NodeId, link: LinkId) {
        self.detours.push((node, destination, link));
    }

    /// A host's IPv4 address. The first host has 10.77.0.1, the second 10.77.0.2 and so on.
    pub fn ipv4(&self, host: HostId) -> Ipv4Addr {
        let [.., high, low] = (host.0 + 1).to_be_bytes();
        Ipv4Addr::new(10, 77, high, low)
    }

    /// A host's IPv6 address. The first host has fd77::1, the second fd77::2 and so on.
    pub fn ipv6(&self, host: HostId) -> Ipv6Addr {
        Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, host.0 as u16 + 1)
    }

    /// The host with this address.
    pub(crate) fn host_at(&self, address: IpAddr) -> Option<HostId> {
        let number = match address {
            IpAddr::V4(address) => match address.octets() {
                [10, 77, high, low] => u32::from(u16::from_be_bytes([high, low])),
                _ => return None,
            },
            IpAddr::V6(address) => match address.segments() {
                [0xfd77, 0, 0, 0, 0, 0, 0, number] => u32::from(number),
                _ => return None,
            },
        };
        let host = HostId(number.checked_sub(1)?);
        (host.0 < self.hosts.len() as u32).then_some(host)
    }

    pub(crate) fn hosts(&self) -> impl ExactSizeIterator<Item = (HostId, &HostSpec)> {
        self.hosts.iter().enumerate().map(|(index, host)| (HostId(index as u32), host))
    }

    pub(crate) fn host_on(&self, node: NodeId) -> Option<HostId> {
        self.nodes[node.0]
    }

    pub(crate) fn routes(&self) -> Routes {
        let links: Vec<_> = self.links.iter().map(|link| (link.from.0, link.to.0)).collect();
        let mut routes = Routes::shortest(self.nodes.len(), &links);
        self.detours.iter().for_each(|(node, destination, link)| routes.detour(node.0, destination.0, link.0));
        routes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_found_by_both_their_addresses() {
        let mut network = NetworkSpec::new(1);
        let hosts: Vec<_> = (0..300).map(|_| network.host()).collect();
        for host in hosts {
            assert_eq!(network.host_at(network.ipv4(host).into()), Some(host));
            assert_eq!(network.host_at(network.ipv6(host).into()), Some(host));
        }
        for stranger in ["10.77.0.0", "10.77.1.45", "10.78.0.1", "fd77::", "fd77::12d", "ff02::2", "127.0.0.1"] {
            assert_eq!(network.host_at(stranger.parse().unwrap()), None, "{stranger}");
        }
    }
}
