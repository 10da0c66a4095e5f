//! The event loop: finds the earliest deadline and serves its source.

use core::net::SocketAddr;

use farhaul_netem::Counters;
use farhaul_units::{Duration, Instant};

use crate::agent::{Agent, Outbox};
use crate::network::{Capture, FlowTally, LinkId, LinkOutcome, Network, NetworkCounters};
use crate::packet::content::{AgentId, FlowId};
use crate::packet::{Pool, PooledPacket};
use crate::sample::{FlowSample, Sample, Samples};
use crate::scheduler::Scheduler;
use crate::trace::{Tap, TraceHash};

/// Events at one instant after which the run fails, because a source requests the same instant for ever.
const MAX_EVENTS_PER_INSTANT: u32 = 1_000_000;

/// Agents and links in virtual time. Made by a topology such as [`Graph`](crate::topology::graph::Graph).
pub struct World<A: ?Sized> {
    scheduler: Scheduler,
    pub(crate) agents: Vec<Box<A>>,
    network: Network,
    samples: Option<Samples>,
    /// The current instant and its events so far.
    events_at: (Instant, u32),
}

impl<A: Agent + ?Sized> World<A> {
    /// Sources of the scheduler are the agents, then the links, then the sampler.
    pub(crate) fn new(network: Network, agents: Vec<Box<A>>) -> Self {
        let mut scheduler = Scheduler::new();
        for _ in 0..agents.len() + network.links() + 1 {
            scheduler.add_source();
        }
        for (id, agent) in agents.iter().enumerate() {
            scheduler.set(id, agent.poll_timeout());
        }
        Self { scheduler, agents, network, samples: None, events_at: (Instant::ZERO, 0) }
    }

    /// The time in the simulation.
    pub fn now(&self) -> Instant {
        self.scheduler.now()
    }

    /// An agent.
    pub fn agent(&self, agent: AgentId) -> &A {
        &self.agents[agent]
    }

    /// Runs until `end`.
    pub fn run_until(&mut self, end: Instant) {
        while self.step(end) {}
    }

    /// Runs for `time`.
    pub fn run_for(&mut self, time: Duration) {
        self.run_until(self.now() + time);
    }

    /// Acts on an agent from outside, then reads its new deadline.
    pub fn interfere<R>(&mut self, agent: AgentId, act: impl FnOnce(Instant, &mut A, &mut Outbox<'_>) -> R) -> R {
        let now = self.now();
        let result = act(now, &mut self.agents[agent], &mut Outbox { network: &mut self.network, now, agent });
        self.reschedule(agent);
        result
    }

    /// Delivers a datagram from any address to an agent now, without a path.
    pub fn inject(&mut self, agent: AgentId, from: SocketAddr, bytes: &[u8]) {
        let packet = self.network.pool.packet(from, self.network.address(agent), bytes);
        self.deliver(agent, packet);
        self.reschedule_links();
    }

    /// Shows every datagram that agents send from now on to `tap`; `None` removes the tap.
    pub fn set_tap(&mut self, tap: Option<Tap>) {
        self.network.tap = tap;
    }

    /// Shows every packet that agents send and receive from now on to `capture`, those of channels included; `None` removes
    /// it.
    pub fn set_capture(&mut self, capture: Option<Capture>) {
        self.network.capture = capture;
    }

    /// Records counters of all connections and links every `period` from now on.
    pub fn sample_every(&mut self, period: Duration) {
        self.samples = Some(Samples::every(period));
        let sampler = self.sampler();
        self.scheduler.set(sampler, Some(self.now()));
    }

    /// The samples; `None` unless [`sample_every`](World::sample_every) was called.
    pub fn samples(&self) -> Option<&Samples> {
        self.samples.as_ref()
    }

    /// The hash of all packets sent and delivered so far.
    pub fn trace_hash(&self) -> TraceHash {
        self.network.trace
    }

    /// Counters of a link so far.
    pub fn link_counters(&mut self, link: LinkId) -> Counters {
        let counters = self.network.link_counters(self.now(), link);
        self.reschedule_links();
        counters
    }

    /// Traffic of one flow that has left a link. Both hosts of a `Pair` are of flow 0.
    pub fn flow_tally(&self, link: LinkId, flow: FlowId) -> FlowTally {
        self.network.flow_tally(link, flow)
    }

    /// Counters of the network.
    pub fn network_counters(&self) -> NetworkCounters {
        self.network.counters
    }

    /// The packets in flight.
    pub fn pool(&self) -> &Pool {
        &self.network.pool
    }

    fn sampler(&self) -> usize {
        self.agents.len() + self.network.links()
    }

    /// Handles the next event not after `limit`. Otherwise moves time to `limit` and returns `false`.
    fn step(&mut self, limit: Instant) -> bool {
        let Some(source) = self.scheduler.advance(limit) else { return false };
        self.notice_standstill(source);
        if source < self.agents.len() {
            self.wake(source);
        } else if source < self.sampler() {
            self.empty(source - self.agents.len());
        } else {
            self.sample();
        }
        true
    }

    fn wake(&mut self, agent: AgentId) {
        let now = self.now();
        self.agents[agent].handle_timeout(now, &mut Outbox { network: &mut self.network, now, agent });
        self.reschedule(agent);
    }

    /// Takes all packets that have left a link.
    fn empty(&mut self, link: LinkId) {
        let now = self.now();
        while let Some(arrival) = self.network.take(now, link) {
            if let LinkOutcome::Agent(agent, packet) = arrival {
                self.deliver(agent, packet);
            }
            if self.network.next_event(link).is_none_or(|due| due > now) {
                break;
            }
        }
        self.reschedule_links();
    }

    /// Hands a packet to an agent. The caller must then reschedule the links.
    fn deliver(&mut self, agent: AgentId, mut packet: PooledPacket) {
        if packet.is_damaged() && !self.agents[agent].takes_damaged() {
            self.network.counters.checksum_failures += 1;
            return;
        }
        let now = self.now();
        let mut out = Outbox { network: &mut self.network, now, agent };
        self.agents[agent].handle_packet(now, &mut packet, &mut out);
        self.scheduler.set(agent, self.agents[agent].poll_timeout());
    }

    fn reschedule(&mut self, agent: AgentId) {
        self.scheduler.set(agent, self.agents[agent].poll_timeout());
        self.reschedule_links();
    }

    fn reschedule_links(&mut self) {
        while let Some((link, deadline)) = self.network.take_touched() {
            self.scheduler.set(self.agents.len() + link, deadline);
        }
    }

    fn sample(&mut self) {
        let now = self.now();
        let links: Vec<_> = (0..self.network.links()).map(|link| self.network.link_counters(now, link)).collect();
        self.reschedule_links();
        let mut flows = Vec::new();
        let mut connections = Vec::new();
        for (host, agent) in self.agents.iter().enumerate() {
            agent.sample(now, &mut connections);
            flows.extend(connections.drain(..).map(|(id, stats)| FlowSample { host, id, stats }));
        }
        let sampler = self.sampler();
        let next = self.samples.as_mut().map(|samples| samples.add(Sample { at: now, flows, links }));
        self.scheduler.set(sampler, next);
    }

    /// Fails the run if a source requests the same instant for ever, which would otherwise hang it.
    fn notice_standstill(&mut self, source: usize) {
        let now = self.now();
        let (at, count) = self.events_at;
        self.events_at = if at == now { (at, count + 1) } else { (now, 0) };
        assert!(
            count < MAX_EVENTS_PER_INSTANT,
            "virtual time is stuck at {now}: source {source} keeps requesting that instant"
        );
    }
}
