//! The loop: the earliest deadline, whose it is, and what follows from it.

use std::net::SocketAddr;

use farhaul_netem::Counters;
use farhaul_proto::{Streams, Transmit};
use farhaul_units::{Duration, Instant};

use crate::host::{Application, Host};
use crate::network::{Arrival, LinkId, Network, NetworkCounters, NodeId};
use crate::packet::{Pool, PooledPacket};
use crate::sample::{FlowSample, Sample, Samples};
use crate::scheduler::Scheduler;
use crate::trace::{Tap, TraceHash};
use crate::traffic::{Flow, Traffic, delivery};

/// How often [`Simulation::run_until_done`] looks whether it is done.
const CHECK_PERIOD: Duration = Duration::from_millis(1);

/// Events at one instant after which somebody asks to be woken without ever doing anything about it.
const MAX_EVENTS_PER_INSTANT: u32 = 1_000_000;

/// Hosts and links in virtual time. Made by a topology such as [`Pair`](crate::topology::path::Pair).
pub struct Simulation<T, A = Traffic> {
    scheduler: Scheduler,
    hosts: Vec<Host<T, A>>,
    network: Network,
    samples: Option<Samples>,
    deliver_damaged: bool,
    /// Events at this instant so far.
    events_at: (Instant, u32),
}

impl<T: Streams, A: Application<T>> Simulation<T, A> {
    /// Sources of the scheduler are hosts, then links, then the sampler.
    pub(crate) fn new(network: Network, hosts: Vec<(T, A)>) -> Self {
        let mut scheduler = Scheduler::new();
        for _ in 0..hosts.len() + network.links() + 1 {
            scheduler.add_source();
        }
        let hosts = hosts.into_iter().enumerate();
        let hosts: Vec<_> = hosts.map(|(id, (t, a))| Host::new(network.address(id), t, a)).collect();
        for (id, host) in hosts.iter().enumerate() {
            scheduler.set(id, host.deadline());
        }
        let events_at = (Instant::ZERO, 0);
        Self { scheduler, hosts, network, samples: None, deliver_damaged: false, events_at }
    }

    /// The time in the simulation.
    pub fn now(&self) -> Instant {
        self.scheduler.now()
    }

    /// A host's transport.
    pub fn transport(&self, host: NodeId) -> &T {
        &self.hosts[host].transport
    }

    /// A host's application.
    pub fn application(&self, host: NodeId) -> &A {
        &self.hosts[host].application
    }

    /// Runs until `end`.
    pub fn run_until(&mut self, end: Instant) {
        while self.step(end) {}
    }

    /// Runs for `time`.
    pub fn run_for(&mut self, time: Duration) {
        self.run_until(self.now() + time);
    }

    /// Runs until `condition` holds, which is looked at every millisecond, or `end` is reached; returns whether it held.
    pub fn run_until_true(&mut self, end: Instant, condition: impl Fn(&Self) -> bool) -> bool {
        while !condition(self) {
            if self.now() >= end {
                return false;
            }
            self.run_until((self.now() + CHECK_PERIOD).min(end));
        }
        true
    }

    /// Gives commands to a host, after which its transport is drained as after any command.
    pub fn command<R>(&mut self, host: NodeId, give: impl FnOnce(Instant, &mut T, &mut A) -> R) -> R {
        let now = self.now();
        let Host { transport, application, .. } = &mut self.hosts[host];
        let result = give(now, transport, application);
        let network = &mut self.network;
        self.hosts[host].settle(now, |transmit| put(network, now, host, &transmit));
        self.reschedule(host);
        result
    }

    /// A datagram from any address arrives at a host now, without having travelled.
    pub fn inject(&mut self, host: NodeId, from: SocketAddr, bytes: &[u8]) {
        let packet = self.network.pool().packet(from, self.hosts[host].address, bytes);
        self.deliver(host, packet);
    }

    /// Lets `tap` see every datagram that hosts send from now on; `None` takes it away.
    pub fn set_tap(&mut self, tap: Option<Tap>) {
        self.network.set_tap(tap);
    }

    /// Whether damaged datagrams reach the transport. By default they do not: UDP's checksum catches them.
    pub fn deliver_damaged(&mut self, deliver: bool) {
        self.deliver_damaged = deliver;
    }

    /// Records counters of all connections and links every `period` from now on.
    pub fn sample_every(&mut self, period: Duration) {
        self.samples = Some(Samples::every(period));
        let sampler = self.sampler();
        self.scheduler.set(sampler, Some(self.now()));
    }

    /// What was recorded; empty unless [`sample_every`](Simulation::sample_every) was called.
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

    /// What happened between the links.
    pub fn network_counters(&self) -> NetworkCounters {
        self.network.counters
    }

    /// The datagrams on their way.
    pub fn pool(&self) -> &Pool {
        self.network.pool()
    }

    fn sampler(&self) -> usize {
        self.hosts.len() + self.network.links()
    }

    /// Handles the next event, if it is not after `limit`; otherwise moves time to `limit` and returns false.
    fn step(&mut self, limit: Instant) -> bool {
        let Some(source) = self.scheduler.advance(limit) else { return false };
        self.notice_standstill(source);
        if source < self.hosts.len() {
            self.wake(source);
        } else if source < self.sampler() {
            self.empty(source - self.hosts.len());
        } else {
            self.sample();
        }
        true
    }

    fn wake(&mut self, host: NodeId) {
        let now = self.now();
        let network = &mut self.network;
        self.hosts[host].wake(now, |transmit| put(network, now, host, &transmit));
        self.reschedule(host);
    }

    /// Takes everything out of a link that has arrived at its end.
    fn empty(&mut self, link: LinkId) {
        let now = self.now();
        while let Some(arrival) = self.network.take(now, link) {
            if let Arrival::Host(host, packet) = arrival {
                self.deliver(host, packet);
            }
        }
        self.reschedule_links();
    }

    fn deliver(&mut self, host: NodeId, mut packet: PooledPacket) {
        if packet.is_damaged() && !self.deliver_damaged {
            self.network.counters.checksum_failures += 1;
            return;
        }
        let now = self.now();
        let network = &mut self.network;
        let from = packet.from();
        self.hosts[host].receive(now, from, packet.bytes_mut(), |transmit| put(network, now, host, &transmit));
        self.reschedule(host);
    }

    fn reschedule(&mut self, host: NodeId) {
        self.scheduler.set(host, self.hosts[host].deadline());
        self.reschedule_links();
    }

    fn reschedule_links(&mut self) {
        while let Some((link, deadline)) = self.network.take_touched() {
            self.scheduler.set(self.hosts.len() + link, deadline);
        }
    }

    fn sample(&mut self) {
        let now = self.now();
        let links = (0..self.network.links()).map(|link| self.network.link_counters(now, link)).collect();
        self.reschedule_links();
        let mut flows = Vec::new();
        let mut ids = Vec::new();
        for (host, Host { transport, application, .. }) in self.hosts.iter().enumerate() {
            application.list_connections(&mut ids);
            let snapshots = ids.drain(..).map(|id| (id, transport.stats(now, id)));
            flows.extend(snapshots.filter_map(|(id, stats)| Some(FlowSample { host, id, stats: stats? })));
        }
        let sampler = self.sampler();
        let next = self.samples.as_mut().map(|samples| samples.add(Sample { at: now, flows, links }));
        self.scheduler.set(sampler, next);
    }

    /// Fails the run when time stands still: a transport that asks again and again for the same instant would
    /// otherwise hang it.
    fn notice_standstill(&mut self, source: usize) {
        let now = self.now();
        let (at, count) = self.events_at;
        self.events_at = if at == now { (at, count + 1) } else { (now, 0) };
        assert!(count < MAX_EVENTS_PER_INSTANT, "time stands still at {now}: source {source} asks for it for ever");
    }
}

impl<T: Streams> Simulation<T> {
    /// Runs until every host that has connections is done with them, or for `limit`; returns whether all are done.
    pub fn run_until_done(&mut self, limit: Duration) -> bool {
        self.run_until_true(self.now() + limit, |run| run.hosts.iter().all(|host| host.application.is_done()))
    }

    /// The streams of host `from` that have not arrived at host `to` whole, each with what is wrong; empty if all have.
    pub fn missing(&self, from: NodeId, to: NodeId) -> Vec<String> {
        let arrived = self.flows(to);
        self.flows(from).iter().filter_map(|sent| delivery::fault(sent, arrived)).collect()
    }

    /// A host's connections, in order of their beginning.
    pub fn flows(&self, host: NodeId) -> &[Flow] {
        self.hosts[host].application.flows()
    }
}

/// Puts what a host sends on the wire, datagram by datagram.
fn put(network: &mut Network, now: Instant, host: NodeId, transmit: &Transmit<'_>) {
    for datagram in transmit.datagrams() {
        network.send(now, host, transmit.to, datagram);
    }
}
