//! Two hosts and a path between them, for most tests and measurements.
//!
//! ```text
//!              up: queue, rate, delay, loss, …
//!   caller ────────────────────────────────────▶ listener
//!   10.0.0.1 ◀──────────────────────────────────── 10.0.0.2
//!              down: the same in the other direction
//! ```

use core::net::SocketAddr;

use farhaul_netem::PathSpec;
use farhaul_proto::{Channels, Streams};
use farhaul_units::{Instant, Rng};

use crate::agent::transport::Application;
use crate::network::{Network, NodeId};
use crate::simulation::Simulation;
use crate::topology::graph::Graph;
use crate::traffic::{Traffic, Workload};

/// The host that opens connections.
pub const CALLER: NodeId = 0;
/// The host that accepts them.
pub const LISTENER: NodeId = 1;
/// The link from caller to listener.
pub const UP: usize = 0;
/// The link from listener to caller.
pub const DOWN: usize = 1;

/// The UDP port of both hosts.
const PORT: u16 = 9_000;

/// The address of a host of a [`Pair`].
pub fn address(host: NodeId) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host as u8 + 1], PORT))
}

/// Describes a simulation of two hosts.
///
/// ```
/// use farhaul_netem::PathSpec;
/// use farhaul_proto::{Config, Entropy, Mode, udt};
/// use farhaul_sim::{Workload, topology::path::{CALLER, LISTENER, Pair}};
/// use farhaul_units::{Duration, Rate};
///
/// let endpoint = |seed| udt::endpoint(Config::default(), Entropy { cookie_key: [0; 16], seed });
/// let mut listener = endpoint(2);
/// listener.listen(Mode::Stream).expect("UDT has streams");
/// let path = PathSpec {
///     rate: Some(Rate::from_megabits_per_second(100)),
///     delay: Duration::from_millis(10),
///     ..PathSpec::default()
/// };
/// let mut run = Pair::new(endpoint(1), listener).path(path).caller(Workload::send(1 << 20)).seed(7).start();
/// assert!(run.run_until_done(Duration::from_secs(60)));
/// assert!(run.missing(CALLER, LISTENER).is_empty());
/// ```
pub struct Pair<T> {
    transports: [T; 2],
    workloads: [Workload; 2],
    up: PathSpec,
    down: PathSpec,
    calls: Vec<Instant>,
    seed: u64,
}

impl<T: Streams + Channels> Pair<T> {
    /// Two transports; the second accepts connections. The caller opens one idle connection at instant zero over a
    /// perfect path.
    pub fn new(caller: T, listener: T) -> Self {
        Self {
            transports: [caller, listener],
            workloads: [Workload::default(); 2],
            up: PathSpec::default(),
            down: PathSpec::default(),
            calls: vec![Instant::ZERO],
            seed: 0,
        }
    }

    /// Sets the path of both directions.
    #[must_use]
    pub fn path(self, spec: PathSpec) -> Self {
        self.up(spec.clone()).down(spec)
    }

    /// Sets the path from caller to listener.
    #[must_use]
    pub fn up(mut self, spec: PathSpec) -> Self {
        self.up = spec;
        self
    }

    /// Sets the path from listener to caller.
    #[must_use]
    pub fn down(mut self, spec: PathSpec) -> Self {
        self.down = spec;
        self
    }

    /// Sets the caller's workload on each connection.
    #[must_use]
    pub fn caller(mut self, workload: Workload) -> Self {
        self.workloads[CALLER] = workload;
        self
    }

    /// Sets the listener's workload on each connection.
    #[must_use]
    pub fn listener(mut self, workload: Workload) -> Self {
        self.workloads[LISTENER] = workload;
        self
    }

    /// Opens one connection at each of these instants, instead of the one at zero. None for a test that gives its own
    /// commands.
    #[must_use]
    pub fn calls(mut self, at: impl IntoIterator<Item = Instant>) -> Self {
        self.calls = at.into_iter().collect();
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
        let mut rng = Rng::new(self.seed);
        let network = self.network(&mut rng);
        let [calling, answering] = self.workloads.map(|workload| Traffic::new(workload, rng.next_u64()));
        let calling = self.calls.iter().fold(calling, |traffic, &at| traffic.calling(at, address(LISTENER)));
        Simulation::of_hosts(network, self.transports.into_iter().zip([calling, answering]))
    }

    /// Builds the simulation with custom applications, instead of workloads and calls.
    pub fn start_with<A: Application<T>>(self, applications: [A; 2]) -> Simulation<T, A> {
        let network = self.network(&mut Rng::new(self.seed));
        Simulation::of_hosts(network, self.transports.into_iter().zip(applications))
    }

    fn network(&self, rng: &mut Rng) -> Network {
        let mut graph = Graph::new(2);
        graph.simplex(CALLER, LISTENER, &self.up);
        graph.simplex(LISTENER, CALLER, &self.down);
        [CALLER, LISTENER].into_iter().for_each(|host| graph.place(address(host), host, 0));
        graph.network(rng)
    }
}
