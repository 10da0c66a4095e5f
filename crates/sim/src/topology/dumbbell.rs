//! Pairs of hosts that share one bottleneck, for competing flows.
//!
//! ```text
//!   caller 0 ──┐                               ┌── listener 0
//!   caller 1 ──┤ left ═══ bottleneck ═══ right ├── listener 1
//!   caller 2 ──┘                               └── listener 2
//! ```

use core::net::SocketAddr;

use farhaul_netem::PathSpec;
use farhaul_proto::{Channels, Streams};
use farhaul_units::{Instant, Rng};

use crate::network::NodeId;
use crate::simulation::Simulation;
use crate::topology::graph::Graph;
use crate::traffic::{Traffic, Workload};

/// The bottleneck from left to right.
pub const RIGHTWARDS: usize = 0;
/// The bottleneck from right to left.
pub const LEFTWARDS: usize = 1;

/// The UDP port of all hosts.
const PORT: u16 = 9_000;

/// The host that opens the connections of a pair.
pub const fn caller(pair: usize) -> NodeId {
    2 * pair
}

/// The host that accepts the connections of a pair.
pub const fn listener(pair: usize) -> NodeId {
    2 * pair + 1
}

/// Two hosts, one on each side of the bottleneck.
pub struct Flank<T> {
    /// The transport on the left, which opens one connection.
    pub caller: T,
    /// The transport on the right, which accepts it.
    pub listener: T,
    /// The path of each host to its side of the bottleneck, and back.
    pub access: PathSpec,
    /// The workload of the caller.
    pub workload: Workload,
    /// When the caller begins.
    pub begins: Instant,
}

/// Describes a simulation of hosts that share a bottleneck.
pub struct Dumbbell<T> {
    bottleneck: PathSpec,
    flanks: Vec<Flank<T>>,
    seed: u64,
}

impl<T: Streams + Channels> Dumbbell<T> {
    /// A dumbbell without hosts. The bottleneck is the same in both directions.
    pub fn new(bottleneck: PathSpec) -> Self {
        Self { bottleneck, flanks: Vec::new(), seed: 0 }
    }

    /// Adds a pair of hosts.
    #[must_use]
    pub fn pair(mut self, flank: Flank<T>) -> Self {
        self.flanks.push(flank);
        self
    }

    /// Seeds the data and all random draws of the paths (the paths' own seeds are replaced).
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Builds the simulation at instant zero.
    pub fn start(self) -> Simulation<T> {
        let hosts = 2 * self.flanks.len();
        let [left, right] = [hosts, hosts + 1];
        let mut graph = Graph::new(hosts + 2);
        graph.duplex(left, right, &self.bottleneck);
        for (host, flank) in self.flanks.iter().flat_map(|flank| [flank; 2]).enumerate() {
            graph.place(address(host), host, host / 2);
            graph.duplex(host, if host % 2 == 0 { left } else { right }, &flank.access);
        }
        let mut rng = Rng::new(self.seed);
        let network = graph.network(&mut rng);
        let hosts = self.flanks.into_iter().enumerate().flat_map(|(pair, flank)| {
            let calling = Traffic::new(flank.workload, rng.next_u64()).calling(flank.begins, address(listener(pair)));
            [(flank.caller, calling), (flank.listener, Traffic::new(Workload::default(), rng.next_u64()))]
        });
        Simulation::of_hosts(network, hosts)
    }
}

/// Hosts of pair `n` are 10.0.n.1 and 10.0.n.2, and from pair 256 on in 10.1.
fn address(host: NodeId) -> SocketAddr {
    let pair = host / 2;
    SocketAddr::from(([10, (pair >> 8) as u8, pair as u8, (host % 2) as u8 + 1], PORT))
}
