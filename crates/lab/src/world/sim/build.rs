//! Builds a world from a setup: links, and two agents for each flow.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use farhaul_proto::probe::{BlasterConfig, StableConfig};
use farhaul_proto::{Config, Endpoint, Entropy, Mode, controller_factory, udt};
use farhaul_sim::agent::bulk::{BulkReceiver, BulkSender};
use farhaul_sim::agent::late::{LateAgent, Lateness};
use farhaul_sim::agent::probe::{self, ProbeSink, ProbeSource};
use farhaul_sim::agent::shared::{SharedSink, SharedSource};
use farhaul_sim::agent::source::{Sink, Source};
use farhaul_sim::agent::tcp::{
    self, ReceiverConfig, Recovery, Remaining, RtoConfig, SenderConfig, TcpSink, TcpSource, TcpTransfers,
};
use farhaul_sim::host_cost;
use farhaul_sim::topology::graph::Graph;
use farhaul_sim::{Agent, AgentId, FlowId, LinkId, NodeId, TransportAgent, World};
use farhaul_units::{Duration, Instant, Rate, Rng};

use crate::scenario::flow::{Bulk, FlowSpec, Host, Measured, Point, Protocol, Tcp};
use crate::scenario::setup::Setup;
use crate::world::marks::FlowRow;

/// The port of the first flow; the others follow.
const FIRST_PORT: u16 = 9_000;
/// The longest connection attempt. A simulated path may have an RTT of seconds and lose every other packet.
const PATIENCE: Duration = Duration::from_secs(3_600);
/// The flow window of every endpoint in packets, so that it never limits: 24 Gbit/s at an RTT of one second.
const FLOW_WINDOW: u32 = 2_000_000;
/// The buffers of every endpoint in bytes, for the same reason. They take memory only as data needs it.
const BUFFER: u64 = 3 << 30;

/// A world, and the places of its flows.
pub(super) struct Built {
    pub(super) world: World<dyn Agent>,
    pub(super) flows: Vec<BuiltFlow>,
    pub(super) bottleneck: LinkId,
}

/// The agents of one flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct BuiltFlow {
    pub(super) sender: AgentId,
    pub(super) receiver: AgentId,
    pub(super) id: FlowId,
    /// Whether the flow is the control stream of these agents, and not their bulk.
    pub(super) is_control: bool,
}

impl BuiltFlow {
    /// The counters of the flow. A closed connection keeps those of `before`.
    pub(super) fn look(&self, world: &World<dyn Agent>, bottleneck: LinkId, before: FlowRow) -> FlowRow {
        let stats = |agent, before| {
            if self.is_control {
                return world.agent(agent).control(world.now()).unwrap_or(before);
            }
            let mut stats = Vec::new();
            world.agent(agent).sample(world.now(), &mut stats);
            stats.pop().map_or(before, |(_, stats)| stats)
        };
        FlowRow {
            sender: stats(self.sender, before.sender),
            receiver: stats(self.receiver, before.receiver),
            tally: world.flow_tally(bottleneck, self.id),
            cpu: [None; 2],
        }
    }
}

/// Builds the world. `seed` decides everything that is random.
pub(super) fn world(setup: &Setup, seed: u64) -> Built {
    let mut rng = Rng::new(seed);
    let network = rng.next_u64();
    let mut graph = setup.topology.graph();
    let mut flows = Vec::new();
    let mut machines = Machines { seed: network, hosts: BTreeMap::new() };
    let mut lists = Lists::default();
    let mut agents = 0;
    for (index, (flow, &(from, to))) in setup.flows.iter().zip(&setup.topology.places).enumerate() {
        // Drawn even if unused, so that another protocol of one flow does not change the random numbers of the others.
        let (spec, seeds) = flow.drawn(&mut rng);
        let id = graph.next_flow();
        flows.push(BuiltFlow { sender: agents, receiver: agents + 1, id, is_control: flow.beside.is_some() });
        if flow.beside.is_some() {
            continue;
        }
        agents += 2;
        let limits = Limits {
            window: window(setup, &graph, flow, (from, to)),
            list: lists.of(flow),
            interface: interface(setup, &graph, (from, to)),
        };
        let port = FIRST_PORT + index as u16;
        let [(from, away), (to, away_too)] =
            [(from, 0), (to, 1)].map(|(node, end)| machines.host(&mut graph, node, flow.hosts[end]));
        let control = setup.flows.iter().find(|other| other.beside.as_ref() == Some(&flow.name));
        let address = graph.address(to, port);
        let [sender, receiver] = match (&flow.protocol, control) {
            (Protocol::Bulk(bulk), Some(control)) => {
                shared(&spec, bulk, control, (address, limits.interface), setup.duration, seeds)
            }
            _ => pair(&spec, address, setup.duration, limits, seeds),
        };
        graph.add(from, port, id, away.agent(sender));
        graph.add(to, port, id, away_too.agent(receiver));
    }
    for (index, flow) in setup.flows.iter().enumerate() {
        let bulk = setup.flows.iter().position(|other| Some(&other.name) == flow.beside.as_ref());
        if let Some(bulk) = bulk {
            (flows[index].sender, flows[index].receiver) = (flows[bulk].sender, flows[bulk].receiver);
        }
    }
    Built { world: graph.start(network), flows, bottleneck: setup.topology.bottleneck }
}

/// The limits of a sender.
struct Limits {
    /// The window of a TCP, packets.
    window: u32,
    /// The transfers that are left to a TCP.
    list: Option<Remaining>,
    /// The speed of the host's interface.
    interface: Option<Rate>,
}

/// Lists of transfers, by the name of the flows that share them.
#[derive(Default)]
struct Lists(BTreeMap<String, Remaining>);

impl Lists {
    fn of(&mut self, flow: &FlowSpec) -> Option<Remaining> {
        let transfers = flow.transfers?;
        Some(self.0.entry(flow.group.clone()).or_insert_with(|| Remaining::new(transfers)).clone())
    }
}

/// The most packets in flight; zero for flows without a window of their own.
fn window(setup: &Setup, graph: &Graph, flow: &FlowSpec, places: (NodeId, NodeId)) -> u32 {
    let Protocol::Tcp(tcp) = &flow.protocol else { return 0 };
    let rate = setup.bottleneck().nominal_rate();
    let round_trip = setup.topology.round_trip(graph, places).unwrap_or_default();
    tcp.window.packets(rate, round_trip)
}

/// The speed of a host's interface: that of the first link of its path.
fn interface(setup: &Setup, graph: &Graph, (from, to): (NodeId, NodeId)) -> Option<Rate> {
    let first = *graph.links_between(from, to)?.first()?;
    setup.topology.links.get(first)?.path.nominal_rate()
}

/// Hosts with costs of packets, each of which is a node of its own behind the node where its links end, and late hosts.
struct Machines {
    /// Decides what is random at each.
    seed: u64,
    hosts: BTreeMap<NodeId, (NodeId, Absent)>,
}

impl Machines {
    /// The node of agents at `node`, and the host's absences. Flows at the same node share its processor, and the first
    /// flow decides about the host.
    fn host(&mut self, graph: &mut Graph, node: NodeId, spec: Option<Host>) -> (NodeId, Absent) {
        let Some(spec) = spec else { return self.hosts.get(&node).copied().unwrap_or((node, Absent(None))) };
        let seed = self.seed.wrapping_add(node as u64);
        *self.hosts.entry(node).or_insert_with(|| {
            let mut host = node;
            if let Some(cost) = spec.cost {
                host = graph.add_node();
                host_cost::attach(graph, node, host, cost, seed);
            }
            // Another seed than that of the jitter of the same host.
            (host, Absent(spec.late.map(|late| (late, Rng::new(seed).next_u64()))))
        })
    }
}

/// The absences of a host and their seed; `None` for a host that is never late.
#[derive(Clone, Copy)]
struct Absent(Option<(Lateness, u64)>);

impl Absent {
    /// The agent on this host.
    fn agent(self, agent: Box<dyn Agent>) -> Box<dyn Agent> {
        match self.0 {
            Some((late, seed)) => Box::new(LateAgent::new(agent, late, seed)),
            None => agent,
        }
    }
}

/// The sender and receiver of a flow. Only this function maps protocols to agents.
fn pair(flow: &FlowSpec, to: SocketAddr, duration: Duration, limits: Limits, seeds: [u64; 2]) -> [Box<dyn Agent>; 2] {
    match &flow.protocol {
        Protocol::Bulk(bulk) => {
            let (source, sink) = hosts(flow, bulk, (to, limits.interface), seeds);
            [Box::new(source), Box::new(sink)]
        }
        Protocol::Tcp(tcp) => self::tcp(flow, tcp, to, limits, seeds),
        Protocol::Libudt => unreachable!("refused before anything is built"),
        Protocol::Cross(rate, pattern) => {
            let timing = pattern.timing(flow.start, flow.stop.unwrap_or(duration));
            let source = Source::new(to, *rate, timing, seeds[0]).packets_of(flow.packet);
            [Box::new(source), Box::new(Sink::new())]
        }
        Protocol::Measured(measured) => {
            let (begin, end) = (Instant::ZERO + flow.start, Instant::ZERO + flow.stop.unwrap_or(duration));
            let source = ProbeSource::new(to, begin, stream(*measured, flow.packet, end - begin), seeds[0]).until(end);
            [Box::new(source), Box::new(ProbeSink::new())]
        }
    }
}

/// The stream of a measured flow whose packets have `packet` bytes.
fn stream(measured: Measured, packet: u32, time: Duration) -> probe::Measured {
    let datagram = Measured::datagram(packet);
    match measured {
        Measured::Stable(config) => probe::Measured::Stable(StableConfig { datagram, ..config }),
        Measured::Point(Point { window, sleep, spaced, messages }) => {
            probe::Measured::Point(BlasterConfig { datagram, window, sleep, spaced, messages, time })
        }
    }
}

fn tcp(flow: &FlowSpec, tcp: &Tcp, to: SocketAddr, limits: Limits, seeds: [u64; 2]) -> [Box<dyn Agent>; 2] {
    let mut config = SenderConfig {
        recovery: tcp.recovery,
        payload: flow.packet - tcp::HEADER,
        max_window: limits.window,
        bytes: flow.bytes,
        rto: RtoConfig { min: tcp.min_rto.unwrap_or(RtoConfig::default().min), ..RtoConfig::default() },
        ..SenderConfig::default()
    };
    let law = &tcp.law;
    if tcp.recovery == Recovery::Sack && law.to_string() != "reno" {
        // As in systems with these laws. An acknowledgement counts for all packets that it acknowledges, which are two with
        // delayed ones (RFC 9438 §4.4). The initial window is ten packets (RFC 6928).
        (config.ack_limit, config.initial_window) = (2, 10);
    }
    let (begin, make) = (Instant::ZERO + flow.start, || law.build(seeds[0]));
    let source: Box<dyn Agent> = match (limits.list, flow.stop) {
        (Some(list), _) => Box::new(TcpTransfers::new(to, begin, config, (law.clone(), seeds[0]), list)),
        (None, Some(stop)) => Box::new(TcpSource::new(to, begin, config, make).until(Instant::ZERO + stop)),
        (None, None) => Box::new(TcpSource::new(to, begin, config, make)),
    };
    let default = ReceiverConfig::default();
    let sink = TcpSink::new(ReceiverConfig {
        sack: tcp.recovery == Recovery::Sack,
        delayed_ack: default.delayed_ack.filter(|_| tcp.delayed_ack),
        ..default
    });
    [source, Box::new(sink)]
}

/// Both hosts of a connection with a control stream beside it.
fn shared(
    flow: &FlowSpec,
    bulk: &Bulk,
    control: &FlowSpec,
    (to, interface): (SocketAddr, Option<Rate>),
    duration: Duration,
    seeds: [u64; 2],
) -> [Box<dyn Agent>; 2] {
    let Protocol::Measured(Measured::Stable(stable)) = control.protocol else {
        unreachable!("refused when the scenario was read")
    };
    let stable = StableConfig { datagram: Measured::datagram(control.packet), ..stable };
    let (source, sink) = hosts(flow, bulk, (to, interface), seeds);
    let times = (Instant::ZERO + control.start, Instant::ZERO + control.stop.unwrap_or(duration));
    let session = Rng::new(seeds[0]).next_u64();
    [Box::new(SharedSource::new(source, to, stable, times, session)), Box::new(SharedSink::new(sink))]
}

/// Both hosts of a connection of a protocol of the registry.
fn hosts(
    flow: &FlowSpec,
    bulk: &Bulk,
    (to, interface): (SocketAddr, Option<Rate>),
    seeds: [u64; 2],
) -> (TransportAgent<Endpoint, BulkSender>, TransportAgent<Endpoint, BulkReceiver>) {
    let config = || Config { interface_rate: interface, ..config(flow, bulk) };
    let caller = bulk.protocol.endpoint(config(), entropy(seeds[0]));
    let answers = udt::Config { answers_as_libudt: bulk.answers_as_libudt, ..config().udt };
    let mut listener = bulk.protocol.endpoint(Config { udt: answers, ..config() }, entropy(seeds[1]));
    listener.listen(Mode::Stream).expect("every protocol of the registry has streams");
    let numbering = bulk.protocol.entry().numbering;
    let source = TransportAgent::new(caller, sender(flow, bulk, to)).numbering(numbering);
    (source, TransportAgent::new(listener, BulkReceiver::new()).numbering(numbering))
}

fn config(flow: &FlowSpec, bulk: &Bulk) -> Config {
    let default = Config::default();
    Config {
        mss: flow.packet,
        send_buffer: BUFFER,
        recv_buffer: BUFFER,
        connect_timeout: PATIENCE,
        peer_timeout: PATIENCE,
        linger: PATIENCE,
        burst_time: bulk.burst_time.unwrap_or(default.burst_time),
        controller: bulk.controller.clone().map_or(default.controller, controller_factory),
        max_flow_window: FLOW_WINDOW,
        reorder_tolerance: bulk.reorder_tolerance,
        // Bulk senders send zeros, and nobody reads them.
        udt: udt::Config { blank_payload: true, ..default.udt },
        ..default
    }
}

/// The key decides connection ids and first sequence numbers, and the seed decides the rest.
fn entropy(seed: u64) -> Entropy {
    Entropy { cookie_key: u128::from(seed).to_be_bytes(), seed }
}

fn sender(flow: &FlowSpec, bulk: &Bulk, to: SocketAddr) -> BulkSender {
    let mut sender = BulkSender::new(to, Instant::ZERO + flow.start);
    if let Some(bytes) = flow.bytes {
        sender = sender.bytes(bytes);
    }
    if let Some(stop) = flow.stop {
        sender = sender.until(Instant::ZERO + stop);
    }
    if let Some(disk) = bulk.disk {
        sender = sender.from_disk(disk);
    }
    sender
}
