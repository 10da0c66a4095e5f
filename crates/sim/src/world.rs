//! The loop: the earliest deadline, whose it is, and what follows from it.

use core::net::SocketAddr;

use farhaul_netem::Counters;
use farhaul_units::{Duration, Instant};

use crate::agent::{Agent, Outbox};
use crate::network::{AgentId, Arrival, Capture, FlowId, FlowTally, LinkId, Network, NetworkCounters};
use crate::packet::{Pool, PooledPacket};
use crate::sample::{FlowSample, Sample, Samples};
use crate::scheduler::Scheduler;
use crate::trace::{Tap, TraceHash};

/// Events at one instant after which somebody asks to be woken without ever doing anything about it.
const MAX_EVENTS_PER_INSTANT: u32 = 1_000_000;

/// Agents and links in virtual time. Made by a topology such as [`Graph`](crate::topology::graph::Graph).
pub struct World<A> {
    scheduler: Scheduler,
    agents: Vec<A>,
    network: Network,
    samples: Option<Samples>,
    /// Events at this instant so far.
    events_at: (Instant, u32),
}

impl<A: Agent> World<A> {
    /// Sources of the scheduler are agents, then links, then the sampler.
    pub(crate) fn new(network: Network, agents: Vec<A>) -> Self {
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

    /// All agents, in the order in which they were added.
    pub fn agents(&self) -> &[A] {
        &self.agents
    }

    /// Where an agent can be reached.
    pub fn address(&self, agent: AgentId) -> SocketAddr {
        self.network.address(agent)
    }

    /// Runs until `end`.
    pub fn run_until(&mut self, end: Instant) {
        while self.step(end) {}
    }

    /// Runs for `time`.
    pub fn run_for(&mut self, time: Duration) {
        self.run_until(self.now() + time);
    }

    /// Does something to an agent from outside, after which it is asked for its deadline as after any call.
    pub fn interfere<R>(&mut self, agent: AgentId, act: impl FnOnce(Instant, &mut A, &mut Outbox<'_>) -> R) -> R {
        let now = self.now();
        let result = act(now, &mut self.agents[agent], &mut Outbox { network: &mut self.network, now, agent });
        self.reschedule(agent);
        result
    }

    /// A datagram from any address arrives at an agent now, without having travelled.
    pub fn inject(&mut self, agent: AgentId, from: SocketAddr, bytes: &[u8]) {
        let packet = self.network.pool().packet(from, self.network.address(agent), bytes);
        self.deliver(agent, packet);
        self.reschedule_links();
    }

    /// Lets `tap` see every datagram that agents send from now on; `None` takes it away.
    pub fn set_tap(&mut self, tap: Option<Tap>) {
        self.network.set_tap(tap);
    }

    /// Lets `capture` see every packet that agents send and get from now on; `None` takes it away.
    pub fn set_capture(&mut self, capture: Option<Capture>) {
        self.network.set_capture(capture);
    }

    /// Records counters of all connections and links every `period` from now on.
    pub fn sample_every(&mut self, period: Duration) {
        self.samples = Some(Samples::every(period));
        let sampler = self.sampler();
        self.scheduler.set(sampler, Some(self.now()));
    }

    /// What was recorded; `None` unless [`sample_every`](World::sample_every) was called.
    pub fn samples(&self) -> Option<&Samples> {
        self.samples.as_ref()
    }

    /// The hash of everything that was sent and delivered so far.
    pub fn trace_hash(&self) -> TraceHash {
        self.network.trace
    }

    /// What a link has done so far.
    pub fn link_counters(&mut self, link: LinkId) -> Counters {
        let counters = self.network.link_counters(self.now(), link);
        self.reschedule_links();
        counters
    }

    /// What has left a link of one flow.
    pub fn flow_tally(&self, link: LinkId, flow: FlowId) -> FlowTally {
        self.network.flow_tally(link, flow)
    }

    /// What happened between the links.
    pub fn network_counters(&self) -> NetworkCounters {
        self.network.counters
    }

    /// The packets on their way.
    pub fn pool(&self) -> &Pool {
        self.network.pool()
    }

    fn sampler(&self) -> usize {
        self.agents.len() + self.network.links()
    }

    /// Handles the next event, if it is not after `limit`; otherwise moves time to `limit` and returns false.
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

    /// Takes everything out of a link that has arrived at its end.
    fn empty(&mut self, link: LinkId) {
        let now = self.now();
        while let Some(arrival) = self.network.take(now, link) {
            if let Arrival::Agent(agent, packet) = arrival {
                self.deliver(agent, packet);
            }
            if self.network.next_event(link).is_none_or(|due| due > now) {
                break;
            }
        }
        self.reschedule_links();
    }

    /// Hands a packet to an agent; links to which it answers are to be rescheduled afterwards.
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

    /// Fails the run when time stands still: an agent that asks again and again for the same instant would otherwise hang
    /// it.
    fn notice_standstill(&mut self, source: usize) {
        let now = self.now();
        let (at, count) = self.events_at;
        self.events_at = if at == now { (at, count + 1) } else { (now, 0) };
        assert!(count < MAX_EVENTS_PER_INSTANT, "time stands still at {now}: source {source} asks for it for ever");
    }
}
